//! What runs for longer: the gateway, the daemon behind it, agents.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::channel;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_testkit::{Client, ModelScript, ModelServer, SOON};

use super::finder::Sentinel;
use super::place::Place;

#[test]
fn the_gateway_with_its_audit_log_traces_and_daemon() -> Result<()> {
    let mut place = Place::new("gateway")?;
    let literal = place.secret(Sentinel::awkward("a literal in env"));
    // The daemon runs servers of many gateways, and knows the secrets of those: each gives back what it was sent.
    let spill = place.spill();
    let header = place.secret(Sentinel::header("a literal in a header"));
    let body = place.all_as_body();
    // No server is sent this one.
    let otel = place.secret(Sentinel::plain("a header of the collector"));
    let one = place.stdio(
        "one",
        &format!("on start\n{spill}on tools/call/say -> text fine\non tools/call/die\n{spill}    exit 7\n"),
    )?;
    let two = place.http(
        "two",
        &format!("on tools/call/say\n    status 500\n    body {body}\non tools/call/other -> text fine\n"),
    )?;
    let file = json!({"mcpServers": {
        "one": {"command": one[0], "args": one[1..], "env": {"LITERAL_PW": literal}},
        "two": {"url": format!("http://127.0.0.1:{two}/mcp"), "headers": {"X-Api-Key": header}},
    }});
    let file = place.input("servers.json", &file.to_string())?;
    // A collector, of whose requests the bodies are looked at: the header is for it.
    let collector = TcpListener::bind("127.0.0.1:0")?;
    let (spans, bodies) = channel();
    let address = collector.local_addr()?;
    std::thread::spawn(move || {
        for mut stream in collector.incoming().flatten() {
            let body = body_of(&mut stream).unwrap_or_default();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}").ok();
            if spans.send(body).is_err() {
                return;
            }
        }
    });
    place.set("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    place.set("OTEL_EXPORTER_OTLP_HEADERS", format!("x-api-key={otel}"));
    let file = file.to_string_lossy().into_owned();
    let audit = place.path().join("audit.jsonl").to_string_lossy().into_owned();
    for shared in [&[][..], &["--shared"]] {
        let mut words =
            vec!["serve", "--config", &file, "--wait", "all", "--log", "trace", "--audit", &audit];
        words.extend(shared);
        let mut client = Client::start(&mut place.command(words))?;
        client.handshake()?;
        for (id, tool) in [("1", "one__say"), ("2", "two__say"), ("3", "one__die"), ("4", "two__other")] {
            client.call(id, tool, "{}")?;
            place.note(format!("the answer to {tool}"), client.answer(id)?);
        }
        // A name that holds a secret, as a client that was tricked may send it.
        let odd = serde_json::Value::from(literal.as_str());
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":{odd},"arguments":{{}}}}}}"#
        ))?;
        client.answer("5")?;
        client.close_stdin();
        client.wait_exit(SOON)?;
        place.note("stderr of the gateway", client.stderr());
    }
    place.run(&["daemon", "--status"], "")?;
    place.run(&["daemon", "--status", "--json"], "")?;
    place.run(&["daemon", "--stop"], "")?;
    place.note("spans", bodies.recv_timeout(SOON)?);
    ensure!(std::fs::read_to_string(&audit)?.lines().count() >= 4);
    place.search(10)
}

fn body_of(stream: &mut TcpStream) -> Result<Vec<u8>> {
    stream.set_read_timeout(Some(SOON))?;
    let mut lines = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        lines.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body)?;
    Ok(body)
}

