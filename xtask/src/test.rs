//! `cargo xtask test`: everything that can be tested on this machine, and in words what could not.

use anyhow::{Result, bail};

use crate::interop;
use crate::process::Step;
use crate::workspace::Workspace;

/// Builds the binaries that tests start, runs the workspace's tests, then the interop suites.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let with_interop = match arguments {
        [] => true,
        [word] if word == "--no-interop" => false,
        _ => bail!("usage: cargo xtask test [--no-interop]"),
    };
    workspace.cargo(&["build", "--workspace", "--bins", "--locked"]).run()?;
    if has_nextest(workspace) {
        workspace.cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"]).run()?;
        workspace.cargo(&["test", "--workspace", "--locked", "--doc"]).run()?;
    } else {
        println!("cargo-nextest is not installed: using cargo test");
        workspace.cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]).run()?;
    }
    if with_interop {
        interop::run(workspace, &[])
    } else {
        println!("left out: the interop suites, as asked");
        Ok(())
    }
}

fn has_nextest(workspace: &Workspace) -> bool {
    let probe = Step::new("cargo").args(&["nextest", "--version"]).dir(workspace.root());
    probe.output(std::time::Duration::from_secs(30)).is_ok()
}
