//! The MCP Inspector's command line: what it prints must be the same with the front between.

use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::interop::client::Target;
use crate::interop::transcript;
use crate::interop::upstream::{Server, Upstreams, Wire};
use crate::interop::{DEADLINE, Stage};
use crate::process::Step;

/// What it is asked, one process each. The document is over the limit.
const QUESTIONS: [&[&str]; 4] = [
    &["--method", "tools/list"],
    &["--method", "tools/call", "--tool-name", "get-structured-content", "--tool-arg", "location=Chicago"],
    &["--method", "resources/read", "--uri", "demo://resource/static/document/structure.md"],
    &["--method", "prompts/get", "--prompt-name", "args-prompt", "--prompt-args", "city=Bern"],
];

pub(super) fn run(
    stage: &Stage,
    upstreams: &Upstreams,
    name: &str,
    server: Server,
    wire: Wire,
) -> Result<()> {
    let folder = stage.folder(name)?;
    let config = folder.join("mcp.json");
    let direct = entry(&upstreams.direct(stage, server, wire)?);
    let through = entry(&upstreams.through(stage, server, wire, &folder)?);
    let servers = json!({ "mcpServers": { "direct": direct, "through": through } });
    fs::write(&config, servers.to_string())?;
    let peers = stage.peers.node24.as_ref().context("no Node.js 24")?;
    let mut problems = Vec::new();
    for question in QUESTIONS {
        let ask = |server: &str| -> Result<Value> {
            let output = Step::new(&peers.node)
                .arg(peers.file("@modelcontextprotocol/inspector/clients/launcher/build/index.js"))
                .args(&["--cli", "--config"])
                .arg(&config)
                .args(&["--server", server])
                .args(question)
                .dir(&folder)
                .output(DEADLINE)
                .with_context(|| format!("{server}: {}", question.join(" ")))?;
            serde_json::from_str(&output).context("the Inspector printed no JSON")
        };
        let answer = |value: Value| json!({ "server": null, "steps": [{ "result": value }], "events": [] });
        let is_large = question.contains(&"resources/read");
        let scenario = json!({ "steps": [{ "do": question.join(" "), "large": is_large }] });
        let (direct, through) = (answer(ask("direct")?), answer(ask("through")?));
        problems.extend(transcript::differences(&scenario, &direct, &through)?);
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// An entry of the client's configuration file.
fn entry(target: &Target) -> Value {
    match target {
        Target::Command(words) => {
            json!({ "type": "stdio", "command": words.first(), "args": words.get(1..) })
        }
        Target::Http(url) => json!({ "type": "streamable-http", "url": url }),
        Target::Sse(url) => json!({ "type": "sse", "url": url }),
    }
}
