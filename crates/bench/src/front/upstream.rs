//! An HTTP or SSE upstream that the harness runs itself, steered by lines on its stdin.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;

#[derive(Debug)]
pub(crate) struct HttpUpstream {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    pub(crate) port: u16,
}

impl HttpUpstream {
    /// Starts one on this port, or on any with 0, and waits until it listens.
    pub(crate) fn start(kind: &str, port: u16, flags: &[String]) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["server", "--transport", kind, "--port", &port.to_string()])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        let port = line.trim().strip_prefix("LISTEN ").and_then(|p| p.parse().ok());
        let port = port.with_context(|| format!("upstream said {line:?}"))?;
        Ok(Self { child, stdin, stdout, port })
    }

    /// One command, and the wait until it is in force.
    pub(crate) fn say(&mut self, command: &str) {
        let mut done = String::new();
        if writeln!(self.stdin, "{command}").and_then(|()| self.stdin.flush()).is_ok() {
            self.stdout.read_line(&mut done).ok();
        }
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for HttpUpstream {
    fn drop(&mut self) {
        self.kill();
    }
}
