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
use std::process::Stdio;

use anyhow::Result;
use serde_json::Value;
use toolway_testkit::{FakeTransport, Rig, Seat, Told, Upstream};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A private home, and servers for it.
struct House {
    rig: Rig,
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

    /// The same at a terminal.
    fn seat(&self, words: &[&str]) -> Result<Seat> {
        Seat::new(self.rig.command(words))
    }

    /// Nothing of this test is left.
    fn leave(self) -> Result<()> {
        self.rig.check_leftovers()
    }
}
