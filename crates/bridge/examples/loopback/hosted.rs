//! A host in another process than its bridge: `toolway bridge` is its child, and every call crosses two pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::bare::wanted;

#[derive(Deserialize)]
struct Incoming<'a> {
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Started<'a> {
    #[serde(borrow)]
    calls: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(rename = "call")]
    id: &'a str,
    tool: &'a str,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

/// Runs until the bridge ends; says first where the agent finds it.
pub(crate) fn run(toolway: &str) -> Result<()> {
    let mut command = Command::new(toolway);
    command.args(["bridge", "--settings", "/nonexistent/bridge.json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no stdin")?;
    let lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
    let tools = ["echo", "gate"].map(|name| json!({"name": name, "parameters": {"type": "object"}}));
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "host": {"name": "loopback"}}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/declare", "params": {"tools": tools}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "run/open", "params": {}}),
    ] {
        stdin.write_all(format!("{message}\n").as_bytes())?;
    }
    let mut gated = Vec::new();
    let mut out = String::new();
    for line in lines {
        let line = line?;
        let message: Incoming<'_> = serde_json::from_str(&line).with_context(|| line.clone())?;
        if let Some(result) = message.result.filter(|result| result.get().contains("\"url\"")) {
            let opened: Value = serde_json::from_str(result.get())?;
            let url = &opened["server"]["url"];
            println!("{}", json!({"url": url, "echo": "pi__echo", "gate": "pi__gate"}));
        }
        let (Some("calls/started"), Some(params)) = (message.method, message.params) else { continue };
        let started: Started<'_> = serde_json::from_str(params.get())?;
        for call in started.calls {
            let answer = answer(&call)?;
            if call.tool == "gate" {
                gated.push(answer);
                if gated.len() >= wanted(call.arguments.get()) {
                    gated.drain(..).for_each(|answer| out += &answer);
                }
            } else {
                out += &answer;
            }
        }
        send(&mut stdin, &mut out)?;
    }
    Ok(())
}

/// The result of a call, and that it is not to be answered.
fn answer(call: &Call<'_>) -> Result<String> {
    let content = json!([{"type": "text", "text": call.arguments.get()}]);
    let params = json!({"call": call.id, "content": content});
    Ok(serde_json::to_string(&json!({"jsonrpc": "2.0", "method": "call/result", "params": params}))? + "\n")
}

fn send(stdin: &mut ChildStdin, out: &mut String) -> Result<()> {
    if !out.is_empty() {
        stdin.write_all(out.as_bytes())?;
        out.clear();
    }
    Ok(())
}
