//! A real agent behind the Agent Client Protocol: opencode, with a scripted model, in a network namespace in which there
//! is nothing but the loopback. It plays the scenario that the native runtime plays, and has to tell the same.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::interop::{DEADLINE, Stage, alone};
use crate::peers::{NodePeers, Peers};
use crate::process::{Step, tail};

/// The tests that have to have run: both runtimes, and what they share.
const PLAYED: [&str; 3] = [
    "the_native_runtime_plays_the_scenario",
    "a_scripted_agent_plays_the_scenario",
    "opencode_plays_the_scenario",
];

/// The program, where it is installed.
pub(crate) fn program(peers: &NodePeers) -> Option<PathBuf> {
    let names = ["opencode-linux-x64", "opencode-linux-arm64"];
    names.iter().map(|name| peers.file(&format!("{name}/bin/opencode"))).find(|path| path.is_file())
}

pub(super) fn is_there(peers: &Peers) -> bool {
    peers.opencode.as_ref().and_then(program).is_some()
}

/// Builds the scenario's test, with the network that a build may need, and runs it without any.
pub(super) fn run(stage: &Stage, name: &str) -> Result<()> {
    let opencode = stage.peers.opencode.as_ref().and_then(program).context("opencode is not installed")?;
    let folder = stage.folder(name)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let test = ["test", "--package", "toolway-agent", "--test", "runtimes"];
    let build = Step::new(&cargo).args(&test).args(&["--quiet", "--no-run"]).dir(&stage.root);
    build.output(DEADLINE * 8)?;
    // The test kit's own programs are built by the tests: they have to be there before the network is gone.
    let kit = ["build", "--quiet", "--package", "toolway-testkit", "--bins"];
    Step::new(&cargo).args(&kit).dir(&stage.root).output(DEADLINE * 8)?;
    let step = alone::step(&cargo)?
        .args(&test)
        .args(&["--offline", "--", "--include-ignored", "--test-threads", "1"])
        .dir(&stage.root)
        .env("TOOLWAY_OPENCODE", &opencode)
        .env("TMPDIR", &folder);
    let finished = step.capture(DEADLINE * 3)?;
    // A test that is gone, or has another name, must not pass for one that went well.
    let has_played = |test: &str| finished.stdout.contains(&format!("test {test} ... ok"));
    let missing: Vec<&str> = PLAYED.into_iter().filter(|test| !has_played(test)).collect();
    if !finished.success || !missing.is_empty() {
        let missing = missing.join(", ");
        bail!("not played: {missing}\n{}\n{}", tail(&finished.stdout), tail(&finished.stderr));
    }
    Ok(())
}
