//! `cargo xtask bench`: measures the release binary beside yardsticks and peers, and writes what came out into
//! docs/performance.md. It starts `toolway-bench`, which measures; it knows the targets and the page.

mod agent;
mod bridge;
mod gateway;
mod machine;
mod page;
mod peers;
mod runs;
mod summary;
mod targets;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::process::Step;
use crate::workspace::Workspace;

const USAGE: &str = "usage: cargo xtask bench relay  [--rounds N] [--quick] [--peers] [--no-write]
       cargo xtask bench gateway [--rounds N] [--quick] [--peers] [--no-write]
       cargo xtask bench bridge  [--rounds N] [--quick] [--no-write]
       cargo xtask bench agent   [--rounds N] [--quick] [--no-write]
       cargo xtask bench faults [--peers] [--no-write]

  relay    speed, start and memory over stdio, HTTP and SSE, and a result of 1 GiB; about five minutes
  gateway  calls, start, lists, idle memory and reloads with many servers; about ten minutes
  bridge   calls of an agent to a host's tools, beside a bare loopback server; about two minutes
  agent    start, turns, events, memory and searches of agents; about five minutes
  faults   43 runs in which the upstream or the client breaks; about five minutes
  --peers  more peers, from npm, PyPI and crates.io (about 1 GB; longer)
  --quick  two rounds of fewer calls, to see that everything runs";

/// The folder of installed peers within the workspace's, and the file of fronts.
const PEERS: &str = "bench";
const FRONTS: &str = "crates/bench/fronts.json";

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    rounds: usize,
    quick: bool,
    all_peers: bool,
    write: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut out = Self { rounds: 5, quick: false, all_peers: false, write: true };
        let mut rounds = None;
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--quick" => out.quick = true,
                "--peers" => out.all_peers = true,
                "--no-write" => out.write = false,
                "--rounds" => {
                    rounds = rest.next().and_then(|n| n.parse().ok()).filter(|n| (1..=50).contains(n));
                }
                _ => bail!("{argument}\n\n{USAGE}"),
            }
        }
        if arguments.iter().any(|a| a == "--rounds") && rounds.is_none() {
            bail!("--rounds needs a number from 1 to 50\n\n{USAGE}");
        }
        out.rounds = rounds.unwrap_or(if out.quick { 2 } else { out.rounds });
        Ok(out)
    }
}

/// The built programs and the folders of one run.
#[derive(Debug)]
pub(crate) struct Bench<'a> {
    workspace: &'a Workspace,
    toolway: PathBuf,
    harness: PathBuf,
    peers: PathBuf,
    /// Where the rows go.
    out: PathBuf,
}

impl Bench<'_> {
    /// A command of the harness, with the fronts' variables set.
    fn harness(&self, arguments: &[&str]) -> Step {
        Step::new(&self.harness)
            .args(arguments)
            .dir(self.workspace.root())
            .env("TOOLWAY", &self.toolway)
            .env("P", &self.peers)
    }
}

/// Dispatches `bench`.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let Some((what, rest)) = arguments.split_first() else { bail!("{USAGE}") };
    let options = Options::parse(rest)?;
    match what.as_str() {
        "relay" => relay(&prepare(workspace, options)?, options),
        "gateway" => gateway(&prepare(workspace, options)?, options),
        "bridge" => bridge(&build(workspace)?, options),
        "agent" => agent(&build(workspace)?, options),
        "faults" => faults(&prepare(workspace, options)?, options),
        _ => bail!("{USAGE}"),
    }
}

/// Builds what is measured and installs the peers at hand.
fn prepare(workspace: &Workspace, options: Options) -> Result<Bench<'_>> {
    let bench = build(workspace)?;
    peers::install(workspace, &bench.peers, options.all_peers)?;
    Ok(bench)
}

fn build(workspace: &Workspace) -> Result<Bench<'_>> {
    let build = ["build", "--release", "--locked", "-p", "toolway", "-p", "toolway-bench"];
    workspace.cargo(&build).run()?;
    let target = target_folder(workspace)?;
    let peers = workspace.peers().join(PEERS);
    let out = target.join("bench");
    std::fs::create_dir_all(&out)?;
    let release = target.join("release");
    Ok(Bench {
        workspace,
        toolway: release.join("toolway"),
        harness: release.join("toolway-bench"),
        peers,
        out,
    })
}

fn target_folder(workspace: &Workspace) -> Result<PathBuf> {
    let metadata = workspace.cargo(&["metadata", "--format-version", "1", "--no-deps", "--locked"]);
    let metadata = metadata.output(std::time::Duration::from_mins(2))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata)?;
    match metadata["target_directory"].as_str() {
        Some(folder) => Ok(PathBuf::from(folder)),
        None => bail!("cargo metadata names no target folder"),
    }
}

fn page(bench: &Bench<'_>) -> PathBuf {
    bench.workspace.root().join("docs/performance.md")
}

fn relay(bench: &Bench<'_>, options: Options) -> Result<()> {
    let measured = runs::measure(bench, options)?;
    let facts = machine::facts(bench)?;
    let block = page::relay(&measured, &facts, options.rounds, options.quick);
    publish(&page(bench), "bench:relay", &block, options.write)
}

fn gateway(bench: &Bench<'_>, options: Options) -> Result<()> {
    let measured = gateway::measure(bench, options)?;
    let block = gateway::block(&measured, &machine::facts(bench)?, options);
    publish(&page(bench), "bench:gateway", &block, options.write)
}

fn bridge(bench: &Bench<'_>, options: Options) -> Result<()> {
    let measured = bridge::measure(bench, options)?;
    let block = bridge::block(&measured, &machine::facts(bench)?, options);
    publish(&page(bench), "bench:bridge", &block, options.write)
}

fn agent(bench: &Bench<'_>, options: Options) -> Result<()> {
    let measured = agent::measure(bench, options)?;
    let block = agent::block(&measured, &machine::facts(bench)?, options);
    publish(&page(bench), "bench:agent", &block, options.write)
}

fn faults(bench: &Bench<'_>, options: Options) -> Result<()> {
    let judged = runs::faults(bench, options.all_peers)?;
    let block = page::faults(&judged, &machine::today()?);
    publish(&page(bench), "bench:faults", &block, options.write)
}

fn publish(path: &Path, marker: &str, block: &str, write: bool) -> Result<()> {
    println!("{block}");
    if write {
        let text = std::fs::read_to_string(path)?;
        std::fs::write(path, page::replaced(&text, marker, block)?)?;
        println!("written to {}", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_have_defaults_and_bounds() {
        let all = Options { rounds: 5, quick: false, all_peers: false, write: true };
        assert_eq!(parse("").ok(), Some(all));
        assert_eq!(parse("--quick").ok(), Some(Options { rounds: 2, quick: true, ..all }));
        assert_eq!(
            parse("--rounds 7 --peers --no-write --quick").ok(),
            Some(Options { rounds: 7, quick: true, all_peers: true, write: false })
        );
        for wrong in ["--rounds", "--rounds 0", "--rounds x", "--fast"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
