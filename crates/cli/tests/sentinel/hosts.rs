//! Hosts of agents: the chat at a terminal, and the agent behind an editor.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::{ModelScript, ModelServer};

use super::finder::Sentinel;
use super::place::Place;

/// A place with a server that gives back all secrets, and a model that calls it and repeats them.
struct Stage {
    place: Place,
    servers: Value,
    model: ModelServer,
}

fn stage(name: &str) -> Result<Stage> {
    let mut place = Place::new(name)?;
    place.variable("OPENAI_API_KEY", Sentinel::plain("a model's key"));
    let literal = place.secret(Sentinel::awkward("a literal in env"));
    let header = place.secret(Sentinel::header("a literal in a header"));
    let (all, body, spill) = (place.all(), place.all_as_body(), place.spill());
    let one = place.stdio("one", &format!("on start\n{spill}on tools/call/say -> text {all}\n"))?;
    let two = place.http("two", &format!("on POST\n    status 401\n    body {body}\n"))?;
    let servers = json!({
        "one": {"command": one[0], "args": one[1..], "env": {"A_PW": literal}},
        "two": {"url": format!("http://127.0.0.1:{two}/mcp"), "headers": {"X-Api-Key": header}},
    });
    let said: String = serde_json::from_str(&format!("\"{all}\""))?;
    let model = ModelServer::start(ModelScript::of(&json!({"rules": [
        {"when": {"result": "|"}, "reply": {"text": format!("It said {said}")}},
        {"when": {"tool": "one__say"}, "reply": {"text": "I ask.", "calls": [{"name": "one__say", "arguments": {}}]}},
    ], "otherwise": {"text": "nothing"}}))?)?;
    Ok(Stage { place, servers, model })
}

#[test]
fn the_chat_at_a_terminal() -> Result<()> {
    let Stage { mut place, servers, model } = stage("chat")?;
    let file = place.input("servers.json", &json!({ "mcpServers": servers }).to_string())?;
    let file = file.to_string_lossy().into_owned();
    let base = format!("baseUrl={}", model.base_url());
    let words =
        ["chat", "--model", "scripted", "--model-param", &base, "--mcp-config", &file, "--log", "trace"];
    let (out, err) = place.run(&words, "say it\n/mcp\n/tools\n/debug\n")?;
    ensure!(out.contains("It said") && out.contains("[redacted]"), "{out}\n{err}");
    place.search(2)
}

#[test]
fn the_agent_of_an_editor() -> Result<()> {
    let Stage { mut place, servers, model } = stage("editor")?;
    let base = format!("baseUrl={}", model.base_url());
    let words = ["acp", "--model", "scripted", "--model-param", &base, "--log", "trace"];
    let mut agent =
        place.command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = agent.stdin.take().context("no stdin")?;
    let mut lines = BufReader::new(agent.stdout.take().context("no stdout")?).lines();
    let mut stderr = agent.stderr.take().context("no stderr")?;
    let told = std::thread::spawn(move || {
        let mut text = Vec::new();
        stderr.read_to_end(&mut text).map(|_| text)
    });
    let env = &servers["one"]["env"]["A_PW"];
    let given = json!([
        {"name": "one", "command": servers["one"]["command"], "args": servers["one"]["args"], "env": [{"name": "A_PW", "value": env}]},
        {"type": "http", "name": "two", "url": servers["two"]["url"],
         "headers": [{"name": "X-Api-Key", "value": servers["two"]["headers"]["X-Api-Key"]}]},
    ]);
    let mut said = String::new();
    let mut ask = |id: u64, method: &str, params: Value| -> Result<Value> {
        writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let line = lines.next().context("it ended")??;
            said.push_str(&line);
            said.push('\n');
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
            if let Some(asked) = message.get("id").filter(|_| message.get("method").is_some()) {
                let allow = json!({"outcome": {"outcome": "selected", "optionId": message["params"]["options"][0]["optionId"]}});
                writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": asked, "result": allow}))?;
            }
        }
    };
    ask(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}))?;
    let session = ask(2, "session/new", json!({"cwd": place.path().join("work"), "mcpServers": given}))?;
    let session = session["result"]["sessionId"].as_str().context("no session")?.to_owned();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "say it"}]});
    let end = ask(3, "session/prompt", prompt)?;
    ensure!(end["result"]["stopReason"] == "end_turn", "{end}");
    drop(stdin);
    ensure!(agent.wait()?.success());
    ensure!(said.contains("It said") && said.contains("[redacted]"), "{said}");
    place.note("what the editor was told", said);
    let told = told.join().ok().context("nobody read stderr")??;
    place.note("stderr of acp", told);
    place.search(2)
}
