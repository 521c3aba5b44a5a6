//! One test of a relay: a private home, a fake upstream, the relay between it and a client, and the checks at the end.
//! It knows how a relay is called (`PROGRAM stdio|sse|streamable-http OPTIONS`) and nothing else of it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;

use crate::binaries::fakemcp;
use crate::client::{Client, SOON};
use crate::fake::FakeTransport;
use crate::hub::{Hub, Peer};
use crate::leaks::{Leaks, files};

/// What a test of a relay needs, before it is started.
#[derive(Debug)]
pub struct Rig {
    program: PathBuf,
    directory: TempDir,
    hub: Hub,
    mark: String,
    script: String,
    options: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    wrapper: Option<String>,
    behind_shell: bool,
    deaf: bool,
}

/// A relay that runs, its client, and its fake upstream.
#[derive(Debug)]
pub struct Session {
    /// The client of the relay.
    pub client: Client,
    rig: Rig,
    upstream: Option<Peer>,
    server: Option<Upstream>,
}

/// A fake HTTP server that the test itself has started.
#[derive(Debug)]
pub struct Upstream {
    process: Child,
    /// Its end of the test's hub.
    pub peer: Peer,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        // It may have ended by itself.
        self.process.kill().unwrap_or_default();
        self.process.wait().map(drop).unwrap_or_default();
    }
}

impl Rig {
    /// For the relay `program`: limits of 10000 and 2000 characters, results saved below [`Rig::saved`].
    pub fn new(program: impl AsRef<Path>) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let directory = tempfile::Builder::new().prefix("toolway-rig-").tempdir()?;
        for name in ["home", "tmp"] {
            std::fs::create_dir(directory.path().join(name))?;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let rig = Self {
            program: program.as_ref().to_owned(),
            hub: Hub::new()?,
            mark: format!("rig-mark-{}-{number}-end", std::process::id()),
            script: String::new(),
            options: Vec::new(),
            variables: Vec::new(),
            wrapper: None,
            behind_shell: false,
            deaf: false,
            directory,
        };
        let saved = rig.saved();
        Ok(rig
            .options(&["--max-response-chars", "10000", "--preview-chars", "2000"])
            .option("--output-dir")
            .option(saved))
    }

    /// The upstream's script.
    #[must_use]
    pub fn script(mut self, text: &str) -> Self {
        text.clone_into(&mut self.script);
        self
    }

    /// One more option of the relay.
    #[must_use]
    pub fn option(mut self, option: impl AsRef<OsStr>) -> Self {
        self.options.push(option.as_ref().to_owned());
        self
    }

