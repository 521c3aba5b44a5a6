//! `toolway chat` through the real binary: lines of stdin, a scripted model, the chat's own tools, what is shown.
#![cfg(target_os = "linux")]

mod seat;
mod slash;
mod tools;
mod turns;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::{Child, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::{ModelScript, ModelServer, Rig};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A private home, and a model.
struct House {
    rig: Rig,
    model: ModelServer,
}

/// What the program said, and how it ended.
#[derive(Debug)]
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
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

    /// Nothing of this test is left.
    fn leave(self) -> Result<()> {
        self.rig.check_leftovers()
    }
}

impl Told {
    fn of(output: Output) -> Result<Self> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes);
        Ok(Self { code: output.status.code(), out: text(output.stdout)?, err: text(output.stderr)? })
    }

    fn ended(self, code: i32) -> Result<Self> {
        ensure!(self.code == Some(code), "exit code {:?}, not {code}: {self:#?}", self.code);
        Ok(self)
    }

    fn says(&self, texts: &[&str]) -> Result<()> {
        for text in texts {
            ensure!(self.out.contains(text) || self.err.contains(text), "{text:?} is not in {self:#?}");
        }
        Ok(())
    }
}

/// A model that calls a tool when it reads `go`, and says what it was told.
fn calls(tool: &str, arguments: &Value) -> Value {
    json!({"rules": [
        {"when": {"result": ""}, "reply": {"text": "That is it."}},
        {"when": {"user": "go", "tool": tool}, "reply": {"calls": [{"name": tool, "arguments": arguments}]}},
    ], "otherwise": {"text": "No such tool."}})
}
