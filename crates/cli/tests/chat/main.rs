//! `toolway chat` through the real binary: lines of stdin, a scripted model, the chat's own tools, what is shown.
#![cfg(target_os = "linux")]

mod seat;
mod slash;
mod tools;
mod turns;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Child, Stdio};

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

    /// Writes a file below the test's directory.
    fn write(&self, path: &str, content: &str) -> Result<()> {
        let file = self.rig.path().join(path);
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        Ok(std::fs::write(file, content)?)
    }

    /// `toolway chat` with the model and these words.
    fn words(&self, words: &[&str]) -> Vec<OsString> {
        let base = format!("baseUrl={}", self.model.base_url());
        let work = self.rig.path().join("work");
        let first = ["chat", "--model", "scripted", "--model-param", &base, "--cwd"].map(OsString::from);
        first.into_iter().chain([work.into_os_string()]).chain(words.iter().map(OsString::from)).collect()
    }

    fn start(&self, words: &[&str]) -> Result<Child> {
        let mut command = self.rig.command(self.words(words));
        Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    /// A chat of these lines.
    fn chat(&self, words: &[&str], lines: &[&str]) -> Result<Told> {
        let mut child = self.start(words)?;
        let mut stdin = child.stdin.take().context("no stdin")?;
        for line in lines {
            // One that ended early reads no more.
            writeln!(stdin, "{line}").unwrap_or_default();
        }
        drop(stdin);
        Told::of(child.wait_with_output()?)
    }

    /// A chat at a terminal.
    fn seat(&self, words: &[&str]) -> Result<Seat> {
        Seat::new(self.rig.command(self.words(words)))
    }

    /// A file of servers over stdio: a name, a script, whether the agent waits for it.
    fn servers(&self, servers: &[(&str, &str)]) -> Result<String> {
        let mut entries = serde_json::Map::new();
        for (name, script) in servers {
            let line = self.rig.server_command(name, script)?;
            let words: Vec<String> =
                line.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let (command, args) = words.split_first().context("no command")?;
            entries.insert((*name).to_owned(), json!({"command": command, "args": args}));
        }
        self.write("servers.json", &json!({"mcpServers": entries}).to_string())?;
        Ok(self.rig.path().join("servers.json").to_string_lossy().into_owned())
    }

    /// Nothing of this test is left.
    fn leave(self) -> Result<()> {
        self.rig.check_leftovers()
    }
}

/// A model that calls a tool when it reads `go`, and says what it was told.
fn calls(tool: &str, arguments: &Value) -> Value {
    json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "That is it."}},
        {"when": {"user": "go", "tool": tool}, "reply": {"calls": [{"name": tool, "arguments": arguments}]}},
    ], "otherwise": {"text": "No such tool."}})
}