    /// More options of the relay.
    #[must_use]
    pub fn options(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(Into::into));
        self
    }

    /// Another value for an option that [`Rig::new`] has set.
    #[must_use]
    pub fn instead(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        if let Some(at) = self.options.iter().position(|option| option == name) {
            self.options.drain(at..(at + 2).min(self.options.len()));
        }
        self.option(name).option(value)
    }

    /// Without an option that [`Rig::new`] has set.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        if let Some(at) = self.options.iter().position(|option| option == name) {
            self.options.drain(at..(at + 2).min(self.options.len()));
        }
        self
    }

    /// A variable of the relay's environment, which else has PATH, HOME and TMPDIR only.
    #[must_use]
    pub fn variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.variables.push(pair);
        self
    }

    /// The relay is started by this shell code, which ends with `exec "$0" "$@"`.
    #[must_use]
    pub fn wrapped(mut self, code: &str) -> Self {
        self.wrapper = Some(code.to_owned());
        self
    }

    /// The relay's umask, in octal.
    #[must_use]
    pub fn umask(self, mask: &str) -> Self {
        self.wrapped(&format!("umask {mask}; exec \"$0\" \"$@\""))
    }

    /// A stdio upstream is started by a shell, which stays its parent.
    #[must_use]
    pub fn behind_shell(mut self) -> Self {
        self.behind_shell = true;
        self
    }

    /// The client reads nothing until it is told to.
    #[must_use]
    pub fn deaf(mut self) -> Self {
        self.deaf = true;
        self
    }

    /// The test's own directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Where results are saved.
    pub fn saved(&self) -> PathBuf {
        self.path().join("spill")
    }

    /// The word that every process of this test carries.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// The relay with these arguments, in the test's own environment.
    pub fn command<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        let mut command = match &self.wrapper {
            None => Command::new(&self.program),
            Some(code) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", code]);
                shell.arg(&self.program);
                shell
            }
        };
        command.args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.path().join("home"));
        command.env("TMPDIR", self.path().join("tmp"));
        command.env("TOOLWAY_TESTKIT_MARK", &self.mark);
        command.envs(self.variables.iter().map(|(n, v)| (n, v)));
        command.current_dir(self.path());
        command
    }

    /// The command line of a fake upstream.
    pub fn upstream_command(&self, transport: FakeTransport, port: u16) -> Result<Vec<OsString>> {
        let name = match transport {
            FakeTransport::Stdio => "stdio",
            FakeTransport::Http => "http",
            FakeTransport::Sse => "sse",
        };
        let script = self.path().join("upstream.script");
        std::fs::write(&script, &self.script)?;
        let mut line = vec![fakemcp()?.into_os_string(), script.into_os_string()];
        let (test, port) = (self.hub.address().to_string(), port.to_string());
        line.extend(["--transport", name, "--test", &test, "--port", &port].map(Into::into));
        if transport == FakeTransport::Stdio {
            line.extend(["--mark".into(), self.mark.clone().into()]);
        }
        if self.behind_shell {
            let shell = ["sh", "-c", "\"$@\"; exit $?", "sh"].map(OsString::from);
            line = shell.into_iter().chain(line).collect();
        }
        Ok(line)
    }

    /// The command line of one more fake server over stdio, with a script of its own.
    pub fn server_command(&self, name: &str, script: &str) -> Result<Vec<OsString>> {
        let file = self.path().join(format!("{name}.script"));
        std::fs::write(&file, script)?;
        let test = self.hub.address().to_string();
        let mut line = vec![fakemcp()?.into_os_string(), file.into_os_string()];
        line.extend(["--test", &test, "--mark", &self.mark].map(OsString::from));
        Ok(line)
    }

    /// The next fake server that has been started.
    pub fn arrival(&mut self) -> Result<Peer> {
        self.hub.arrival("server", SOON)
    }

    /// Whether a fake server has been started that nobody has asked for yet.
    pub fn has_started(&mut self) -> bool {
        self.hub.has_arrived("server")
    }

    /// Starts a fake HTTP or SSE server.
    pub fn serve(&mut self, transport: FakeTransport, port: u16) -> Result<Upstream> {
        let line = self.upstream_command(transport, port)?;
        let (program, arguments) = line.split_first().context("no command")?;
        let mut process =
            Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
        match self.hub.arrival("server", SOON) {
            Ok(peer) => Ok(Upstream { process, peer }),
            Err(error) => {
                process.kill()?;
                process.wait()?;
                Err(error)
            }
        }
    }

    /// Starts a fake HTTP server that no relay is told of.
    pub fn serve_apart(mut self) -> Result<(Self, Upstream)> {
        let server = self.serve(FakeTransport::Http, 0)?;
        Ok((self, server))
    }

    /// Starts the upstream, the relay before it, and a client.
    pub fn start(mut self, transport: FakeTransport) -> Result<Session> {
        let server = match transport {
            FakeTransport::Stdio => None,
            _ => Some(self.serve(transport, 0)?),
        };
        let mut command = match &server {
            None => {
                let line = self.upstream_command(transport, 0)?;
                let mut words = vec!["stdio".into()];
                words.extend(self.options.iter().cloned());
                words.push("--".into());
                words.extend(line);
                self.command(words)
            }
            Some(server) => self.remote(transport, server.peer.port()),
        };
        let client = if self.deaf { Client::start_deaf(&mut command)? } else { Client::start(&mut command)? };
        Ok(Session { client, rig: self, upstream: None, server })
    }

    /// The relay for a server on this port.
    pub fn remote(&self, transport: FakeTransport, port: u16) -> Command {
        let (kind, path) = match transport {
            FakeTransport::Sse => ("sse", "/sse"),
            _ => ("streamable-http", "/mcp?key=k-e-y"),
        };
        let mut words: Vec<OsString> = vec![kind.into()];
        words.extend(self.options.iter().cloned());
        words.push("--url".into());
        words.push(format!("http://127.0.0.1:{port}{path}").into());
        self.command(words)
    }

    /// Fails if a process of this test or a temporary file of the relay is left.
    pub fn check_leftovers(&self) -> Result<()> {
        Leaks::new(&self.mark).check(SOON)?;
        let left = files(&self.path().join("tmp"));
        if !left.is_empty() {
            bail!("temporary files are left: {left:?}");
        }
        Ok(())
    }
}

impl Session {
    /// The fake upstream, once the relay has started it.
    pub fn upstream(&mut self) -> Result<&mut Peer> {
        if let Some(server) = &mut self.server {
            return Ok(&mut server.peer);
        }
        if self.upstream.is_none() {
            self.upstream = Some(self.rig.hub.arrival("server", SOON)?);
        }
        self.upstream.as_mut().context("no upstream")
    }

    /// A process that a script has started with `spawn`.
    pub fn spawned(&mut self) -> Result<Peer> {
        self.rig.hub.arrival("linger", SOON)
    }

    /// What the test is made of.
    pub fn rig(&self) -> &Rig {
        &self.rig
    }

    /// Ends the fake HTTP server; a later [`Session::serve_again`] takes its port.
    pub fn stop_upstream(&mut self) -> Result<u16> {
        let server = self.server.take().context("no server of our own")?;
        Ok(server.peer.port())
    }

    /// Starts a fake HTTP server on this port.
    pub fn serve_again(&mut self, transport: FakeTransport, port: u16) -> Result<()> {
        self.server = Some(self.rig.serve(transport, port)?);
        Ok(())
    }

    /// Closes stdin and makes every check: all requests answered, no breach, exit code 0, nothing left. Returns
    /// the lines that no test has asked for.
    pub fn finish(mut self) -> Result<Vec<String>> {
        self.client.close_stdin();
        let rest = self.client.rest(SOON)?;
        let status = self.client.wait_exit(SOON)?;
        if !status.success() {
            bail!("{status}; stderr: {}", self.client.stderr());
        }
        self.client.capture.check_complete()?;
        self.check_end()?;
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        Ok(rest.into_iter().map(text).collect())
    }

    /// Waits for the end that something else brings, and makes every check but that of the exit code.
    pub fn ended(mut self) -> Result<(ExitStatus, Vec<String>)> {
        let rest = self.client.rest(SOON)?;
        let status = self.client.wait_exit(SOON)?;
        self.client.capture.check_complete()?;
        self.check_end()?;
        let text = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        Ok((status, rest.into_iter().map(text).collect()))
    }

    /// Fails if anything of this test is left, once the relay has ended.
    pub fn check_end(&mut self) -> Result<()> {
        if let Some(peer) = &mut self.upstream {
            peer.wait_gone(Duration::from_secs(10))?;
        }
        self.rig.check_leftovers()
    }
}
