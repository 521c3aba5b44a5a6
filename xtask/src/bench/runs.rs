//! Which fronts are measured at what, in which order. The harness measures; this names the runs.

use std::time::Duration;

use anyhow::Result;

use super::summary::Summary;
use super::{Bench, FRONTS, Options, peers};

/// What one call of `cargo xtask bench relay` measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) stdio: Summary,
    pub(super) pinned: Summary,
    pub(super) big: Summary,
    pub(super) http: Summary,
    pub(super) sse: Summary,
    pub(super) start: Summary,
    pub(super) huge: Summary,
}

/// One run of the harness.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) name: &'a str,
    pub(super) command: &'a str,
    pub(super) upstream: &'a str,
    pub(super) baseline: &'a str,
    pub(super) fronts: &'a [&'a str],
    /// Fronts of `--peers`.
    pub(super) more: &'a [&'a str],
    pub(super) options: Vec<&'a str>,
}

const STDIO: [&str; 5] = ["direct", "relay", "relay-frame", "toolway", "mcpway"];
const MORE_STDIO: [&str; 6] =
    ["jmunch", "fastmcp", "py-mcp-proxy-srv", "npm-mcp-proxy-srv", "supergateway-srv", "tower-mcp-proxy-srv"];
const HTTP: [&str; 4] = ["bridge", "toolway", "mcp-relay", "mcpway"];
const MORE_HTTP: [&str; 5] = ["mcp-remote", "supergateway", "py-mcp-proxy", "fastmcp", "tower-mcp-proxy-srv"];
const SSE: [&str; 2] = ["toolway", "mcpway"];
const MORE_SSE: [&str; 5] = ["mcp-remote", "supergateway", "py-mcp-proxy", "fastmcp", "rmcp-proxy"];
const BIG: [&str; 4] = ["relay-frame", "relay", "toolway-raised", "mcpway"];
const START: [&str; 3] = ["relay", "toolway", "mcpway"];
const HUGE: [&str; 2] = ["relay", "toolway"];

/// All runs, one after the other: nothing else may use the machine meanwhile.
pub(super) fn measure(bench: &Bench<'_>, options: Options) -> Result<Measured> {
    let pick = |full, quick| if options.quick { quick } else { full };
    let stdio =
        || Run::new("stdio", "stdio", "relay", &STDIO).small(pick("3000", "500"), pick("200000", "20000"));
    let http = |name, upstream, baseline, fronts| {
        Run::new(name, upstream, baseline, fronts).small(pick("2000", "500"), pick("40000", "5000"))
    };
    let big = Run {
        options: vec!["--cold", "0", "--sizes", "1000000,10000000"],
        ..Run::new("big", "stdio", "relay-frame", &BIG)
    };
    let start = Run {
        options: vec!["--cold", pick("19", "4"), "--sizes", ""],
        ..Run::new("start", "stdio", "relay", &START)
    };
    let huge = Run {
        command: "huge",
        options: vec!["--tmp", "/dev/shm"],
        ..Run::new("huge", "stdio", "relay", &HUGE)
    };
    let one = |run: Run<'_>| run.measure(bench, options);
    Ok(Measured {
        stdio: one(Run { more: &MORE_STDIO, ..stdio() })?,
        pinned: one(Run { name: "stdio-pinned", ..stdio() }.pinned())?,
        big: one(big.small("0", "0"))?,
        http: one(Run { more: &MORE_HTTP, ..http("http", "http", "bridge", &HTTP) })?,
        sse: one(Run { more: &MORE_SSE, ..http("sse", "sse", "toolway", &SSE) })?,
        start: one(start.small("0", "0"))?,
        huge: one(huge)?,
    })
}

impl<'a> Run<'a> {
    pub(super) fn new(name: &'a str, upstream: &'a str, baseline: &'a str, fronts: &'a [&'a str]) -> Self {
        Self { name, command: "ab", upstream, baseline, fronts, more: &[], options: vec![] }
    }

    /// So many sequential and pipelined calls; no large results but those asked for already.
    pub(super) fn small(mut self, calls: &'a str, pipe: &'a str) -> Self {
        if !self.options.contains(&"--sizes") {
            self.options.extend(["--sizes", ""]);
        }
        self.options.extend(["--calls", calls, "--pipe", pipe, "--no-request"]);
        self
    }

    pub(super) fn pinned(mut self) -> Self {
        self.options.push("--pin");
        self
    }
}

impl Run<'_> {
    pub(super) fn measure(&self, bench: &Bench<'_>, options: Options) -> Result<Summary> {
        let rows = bench.out.join(format!("{}.jsonl", self.name));
        if rows.exists() {
            std::fs::remove_file(&rows)?;
        }
        let rows = rows.to_string_lossy().into_owned();
        let more: &[&str] = if options.all_peers { self.more } else { &[] };
        let all = self.fronts.iter().chain(more).copied();
        let only: Vec<&str> = all.filter(|front| peers::is_there(&bench.peers, front)).collect();
        let rounds = options.rounds.to_string();
        let (only, common) = (only.join(","), ["--fronts", FRONTS, "--upstream", self.upstream]);
        let named = ["--only", &only, "--rounds", &rounds, "--baseline", self.baseline, "--out", &rows];
        let arguments = [&[self.command], &common[..], &named, &self.options[..]].concat();
        bench.harness(&arguments).run()?;
        let summary = bench.harness(&["summary", "--baseline", self.baseline, &rows]);
        Summary::parse(&summary.output(Duration::from_mins(1))?)
    }
}

/// The judged fault runs of one front and upstream.
#[derive(Debug)]
pub(super) struct Judged {
    /// Upstream, front, right of judged, and what was wrong, as the harness prints it.
    pub(super) lines: Vec<String>,
}

/// Toolway, and with `all` the peers at hand, through every fault of every transport.
pub(super) fn faults(bench: &Bench<'_>, all: bool) -> Result<Judged> {
    let rows = bench.out.join("faults.jsonl");
    if rows.exists() {
        std::fs::remove_file(&rows)?;
    }
    let rows = rows.to_string_lossy().into_owned();
    for (upstream, more) in
        [("stdio", &["mcpway"][..]), ("http", &["mcpway", "mcp-relay"]), ("sse", &["mcpway"])]
    {
        let fronts = ["toolway"].into_iter().chain(more.iter().copied().filter(|_| all));
        let only: Vec<&str> = fronts.filter(|front| peers::is_there(&bench.peers, front)).collect();
        let only = only.join(",");
        let arguments =
            ["faults", "--fronts", FRONTS, "--upstream", upstream, "--only", &only, "--out", &rows];
        bench.harness(&arguments).run()?;
    }
    let judged = bench.harness(&["judge", &rows]).output(Duration::from_mins(1))?;
    Ok(Judged { lines: judged.lines().filter(|l| !l.is_empty()).map(str::to_owned).collect() })
}
