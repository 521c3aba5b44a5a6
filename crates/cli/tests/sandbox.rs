//! The real binary as the helper that closes a sandbox around itself and becomes a server.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use toolway_agent::{Sandbox, SandboxConfig};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A command line in a sandbox that leaves `work` open; `None`: this system has none.
fn boxed(work: &Path, script: &str) -> Result<Option<Output>> {
    let config = SandboxConfig { no_temp: true, ..SandboxConfig::default() };
    let Ok((sandbox, _)) = Sandbox::close(&config, &[work.to_owned()], Path::new("/none"), None) else {
        return Ok(None);
    };
    let args = vec!["-c".into(), script.into()];
    let helper = Some(Path::new(TOOLWAY));
    let (program, args) = sandbox.server_command("/bin/bash".into(), args, work, helper)?;
    ensure!(program == Path::new(TOOLWAY));
    Ok(Some(Command::new(program).args(args).current_dir(work).output()?))
}

#[test]
fn a_server_in_the_box_writes_inside_only_and_connects_to_nobody() -> Result<()> {
    let place = TempDir::new()?;
    let work = place.path().join("work");
    fs::create_dir(&work)?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let script = format!(
        "echo in > a; echo out > ../b; (exec 3<>/dev/tcp/127.0.0.1/{port}) && echo connected; echo \"$0 ended\"; exit 7"
    );
    let Some(output) = boxed(&work, &script)? else { return Ok(()) };
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.code() == Some(7), "{out}{err}");
    ensure!(out.contains("ended") && !out.contains("connected"), "{out}");
    ensure!(fs::read_to_string(work.join("a")).context("inside")? == "in\n");
    ensure!(!place.path().join("b").exists() && err.contains("Permission denied"), "{err}");
    Ok(())
}

#[test]
fn rules_that_cannot_be_read_start_nothing() -> Result<()> {
    for args in [&["__sandbox"][..], &["__sandbox", "{}", "--", "true"], &["__sandbox", "x", "--", "true"]] {
        let output = Command::new(TOOLWAY).args(args).output()?;
        ensure!(output.status.code() == Some(125), "{output:?}");
        ensure!(String::from_utf8_lossy(&output.stderr).starts_with("toolway-sandbox: "), "{output:?}");
    }
    Ok(())
}
