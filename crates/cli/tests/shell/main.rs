//! The real binary as a client of scripted servers: what is printed where, exit codes, and that nothing is left.
#![cfg(target_os = "linux")]

mod calls;
mod configured;
mod doctor;
mod interpolation;
mod listing;
mod managing;
mod pages;
mod refusals;
mod talking;
mod terminals;

use std::ffi::OsString;
use std::process::{Output, Stdio};

use anyhow::{Result, ensure};
use serde_json::Value;
use toolway_testkit::{FakeTransport, Rig, Upstream};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A private home, and servers for it.
struct House {
    rig: Rig,
}

/// What the program said, and how it ended.
#[derive(Debug)]
struct Told {
    code: Option<i32>,
    out: String,
    err: String,
}

impl House {
    fn new() -> Result<Self> {
        Ok(Self { rig: Rig::new(TOOLWAY)? })
    }

    fn with_variable(self, name: &str, value: &str) -> Self {
        Self { rig: self.rig.variable(name, value) }
    }

    /// A server over stdio with this script, as a command line for `--command`.
    fn command(&self, script: &str) -> Result<String> {
        let words = self.words("adhoc", script)?;
        Ok(shlex::try_join(words.iter().map(String::as_str))?)
    }

    fn words(&self, name: &str, script: &str) -> Result<Vec<String>> {
        let line = self.rig.server_command(name, script)?;
        Ok(line.into_iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    /// An entry of a configuration file for a server over stdio.
    fn entry(&self, name: &str, script: &str) -> Result<Value> {
        let words = self.words(name, script)?;
        let (command, args) = words.split_first().ok_or_else(|| anyhow::anyhow!("no command"))?;
        Ok(serde_json::json!({ "command": command, "args": args }))
    }

    /// A server over HTTP or SSE with this script, and its address.
    fn serve(self, transport: FakeTransport, script: &str) -> Result<(Self, Upstream, String)> {
        let mut rig = self.rig.script(script);
        let upstream = rig.serve(transport, 0)?;
        let path = if transport == FakeTransport::Sse { "sse" } else { "mcp" };
        let url = format!("http://127.0.0.1:{}/{path}", upstream.peer.port());
        Ok((Self { rig }, upstream, url))
    }

    /// Writes a file below the directory in which the program runs.
    fn write(&self, path: &str, content: &str) -> Result<()> {
        let file = self.rig.path().join(path);
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        Ok(std::fs::write(file, content)?)
    }

    /// The content of a file below that directory.
    fn content(&self, path: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.rig.path().join(path))?)
    }

    /// The user's own configuration.
    fn configure(&self, servers: &Value) -> Result<()> {
        let text = serde_json::json!({ "mcpServers": servers });
        self.write("home/.config/toolway/mcp.json", &format!("{text:#}"))
    }

    fn run<A: Into<OsString>>(&self, args: impl IntoIterator<Item = A>) -> Result<Told> {
        let mut command = self.rig.command(args.into_iter().map(Into::into));
        Told::of(command.stdin(Stdio::null()).output()?)
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

    fn is(&self, code: i32, out: &str, err: &str) -> Result<()> {
        let fits = self.code == Some(code) && self.out == out && self.err == err;
        ensure!(fits, "{self:#?}\nis not {code}\n{out}\n{err}");
        Ok(())
    }

    fn json(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.out)?)
    }

    fn says(&self, texts: &[&str]) -> Result<()> {
        for text in texts {
            ensure!(self.out.contains(text) || self.err.contains(text), "{text:?} is not in {self:#?}");
        }
        Ok(())
    }
}
