//! Commands of an agent under the real binary as their supervisor, in a sandbox and out of one.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolway_agent::{
    Arguments, Capabilities, Sandbox, SandboxConfig, ToolContext, ToolOutput, ToolRegistry, ToolSession,
    ToolSetup,
};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

struct Place {
    folder: TempDir,
    session: Arc<ToolSession>,
}

impl Place {
    fn new(boxed: bool) -> Result<Option<Self>> {
        let folder = TempDir::new()?;
        let (work, temp) = (folder.path().join("work"), folder.path().join("temp"));
        fs::create_dir(&work)?;
        fs::create_dir(&temp)?;
        let mut setup = ToolSetup::new(work.clone(), temp.clone());
        setup.variables.insert("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
        setup.supervise = Some(PathBuf::from(TOOLWAY));
        if boxed {
            let Ok((sandbox, _)) = Sandbox::close(&SandboxConfig::default(), &[work], &temp, None) else {
                return Ok(None);
            };
            setup.sandbox = sandbox;
        }
        Ok(Some(Self { folder, session: Arc::new(ToolSession::new(setup, None)) }))
    }

    async fn shell(&self, args: serde_json::Value) -> Result<ToolOutput> {
        let tools = ToolRegistry::built_in(&Capabilities::default());
        let tool = tools.find("shell").context("no shell")?;
        let context = ToolContext::new(Arc::clone(&self.session), "call", CancellationToken::new());
        let args = Arguments::of(args).map_err(|output| anyhow::anyhow!(output.text))?;
        Ok(tool.run(&context, args).await)
    }

    async fn number(&self, file: &str) -> Result<i32> {
        let path = self.folder.path().join("work").join(file);
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(number) = fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()) {
                return Ok(number);
            }
            ensure!(Instant::now() < deadline, "{file} was not written");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn gone(number: i32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        if stat.is_empty() || stat.contains(") Z ") {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn what_has_left_its_group_and_its_variables_ends_with_the_command_too() -> Result<()> {
    for boxed in [false, true] {
        let Some(place) = Place::new(boxed)? else { continue };
        let command = "env -i /usr/bin/setsid /bin/sh -c 'echo $$ > two; exec /bin/sleep 60' >/dev/null 2>&1 & \
                       while ! [ -s two ]; do sleep 0.01; done; echo ok; exit 3";
        let output = place.shell(json!({"command": command})).await?;
        ensure!(output.text.starts_with("ok\n[exit code 3"), "{}", output.text);
        ensure!(gone(place.number("two").await?).await, "boxed: {boxed}");
    }
    Ok(())
}

#[tokio::test]
async fn a_supervised_command_in_the_background_ends_with_the_agent() -> Result<()> {
    let Some(place) = Place::new(false)? else { return Ok(()) };
    let output = place.shell(json!({"command": "echo $$ > one; exec sleep 60", "background": true})).await?;
    ensure!(output.text.contains("shell-1"), "{}", output.text);
    let number = place.number("one").await?;
    place.session.close().await;
    ensure!(gone(number).await);
    Ok(())
}

#[tokio::test]
async fn a_supervised_command_in_the_box_writes_inside_only() -> Result<()> {
    let Some(place) = Place::new(true)? else { return Ok(()) };
    let output = place.shell(json!({"command": "echo in > a; cat a; echo out > ../b"})).await?;
    ensure!(output.is_error && output.text.starts_with("in\n"), "{}", output.text);
    ensure!(!place.folder.path().join("b").exists());
    Ok(())
}
