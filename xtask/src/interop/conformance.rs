//! The official conformance suite against its fixture: no scenario may end otherwise with a front between. The suite
//! speaks HTTP only, so before a relay, and before the fixture that it is compared with, stands a gateway that is not
//! ours; Toolway's own gateway is judged as it listens.

use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

use crate::interop::Stage;
use crate::interop::suite::{Revision, Verdicts, judge, unlike, worse};
use crate::interop::upstream::{Listener, Server, Upstreams, Wire, free_port, text};

/// Judges the fixture alone, behind `toolway stdio` and behind `toolway streamable-http`, at the same time.
pub(super) fn run(stage: &Stage, upstreams: &Upstreams, name: &str, revision: Revision) -> Result<()> {
    let folder = stage.folder(name)?;
    let alone = Server::Fixture.command(stage, Wire::Stdio, 0)?;
    let stdio = upstreams.front(stage, Server::Fixture, Wire::Stdio, &folder)?;
    let http = upstreams.front(stage, Server::Fixture, Wire::Http, &folder)?;
    let runs = [("alone", alone), ("stdio", stdio), ("http", http)];
    let folder = &folder;
    let verdicts = thread::scope(|scope| {
        let jobs: Vec<_> = runs
            .iter()
            .map(|(label, words)| scope.spawn(move || behind(stage, revision, words, &folder.join(label))))
            .collect();
        let joined =
            jobs.into_iter().map(|job| job.join().unwrap_or_else(|_| Err(anyhow!("a run panicked"))));
        joined.collect::<Result<Vec<_>>>()
    })?;
    let [alone, fronts @ ..] = verdicts.as_slice() else { bail!("no verdicts") };
    let mut problems = Vec::new();
    for ((label, _), verdict) in runs[1..].iter().zip(fronts) {
        problems.extend(unlike(alone, verdict).into_iter().map(|problem| format!("{label}: {problem}")));
    }
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// The verdicts on a stdio server.
fn behind(stage: &Stage, revision: Revision, words: &[String], folder: &Path) -> Result<Verdicts> {
    let gateway = match revision {
        Revision::Legacy => supergateway(stage, words)?,
        Revision::Modern => bridge(stage, words)?,
    };
    judge(stage, revision, &gateway.url("/mcp"), folder)
}

fn supergateway(stage: &Stage, words: &[String]) -> Result<Listener> {
    let peers = stage.peers.node.as_ref().context("no npm peers")?;
    let port = free_port()?;
    let command: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let mut gateway = vec![text(&peers.node), text(&peers.file("supergateway/dist/index.js"))];
    let options = ["--stdio", &command.join(" "), "--outputTransport", "streamableHttp", "--stateful"];
    gateway.extend(options.map(str::to_owned));
    gateway.extend(["--logLevel", "none", "--port", &port.to_string()].map(str::to_owned));
    Listener::start(stage, "supergateway", &gateway, port)
}

fn bridge(stage: &Stage, words: &[String]) -> Result<Listener> {
    let peers = stage.peers.node.as_ref().context("no npm peers")?;
    let port = free_port()?;
    let mut bridge =
        vec![text(&peers.node), text(&stage.interop("servers/stdio_bridge.mjs")), port.to_string()];
    bridge.extend_from_slice(words);
    Listener::start(stage, "bridge", &bridge, port)
}

/// The fixture and the gateway before it, both over HTTP: nothing may be worse.
pub(super) fn gateway(
    stage: &Stage,
    upstreams: &Upstreams,
    name: &str,
    revision: Revision,
    wire: Wire,
) -> Result<()> {
    let folder = stage.folder(name)?;
    let alone = alone(stage, upstreams, revision, &folder)?;
    let entry = fixture(stage, upstreams, wire, revision)?;
    let gateway = serve(stage, &entry, &folder)?;
    let through = judge(stage, revision, &gateway.url("/mcp"), &folder.join("through"))?;
    let problems = worse(&alone, &through);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// The verdicts on the fixture without anything of ours.
pub(super) fn alone(
    stage: &Stage,
    upstreams: &Upstreams,
    revision: Revision,
    folder: &Path,
) -> Result<Verdicts> {
    judge(stage, revision, &upstreams.url(Server::Fixture, Wire::Http)?, &folder.join("alone"))
}

/// The fixture, which speaks both generations, as an entry of a configuration that makes it speak one.
pub(super) fn fixture(stage: &Stage, upstreams: &Upstreams, wire: Wire, speaks: Revision) -> Result<Value> {
    let protocol = speaks.protocol();
    if wire != Wire::Stdio {
        let url = upstreams.url(Server::Fixture, wire)?;
        return Ok(json!({ "type": "http", "url": url, "protocol": protocol }));
    }
    let words = Server::Fixture.command(stage, wire, 0)?;
    Ok(json!({ "command": words.first(), "args": words.get(1..), "protocol": protocol }))
}

/// The gateway before one server whose tools keep their names, listening.
pub(super) fn serve(stage: &Stage, entry: &Value, folder: &Path) -> Result<Listener> {
    let config = folder.join("mcp.json");
    fs::write(&config, json!({ "mcpServers": { "fixture": entry } }).to_string())?;
    let port = free_port()?;
    let home = folder.join("home");
    fs::create_dir_all(&home)?;
    let mut words = vec!["env".to_owned(), format!("HOME={}", text(&home)), text(&stage.front)];
    words.extend(["serve", "--bare", "--no-auth", "--wait", "all", "--config"].map(str::to_owned));
    words.extend([text(&config), "--listen".to_owned(), format!("127.0.0.1:{port}")]);
    Listener::start(stage, "toolway serve", &words, port)
}