#[test]
fn the_gateway_over_http_and_its_token() -> Result<()> {
    let mut place = Place::new("listen")?;
    let token = place.variable("TOOLWAY_TOKEN", Sentinel::plain("the gateway's token"));
    let one = place.stdio("one", &format!("on start\n{}on tools/call/say -> text fine\n", place.spill()))?;
    let file = json!({"mcpServers": {"one": {"command": one[0], "args": one[1..]}}});
    let file = place.input("servers.json", &file.to_string())?.to_string_lossy().into_owned();
    let mut server = place
        .command(["serve", "--config", &file, "--listen", "127.0.0.1:0", "--log", "trace"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stderr = BufReader::new(server.stderr.take().context("no stderr")?);
    let mut said = String::new();
    let port: u16 = loop {
        ensure!(stderr.read_line(&mut said)? > 0, "it ended: {said}");
        if let Some((_, rest)) = said.split_once("http://127.0.0.1:") {
            break rest.split('/').next().context("no port")?.parse()?;
        }
    };
    let initialize = toolway_testkit::INITIALIZE;
    for (path, header) in [
        ("/mcp", format!("Authorization: Bearer {token}\r\n")),
        ("/mcp", format!("Authorization: Bearer {token}x\r\n")),
        ("/mcp", format!("Authorization: Basic {token}\r\n")),
        (&*format!("/mcp?token={token}"), String::new()),
        (&*format!("/{token}"), format!("Origin: http://{token}.example\r\n")),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(SOON))?;
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n{header}Content-Length: {}\r\n\r\n{initialize}",
            initialize.len()
        )?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        ensure!(answer.starts_with(b"HTTP/1.1 "));
        place.note(format!("the answer with {path} and {header}").replace(&token, "TOKEN"), answer);
    }
    let stop = std::process::Command::new("kill").arg(server.id().to_string()).status()?;
    ensure!(stop.success());
    stderr.read_to_string(&mut said)?;
    server.wait()?;
    ensure!(said.contains("the token is the configured one"), "{said}");
    place.note("stderr of the gateway", said);
    place.search(6)
}

#[test]
fn agents_and_what_is_kept_of_them() -> Result<()> {
    let mut place = Place::new("agents")?;
    place.variable("OPENAI_API_KEY", Sentinel::plain("a model's key"));
    let literal = place.secret(Sentinel::awkward("a literal in env"));
    let header = place.secret(Sentinel::header("a literal in a header"));
    place.variable("FOR_ENV", Sentinel::awkward("a variable in env"));
    let filed = place.secret(Sentinel::awkward("a file in env"));
    let filed = place.outside("filed", &filed)?;
    let (all, body, spill) = (place.all(), place.all_as_body(), place.spill());
    let one = place.stdio("one", &format!("on start\n{spill}on tools/call/say -> text {all}\n"))?;
    let two = place.http("two", &format!("on POST\n    status 401\n    body {body}\n"))?;
    let env =
        json!({"LITERAL_PW": literal, "VARIABLE_PW": "${FOR_ENV}", "FILED_PW": format!("${{file:{filed}}}")});
    let file = json!({"mcpServers": {
        "one": {"command": one[0], "args": one[1..], "env": env},
        "two": {"url": format!("http://127.0.0.1:{two}/mcp"), "headers": {"X-Api-Key": header}},
    }});
    let file = place.input("servers.json", &file.to_string())?.to_string_lossy().into_owned();
    let said: String = serde_json::from_str(&format!("\"{all}\""))?;
    let model = ModelServer::start(ModelScript::of(&json!({"rules": [
        {"when": {"result": "got"}, "reply": {"text": format!("It said {said}")}},
        {"when": {"result": "|"}, "reply": {"text": format!("It said {said}")}},
        {"when": {"tool": "one__say"}, "reply": {"text": "I ask.", "calls": [{"name": "one__say", "arguments": {"what": said}}]}},
    ], "otherwise": {"text": "nothing"}}))?)?;
    let base = format!("baseUrl={}", model.base_url());
    for more in [&["--json", "--partial"][..], &[]] {
        let mut words =
            vec!["agent", "run", "--model", "scripted", "--model-param", &base, "--mcp-config", &file];
        words.extend(more.iter().filter(|word| **word != "--partial"));
        words.push("say it");
        let (out, err) = place.run(&words, "")?;
        ensure!(out.contains("It said") && out.contains("[redacted]"), "{out}\n{err}");
    }
    let (list, _) = place.run(&["agent", "list", "--json"], "")?;
    let list: serde_json::Value = serde_json::from_str(&list)?;
    let id = list["agents"][0]["id"].as_str().context("no agent")?.to_owned();
    place.run(&["agent", "show", &id], "")?;
    place.run(&["agent", "show", &id, "--json"], "")?;
    place.search(8)
}
