//! A home of its own, whose browser tells the test which addresses it is given.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::oauth::{Browser, Issuer};
use toolway_testkit::{Client, Leaks, SOON, Told, fakemcp};

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

pub(crate) struct Home {
    directory: tempfile::TempDir,
    mark: String,
    addresses: Receiver<String>,
}

impl Home {
    pub(crate) fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let directory = tempfile::Builder::new().prefix("toolway-signing-").tempdir()?;
        std::fs::create_dir(directory.path().join("home"))?;
        let pipe = directory.path().join("addresses");
        ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe can be made");
        let browser = directory.path().join("browser");
        std::fs::write(&browser, format!("#!/bin/sh\nprintf '%s\\n' \"$1\" > '{}'\n", pipe.display()))?;
        std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755))?;
        // Open for writing too: it has no end between two browsers.
        let reader = std::fs::File::options().read(true).write(true).open(&pipe)?;
        let (sender, addresses) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mark = format!("signing-{}-{}-end", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { directory, mark, addresses })
    }

    /// `one`, which the issuer protects, and `two`, which lets everybody in.
    pub(crate) fn configure(&self, issuer: &Issuer) -> Result<()> {
        let script = "tool {\"name\":\"plain\",\"inputSchema\":{\"type\":\"object\"}}\non tools/call/plain -> text fine";
        let servers = json!({ "mcpServers": {
            "one": { "url": issuer.resource_url() },
            "two": { "command": fakemcp()?, "args": ["--script", script, "--mark", self.mark] },
        }});
        Ok(std::fs::write(self.directory.path().join("servers.json"), servers.to_string())?)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOOLWAY);
        command.args(arguments).env_clear().current_dir(self.directory.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.directory.path().join("home"));
        command.env("BROWSER", self.directory.path().join("browser"));
        command.env("TOOLWAY_TESTKIT_MARK", &self.mark);
        command
    }

    /// A command about the configured servers, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Result<Told> {
        let arguments = [arguments, &["--config", "servers.json"]].concat();
        Told::of(self.command(&arguments).stdin(Stdio::null()).output()?)
    }

    /// A relay before the issuer's resource that signs in.
    pub(crate) fn relay(&self, issuer: &Issuer) -> Result<Client> {
        Client::start(&mut self.command(&["streamable-http", "--oauth", "--url", issuer.resource_url()]))
    }

    /// A gateway with both servers, after its handshake.
    pub(crate) fn gateway(&self) -> Result<Client> {
        let mut client =
            Client::start(&mut self.command(&["serve", "--config", "servers.json", "--wait", "all"]))?;
        client.handshake()?;
        Ok(client)
    }

    /// The address that the browser is given next.
    pub(crate) fn address(&self) -> Result<String> {
        self.addresses.recv_timeout(SOON).context("no browser was opened")
    }

    /// No browser was opened that the test has not heard of.
    pub(crate) fn is_quiet(&self) -> bool {
        self.addresses.try_recv().is_err()
    }

    /// `toolway login one`, by a person who agrees.
    pub(crate) fn log_in(&self) -> Result<()> {
        let mut command = self.command(&["login", "one", "--config", "servers.json"]);
        let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let visited = self.address().and_then(|address| Browser::open(&address));
        let told = ended(running)?;
        visited?;
        told.ended(0).map(drop)
    }

    /// Nothing of this test is left.
    pub(crate) fn leave(self) -> Result<()> {
        ensure!(self.is_quiet(), "one more browser was opened");
        Leaks::new(&self.mark).check(SOON)
    }
}

fn ended(running: Child) -> Result<Told> {
    Told::of(running.wait_with_output()?)
}

/// The error of an answer: its text and its data.
pub(crate) fn error(answer: &[u8]) -> Result<(String, Value)> {
    let answer: Value = serde_json::from_slice(answer)?;
    let text = answer["error"]["message"].as_str().with_context(|| format!("no error: {answer}"))?;
    Ok((text.to_owned(), answer["error"]["data"].clone()))
}

/// The answer holds this text, and is a result.
pub(crate) fn says(answer: &[u8], text: &str) -> Result<()> {
    let answer: Value = serde_json::from_slice(answer)?;
    ensure!(answer["result"].to_string().contains(text), "{answer}");
    Ok(())
}

/// The client closes, and the program ends with this code.
pub(crate) fn finish(mut client: Client, code: i32) -> Result<()> {
    client.close_stdin();
    let status = client.wait_exit(SOON)?;
    ensure!(status.code() == Some(code), "{status}: {}", client.stderr());
    Ok(())
}
