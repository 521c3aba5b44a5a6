//! Owns a small MCP client over the pipes of a child process: one request at a time, each with a deadline.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use toolway_wire::{Scanner, Verdict};

/// No answer of the demonstration takes longer.
const DEADLINE: Duration = Duration::from_secs(20);
/// What images and audio count as: nothing below this (`--media-limit`).
const MEDIA_LIMIT: u64 = 1 << 20;

/// The answer to a request.
#[derive(Debug)]
pub(super) struct Answer {
    /// As it came, without its line ending.
    pub(super) line: Vec<u8>,
    pub(super) message: Value,
    /// Its size in the unit that limits are in.
    pub(super) chars: u64,
    /// Progress notifications that came before it.
    pub(super) progress: u32,
}

#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    next: u64,
}

impl Client {
    pub(super) fn start(mut command: Command) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot start the demonstration: {error}");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let (sender, lines) = sync_channel(16);
        let input = child.stdin.take();
        let output = child.stdout.take();
        let client = Self { child, input, lines, next: 1 };
        let read = move || {
            for line in output.into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("answers".to_owned()).spawn(read).map_err(failed)?;
        Ok(client)
    }

    pub(super) fn notify(&mut self, method: &str) -> Result<(), String> {
        self.send(&json!({ "jsonrpc": "2.0", "method": method }))
    }

    /// Sends a request and waits for its answer.
    pub(super) fn request(&mut self, method: &str, params: &Value) -> Result<Answer, String> {
        let id = self.next;
        self.next += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut progress = 0;
        loop {
            let line = self.lines.recv_timeout(DEADLINE).map_err(|error| match error {
                RecvTimeoutError::Timeout => format!("{method} was not answered within 20 s"),
                RecvTimeoutError::Disconnected => format!("the server ended before it answered {method}"),
            })?;
            let message: Value =
                serde_json::from_slice(&line).map_err(|error| format!("an answer is not JSON: {error}"))?;
            if message["method"] == "notifications/progress" {
                progress += 1;
            }
            if message["id"] != json!(id) {
                continue;
            }
            if let Some(error) = message.get("error") {
                return Err(format!("{method} failed: {}", error["message"]));
            }
            return Ok(Answer { chars: measure(&line)?, line, message, progress });
        }
    }

    /// Closes the server's input and waits for its end.
    pub(super) fn close(mut self) -> Result<(), String> {
        self.input = None;
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return Err("the server does not end".to_owned()),
            }
        }
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the server ended badly: {status}")) }
    }

    fn send(&mut self, message: &Value) -> Result<(), String> {
        let mut line = message.to_string();
        line.push('\n');
        let input = self.input.as_mut().ok_or("the server's input is closed")?;
        input.write_all(line.as_bytes()).map_err(|error| format!("cannot write to the server: {error}"))
    }
}

impl Drop for Client {
    /// Nothing is left running, whatever went wrong.
    fn drop(&mut self) {
        self.input = None;
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.child.kill().unwrap_or_default();
            self.child.wait().map(drop).unwrap_or_default();
        }
    }
}

/// The size of a message as the guard measures it.
fn measure(line: &[u8]) -> Result<u64, String> {
    let mut scanner = Scanner::new();
    scanner.feed(line);
    match scanner.finish() {
        Verdict::Message(envelope) => Ok(envelope.size().counted(MEDIA_LIMIT)),
        other => Err(format!("an answer is no message: {other:?}")),
    }
}
