//! Turns, with a real agent of each kind behind the bridge and a scripted model or agent behind that.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::{ModelScript, ModelServer};

use crate::host::Host;

/// A host that runs the calls of a turn: its own tool, and wrappers. What it adds to its log.
fn run(host: &mut Host, end: &Value) -> Result<Vec<Value>> {
    ensure!(end["stop"] == "toolUse", "{end}");
    let calls: Vec<Value> = end["content"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|block| block["kind"] == "toolCall")
        .cloned()
        .collect();
    let block = |call: &Value| json!({"type": "toolCall", "id": call["call"], "name": call["tool"], "arguments": call["arguments"]});
    let mut log = vec![json!({"role": "assistant", "content": calls.iter().map(block).collect::<Vec<_>>()})];
    for call in calls {
        let admitted = host.ask("call/admit", json!({"call": call["call"]}))?;
        ensure!(admitted["admitted"] == true, "{admitted}");
        let id = call["call"].as_str().context("an id is a text")?;
        let content = if id.starts_with("cursor-replay-") {
            let taken = host.ask("replay/take", json!({"id": id, "tool": call["tool"]}))?;
            ensure!(taken["recorded"] == true, "{taken}");
            taken["content"].clone()
        } else {
            json!([{"type": "text", "text": format!("{} says hello", call["tool"].as_str().unwrap_or_default())}])
        };
        log.push(json!({"role": "toolResult", "toolCallId": id, "toolName": call["tool"], "isError": false, "content": content}));
    }
    Ok(log)
}

/// The question, and what the host has in its log when all is answered; with the last words and all tokens written.
fn play(host: &mut Host, model: &str) -> Result<(Vec<Value>, Value, u64)> {
    let mut written = 0;
    host.declare(&["todo"])?;
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    loop {
        let end = host.turn(&messages, model)?;
        written += end["usage"]["output"].as_u64().unwrap_or_default();
        if end["stop"] != "toolUse" {
            return Ok((messages, end, written));
        }
        messages.extend(run(host, &end)?);
        ensure!(messages.len() < 20, "it goes on and on: {messages:?}");
    }
}

/// Name, kind of id and text of each result in the log.
fn results(messages: &[Value]) -> Vec<(String, bool, String)> {
    let results = messages.iter().filter(|message| message["role"] == "toolResult");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shown = results.map(|result| {
        let is_card = text(&result["toolCallId"]).starts_with("cursor-replay-");
        (text(&result["toolName"]), is_card, text(&result["content"][0]["text"]))
    });
    shown.collect()
}

#[test]
fn the_native_agent_calls_a_tool_of_the_host_and_shows_what_it_did_itself() -> Result<()> {
    let model = ModelServer::start(ModelScript::of(&json!({
        "rules": [
            {"when": {"user": "go"}, "times": 1, "reply": {"calls": [{"name": "pi__todo", "arguments": {}}]}},
            {"when": {"result": "todo says hello"}, "reply": {"calls": [{"name": "read", "arguments": {"path": "note.txt"}}]}},
            {"when": {"result": "a note"}, "reply": {"text": "Both.", "usage": {"input": 9, "output": 2}}},
        ],
    }))?)?;
    let variables = [("OPENAI_BASE_URL", model.base_url()), ("OPENAI_API_KEY", "key-of-the-test".to_owned())];
    let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut host = Host::with_agent_behind(&["--agent", "native"], &variables)?;
    std::fs::write(host.home().join("note.txt"), "a note\n")?;
    let (log, end, written) = play(&mut host, "scripted")?;
    assert_eq!((&end["stop"], &end["content"][0]["text"]), (&json!("stop"), &json!("Both.")), "{end}");
    // Of what comes while cards are shown no turn is told which: all of it counts once.
    assert_eq!(written, 5 + 5 + 2, "a reply has five tokens unless it says otherwise");
    let [todo, read] = results(&log).try_into().map_err(|results| anyhow::anyhow!("{results:?}"))?;
    assert_eq!((todo.0.as_str(), todo.1, todo.2.as_str()), ("todo", false, "todo says hello"));
    assert_eq!((read.0.as_str(), read.1, read.2.contains("a note")), ("read", true, true), "{read:?}");
    assert_eq!(host.shut_down()?.code(), Some(0));
    Ok(())
}

#[test]
fn an_agent_behind_its_protocol_does_the_same() -> Result<()> {
    let program = toolway_testkit::toolway_acp_agent()?;
    let call = json!({"mcp": {"id": "a", "server": "pi_tools", "tool": "pi__todo", "arguments": {}}});
    let script = json!({"prompts": [{"do": [call, {"say": "One."}]}]}).to_string();
    let program = program.to_string_lossy();
    let options = ["--agent", "acp", "--", &program, "--script", &script];
    let mut host = Host::with_agent_behind(&options, &[])?;
    let (log, end, _) = play(&mut host, "")?;
    assert_eq!((&end["stop"], &end["content"][0]["text"]), (&json!("stop"), &json!("One.")), "{end}");
    assert_eq!(results(&log), [("todo".to_owned(), false, "todo says hello".to_owned())]);
    assert_eq!(host.shut_down()?.code(), Some(0));
    Ok(())
}

#[test]
fn a_model_that_no_service_has_fails_the_turn_with_its_reason() -> Result<()> {
    let mut host = Host::with_agent_behind(&["--agent", "native"], &[])?;
    let end = host.turn(&[json!({"role": "user", "content": "go"})], "nobody::nothing")?;
    assert_eq!(end["stop"], "error", "{end}");
    assert!(end["reason"].as_str().is_some_and(|reason| reason.contains("nobody")), "{end}");
    assert_eq!(host.shut_down()?.code(), Some(0));
    Ok(())
}
