//! `toolway bridge` with a scripted host: what official clients see of its tools, and what the host hears of their
//! calls. The host starts the bridge and the clients; what is to come of it stands beside each step of the scenario.

pub(super) mod clients;
pub(super) mod conformance;
mod expect;
pub(super) mod inspector;
pub(super) mod play;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::interop::upstream::text;
use crate::interop::{DEADLINE, Stage, large_text};
use crate::process::Step;

/// A scenario's tools and settings as the host's script, still without agents.
#[derive(Debug)]
struct Script {
    folder: PathBuf,
    scenario: Value,
}

impl Script {
    fn read(stage: &Stage, name: &str, scenario: &str) -> Result<Self> {
        let path = stage.interop(&format!("scenarios/bridge/{scenario}.json"));
        let file = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let file = file.replace("{large}", &large_text());
        let scenario = serde_json::from_str(&file).with_context(|| path.display().to_string())?;
        Ok(Self { folder: stage.folder(name)?, scenario })
    }

    /// The host's command, with a script of these members beside the tools.
    fn host(&self, stage: &Stage, members: &[(&str, Value)]) -> Result<Step> {
        let front = text(&stage.front);
        let (settings, saved) = (self.file("settings.json"), self.file("saved"));
        let bridge = [&front, "bridge", "--settings", &text(&settings), "--output-dir", &text(&saved)];
        let mut script = json!({
            "bridge": bridge,
            "tools": self.scenario["tools"],
            "sessions": self.scenario["sessions"],
        });
        for (name, value) in members {
            script[*name] = value.clone();
        }
        let path = self.file("script.json");
        fs::write(&path, script.to_string())?;
        let node = stage.peers.node24.as_ref().context("no Node.js 24")?;
        let host = Step::new(&node.node).arg(stage.interop("servers/bridge_host.mjs")).arg(path);
        Ok(host.dir(&self.folder).env("HOME", &self.folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// What the host has heard, when all its visits are over.
fn heard(host: &Step) -> Result<Value> {
    serde_json::from_str(&host.output(DEADLINE)?).context("the host has printed no JSON")
}

/// What the agent of a visit has printed.
fn printed(agent: &Value) -> Result<&str> {
    let text = |stream: &str| agent[stream].as_str().unwrap_or_default();
    ensure!(agent["code"] == 0, "the agent ended with {}:\n{}", agent["code"], text("stderr"));
    Ok(text("stdout"))
}
