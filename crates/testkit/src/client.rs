//! A client of a command on stdin and stdout: sends lines, waits for answers by id, and keeps a [`Capture`]. It
//! knows nothing of what the command is.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::capture::Capture;
use crate::leaks::{processor_ticks, tree};
use crate::message::Message;

/// The handshake of MCP 2025-11-25 that [`Client::handshake`] sends.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
/// The end of the handshake.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// How long a test waits for what should come at once.
pub const SOON: Duration = Duration::from_secs(20);

/// A running command, spoken to over its stdin and stdout.
#[derive(Debug)]
pub struct Client {
    pid: u32,
    stdin: Option<Sender<Vec<u8>>>,
    lines: Receiver<Vec<u8>>,
    kept: VecDeque<Vec<u8>>,
    exits: Receiver<ExitStatus>,
    exit: Option<ExitStatus>,
    gate: Arc<Gate>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_end: Receiver<()>,
    answers: Vec<(String, String)>,
    /// The judge of this conversation.
    pub capture: Capture,
}

/// Whether stdout is being read.
#[derive(Debug, Default)]
struct Gate {
    shut: Mutex<bool>,
    vanished: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, shut: bool) {
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner);
        while *shut {
            shut = self.changed.wait(shut).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Client {
    /// Starts the command.
    pub fn start(command: &mut Command) -> Result<Self> {
        Self::start_with(command, false)
    }

    /// Starts the command and reads nothing from it until [`Client::read_on`].
    pub fn start_deaf(command: &mut Command) -> Result<Self> {
        Self::start_with(command, true)
    }

    fn start_with(command: &mut Command, deaf: bool) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{command:?} cannot be started"))?;
        let pid = child.id();
        let stdin = child.stdin.take().context("stdin")?;
        let gate = Arc::new(Gate::default());
        gate.set(deaf);
        let stdout = child.stdout.take().context("stdout")?;
        let (line, lines) = channel();
        let passes = Arc::clone(&gate);
        std::thread::spawn(move || {
            passes.pass();
            let mut input = BufReader::with_capacity(1 << 16, stdout);
            let mut bytes = Vec::new();
            while matches!(input.read_until(b'\n', &mut bytes), Ok(n) if n > 0) {
                if line.send(std::mem::take(&mut bytes)).is_err() {
                    return;
                }
                passes.pass();
                if *passes.vanished.lock().unwrap_or_else(PoisonError::into_inner) {
                    return;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(Vec::new()));
        let stderr_end = drain(&mut child, Arc::clone(&stderr))?;
        Ok(Self {
            pid,
            stdin: Some(writer(stdin)),
            lines,
            kept: VecDeque::new(),
            exits: waiter(child),
            exit: None,
            gate,
            stderr,
            stderr_end,
            answers: Vec::new(),
            capture: Capture::default(),
        })
    }

    /// Reads stdout again.
    pub fn read_on(&self) {
        self.gate.set(false);
    }

    /// Stops reading stdout, after at most one more line.
    pub fn stop_reading(&self) {
        self.gate.set(true);
    }

    /// The process id of the command.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends one message.
    pub fn send(&mut self, message: &str) -> Result<()> {
        self.send_bytes(format!("{message}\n").as_bytes())
    }

    /// Sends these bytes, which end with a line ending.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        for line in bytes.split(|b| *b == b'\n') {
            self.capture.sent(line);
        }
        self.send_uncaptured(bytes)
    }

    /// Sends bytes that [`Capture`] is not told of: parts of lines.
    pub fn send_uncaptured(&mut self, bytes: &[u8]) -> Result<()> {
        let stdin = self.stdin.as_ref().context("stdin is closed")?;
        stdin.send(bytes.to_vec()).ok().context("stdin broke")
    }

    /// Asks for a tool; `id` and `arguments` are JSON.
    pub fn call(&mut self, id: &str, tool: &str, arguments: &str) -> Result<()> {
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
        ))
    }

    /// Answers requests of this method from the server with this result from now on.
    pub fn answer_to(&mut self, method: &str, result: &str) {
        self.answers.push((method.to_owned(), result.to_owned()));
    }

    /// The handshake; returns the server's answer.
    pub fn handshake(&mut self) -> Result<Vec<u8>> {
        self.send(INITIALIZE)?;
        let answer = self.answer("0")?;
        self.send(INITIALIZED)?;
        Ok(answer)
    }

    /// The next line, without its line ending; none at the end of stdout.
    pub fn next_line(&mut self, within: Duration) -> Result<Option<Vec<u8>>> {
        match self.kept.pop_front() {
            Some(line) => Ok(Some(line)),
            None => self.read_line(Instant::now() + within),
        }
    }

    fn read_line(&mut self, end: Instant) -> Result<Option<Vec<u8>>> {
        let left = end.saturating_duration_since(Instant::now());
        match self.lines.recv_timeout(left) {
            Ok(mut line) => {
                if line.last() == Some(&b'\n') {
                    line.pop();
                } else {
                    self.capture.received(b"a last line without its line ending");
                }
                self.capture.received(&line);
                self.respond(&line)?;
                Ok(Some(line))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => bail!("no line in time; stderr: {}", self.stderr()),
        }
    }

    fn respond(&mut self, line: &[u8]) -> Result<()> {
        let Ok(message) = Message::parse(line) else {
            return Ok(());
        };
        let method = message.method();
        let known = self.answers.iter().find(|(m, _)| Some(m) == method.as_ref());
        if let (Some(id), Some((_, result))) = (message.id(), known) {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            self.send(&answer)?;
        }
        Ok(())
    }

    /// The answer to the request with this id (as JSON), wherever it is among the lines; the others are kept.
    pub fn answer(&mut self, id: &str) -> Result<Vec<u8>> {
        self.answer_within(id, SOON)
    }

    /// The same with a deadline of its own.
    pub fn answer_within(&mut self, id: &str, within: Duration) -> Result<Vec<u8>> {
        self.line_that(within, &format!("answer to {id}"), |line| {
            let messages = Message::parse_line(line).unwrap_or_default();
            let fits = |m: &Message<'_>| m.is_response() && m.id() == Some(id);
            messages.iter().any(fits)
        })
    }

    /// The next line that fits; the others are kept.
    pub fn line_that(
        &mut self,
        within: Duration,
        what: &str,
        fits: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>> {
        if let Some(at) = self.kept.iter().position(|line| fits(line)) {
            return self.kept.remove(at).context("gone");
        }
        let end = Instant::now() + within;
        loop {
            let line = self.read_line(end).with_context(|| format!("no {what} within {within:?}"))?;
            let Some(line) = line else {
                let stderr = self.stderr();
                bail!("stdout ended without {what}; stderr: {stderr}");
            };
            if fits(&line) {
                return Ok(line);
            }
            self.kept.push_back(line);
        }
    }

    /// The lines that nobody has asked for, up to the end of stdout.
    pub fn rest(&mut self, within: Duration) -> Result<Vec<Vec<u8>>> {
        let end = Instant::now() + within;
        while let Some(line) = self.read_line(end)? {
            self.kept.push_back(line);
        }
        Ok(self.kept.drain(..).collect())
    }

    /// The lines that have come and that nobody has asked for.
    pub fn kept(&self) -> Vec<String> {
        let text = |line: &Vec<u8>| String::from_utf8_lossy(line).into_owned();
        self.kept.iter().map(text).collect()
    }

    /// Closes stdin, once everything has been sent.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Goes away without a word: both pipes are closed, whatever is in them.
    pub fn vanish(&mut self) {
        self.stdin = None;
        *self.gate.vanished.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.gate.set(false);
    }

    /// Waits until the command uses no processor time for a while: it waits for its peers. Fails at the deadline.
    pub fn settle(&self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        let (_keep, never) = channel::<()>();
        let used = || -> u64 { tree(self.pid).into_iter().filter_map(processor_ticks).sum() };
        let mut before = used();
        let mut quiet = 0;
        while quiet < 5 {
            if Instant::now() > end {
                bail!("still busy after {within:?}");
            }
            // Idleness has no event of its own: it is looked for.
            never.recv_timeout(Duration::from_millis(50)).unwrap_or_default();
            let now = used();
            quiet = if now == before { quiet + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        Ok(kill_process(pid.context("pid")?, signal)?)
    }

    /// How the command ended.
    pub fn wait_exit(&mut self, within: Duration) -> Result<ExitStatus> {
        if let Some(status) = self.exit {
            return Ok(status);
        }
        let status = self
            .exits
            .recv_timeout(within)
            .with_context(|| format!("still running after {within:?}; stderr: {}", self.stderr()))?;
        self.exit = Some(status);
        Ok(status)
    }

    /// What it has written to stderr so far; everything, once it has ended.
    pub fn stderr(&self) -> String {
        if self.exit.is_some() {
            // A process that holds stderr open longer keeps nobody waiting.
            self.stderr_end.recv_timeout(Duration::from_secs(5)).unwrap_or_default();
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&stderr).into_owned()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.gate.set(false);
        if self.exit.is_none() && self.exits.try_recv().is_err() {
            // A test that failed leaves nothing behind; a process that has ended needs no end.
            self.signal(Signal::KILL).unwrap_or_default();
        }
    }
}

fn writer(mut stdin: ChildStdin) -> Sender<Vec<u8>> {
    let (send, queue) = channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for bytes in queue {
            if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    });
    send
}

fn waiter(mut child: Child) -> Receiver<ExitStatus> {
    let (ended, exits) = channel();
    std::thread::spawn(move || {
        if let Ok(status) = child.wait() {
            // A client that has been dropped does not ask.
            ended.send(status).unwrap_or_default();
        }
    });
    exits
}

/// Keeps the first MiB of stderr and reads the rest away.
fn drain(child: &mut Child, kept: Arc<Mutex<Vec<u8>>>) -> Result<Receiver<()>> {
    let mut stderr = child.stderr.take().context("stderr")?;
    let (end, ended) = channel();
    std::thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(n @ 1..) = stderr.read(&mut bytes) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < 1 << 20 {
                kept.extend(bytes.get(..n).unwrap_or_default());
            }
        }
        end.send(()).unwrap_or_default();
    });
    Ok(ended)
}
