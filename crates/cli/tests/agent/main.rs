//! `toolway agent` through the real binary: a scripted model, scripted servers, a scripted agent of the protocol. What is
//! printed where, exit codes, and that nothing is left.
#![cfg(target_os = "linux")]

mod ends;
mod kept;
mod permission;
mod runs;
mod shim;

use std::ffi::OsString;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_testkit::{ModelScript, ModelServer, Rig, Seat, Told};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A private home, and a model.
struct House {
    rig: Rig,
    model: ModelServer,
}

impl House {
    fn new(script: &Value) -> Result<Self> {
        let rig = Rig::new(TOOLWAY)?;
        std::fs::create_dir(rig.path().join("work"))?;
        Ok(Self { rig, model: ModelServer::start(ModelScript::of(script)?)? })
    }

    fn with_variable(self, name: &str, value: &str) -> Self {
        Self { rig: self.rig.variable(name, value), model: self.model }
    }

    /// Words that name the model and the folder.
    fn words(&self) -> Vec<OsString> {
        let work = self.rig.path().join("work");
        let base = format!("baseUrl={}", self.model.base_url());
        let words = ["--model", "scripted", "--model-param", &base, "--cwd"];
        words.iter().map(OsString::from).chain([work.into_os_string()]).collect()
    }

    /// `toolway agent` with these words.
    fn agent(&self, words: &[&str]) -> Result<Told> {
        let all = std::iter::once("agent").chain(words.iter().copied());
        let mut command = self.rig.command(all);
        Told::of(command.stdin(Stdio::null()).output()?)
    }

    /// The words of `toolway agent run` with the model.
    fn run_words(&self, words: &[&str]) -> Vec<OsString> {
        let first = ["agent", "run"].into_iter().chain(words.iter().copied()).map(OsString::from);
        first.chain(self.words()).collect()
    }

    /// `toolway agent run` with the model.
    fn run(&self, words: &[&str]) -> Result<Told> {
        let mut command = self.rig.command(self.run_words(words));
        Told::of(command.stdin(Stdio::null()).output()?)
    }

    /// The same at a terminal.
    fn seat(&self, words: &[&str]) -> Result<Seat> {
        Seat::new(self.rig.command(self.run_words(words)))
    }

    /// A file of one server over stdio.
    fn servers(&self, script: &str) -> Result<String> {
        let line = self.rig.server_command("one", script)?;
        let words: Vec<String> = line.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let (command, args) = words.split_first().context("no command")?;
        let file = self.rig.path().join("servers.json");
        let entry = json!({"command": command, "args": args, "required": true});
        std::fs::write(&file, json!({"mcpServers": {"one": entry}}).to_string())?;
        Ok(file.to_string_lossy().into_owned())
    }

    /// The ids of all agents, the youngest first.
    fn ids(&self) -> Result<Vec<String>> {
        let list = self.agent(&["list", "--all", "--json"])?.ended(0)?.json()?;
        let agents = list["agents"].as_array().context("no agents")?;
        Ok(agents.iter().filter_map(|agent| agent["id"].as_str().map(str::to_owned)).collect())
    }

    /// Nothing of this test is left.
    fn leave(self) -> Result<()> {
        self.rig.check_leftovers()
    }
}
