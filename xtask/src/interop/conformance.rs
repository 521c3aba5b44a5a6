//! The official conformance suite against its fixture: the verdict on every scenario must be the same with the
//! front between. The suite speaks HTTP only, so a gateway that is not ours stands before both.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::interop::Stage;
use crate::interop::upstream::{Listener, Server, Upstreams, Wire, free_port, text};
use crate::process::Step;

/// The suite takes about a minute for a revision with sessions: it starts the fixture once for each.
const SUITE_DEADLINE: Duration = Duration::from_secs(400);

/// A set of scenarios.
#[derive(Debug, Clone, Copy)]
pub(super) enum Revision {
    /// 2025-11-25: `initialize` and sessions.
    Legacy,
    /// 2026-07-28: everything with each request.
    Modern,
}

impl Revision {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }
}

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
            .map(|(label, words)| scope.spawn(move || judge(stage, revision, words, &folder.join(label))))
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

/// The summary's lines of one run, one for each scenario.
fn judge(stage: &Stage, revision: Revision, words: &[String], folder: &Path) -> Result<Vec<String>> {
    let gateway = match revision {
        Revision::Legacy => supergateway(stage, words)?,
        Revision::Modern => bridge(stage, words)?,
    };
    let peers = stage.peers.node24.as_ref().context("no Node.js 24")?;
    let suite = Step::new(&peers.node)
        .arg(peers.file("@modelcontextprotocol/conformance/dist/index.js"))
        .args(&["server", "--url", &gateway.url("/mcp"), "--requirements", revision.name()])
        .args(&["--timeout", "15000", "-o"])
        .arg(folder);
    let finished = suite.capture(SUITE_DEADLINE)?;
    let summary = finished.stdout.split("=== SUMMARY ===").nth(1);
    let summary = summary.with_context(|| format!("the suite gave no summary:\n{}", finished.stderr))?;
    let scenarios = summary.lines().take_while(|line| !line.starts_with("Total:"));
    Ok(scenarios.filter(|line| line.contains(" passed, ")).map(str::to_owned).collect())
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

fn unlike(alone: &[String], through: &[String]) -> Vec<String> {
    if alone.is_empty() {
        return vec!["the suite judged nothing".to_owned()];
    }
    let lost = alone.iter().filter(|line| !through.contains(line)).map(|line| format!("without: {line}"));
    let new = through.iter().filter(|line| !alone.contains(line)).map(|line| format!("with:    {line}"));
    lost.chain(new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_differ_by_scenario() {
        let lines = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
        let alone = lines("a: 1 passed, 0 failed|b: 1 passed, 1 failed");
        assert_eq!(unlike(&alone, &alone), Vec::<String>::new());
        assert_eq!(unlike(&alone, &lines("a: 1 passed, 0 failed|b: 2 passed, 0 failed")).len(), 2);
        assert_eq!(unlike(&[], &[]).len(), 1);
    }
}
