//! The test's end of its fake servers: it hears what each of them sees as it happens, arms faults, and learns of ends.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::journal::bytes_of;

/// Where fake servers report to (`fakemcp --test ADDRESS`).
#[derive(Debug)]
pub struct Hub {
    address: SocketAddr,
    arrivals: Receiver<Peer>,
    waiting: VecDeque<Peer>,
}

/// One process of `fakemcp` that has reported.
#[derive(Debug)]
pub struct Peer {
    /// Its `start` event: `pid`, `role`, `port`, `env`, `args`, `cwd`.
    pub start: Value,
    connection: TcpStream,
    events: Receiver<Value>,
    seen: Vec<Value>,
    next: usize,
}

impl Hub {
    /// Listens on a free port of 127.0.0.1.
    pub fn new() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let (arrived, arrivals) = channel();
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let Ok(connection) = connection else { return };
                let arrived = arrived.clone();
                std::thread::spawn(move || {
                    let Ok(read) = connection.try_clone() else { return };
                    let mut lines = BufReader::new(read).lines();
                    let Some(Ok(first)) = lines.next() else { return };
                    let Ok(start) = serde_json::from_str(&first) else { return };
                    let (event, events) = channel();
                    let peer = Peer { start, connection, events, seen: Vec::new(), next: 0 };
                    if arrived.send(peer).is_err() {
                        return;
                    }
                    for line in lines.map_while(Result::ok) {
                        let parsed = serde_json::from_str(&line).unwrap_or(Value::String(line));
                        if event.send(parsed).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Ok(Self { address, arrivals, waiting: VecDeque::new() })
    }

    /// For `--test`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next process that reports in this role (`server`, `linger`).
    pub fn arrival(&mut self, role: &str, within: Duration) -> Result<Peer> {
        let end = Instant::now() + within;
        let fits = |peer: &Peer| peer.start.get("role").and_then(Value::as_str) == Some(role);
        if let Some(at) = self.waiting.iter().position(fits) {
            return self.waiting.remove(at).context("gone");
        }
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let peer = self
                .arrivals
                .recv_timeout(left)
                .with_context(|| format!("no {role} reported within {within:?}"))?;
            if fits(&peer) {
                return Ok(peer);
            }
            self.waiting.push_back(peer);
        }
    }

    /// Whether a process in this role has reported that nobody has asked for yet.
    pub fn has_arrived(&mut self, role: &str) -> bool {
        self.waiting.extend(self.arrivals.try_iter());
        let fits = |peer: &Peer| peer.start.get("role").and_then(Value::as_str) == Some(role);
        self.waiting.iter().any(fits)
    }
}

impl Peer {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.number("pid")
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        u16::try_from(self.number("port")).unwrap_or_default()
    }

    fn number(&self, name: &str) -> u32 {
        let number = self.start.get(name).and_then(Value::as_u64);
        u32::try_from(number.unwrap_or_default()).unwrap_or_default()
    }

    /// Has it do an action of the script format now, and waits until that is done.
    pub fn act(&mut self, action: &str) -> Result<()> {
        self.tell(action)?;
        let done = self.wait("done", Duration::from_secs(10), |event| {
            event.get("command").and_then(Value::as_str) == Some(action)
        })?;
        match done.get("error").and_then(Value::as_str) {
            Some(error) => bail!("{action}: {error}"),
            None => Ok(()),
        }
    }

    /// Has it do an action that it will not report back from.
    pub fn tell(&mut self, action: &str) -> Result<()> {
        Ok(self.connection.write_all(format!("{action}\n").as_bytes())?)
    }

    /// Waits for an event of this name, later than the last one waited for.
    pub fn wait(&mut self, name: &str, within: Duration, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let end = Instant::now() + within;
        loop {
            while let Some(event) = self.seen.get(self.next) {
                self.next += 1;
                if event.get("event").and_then(Value::as_str) == Some(name) && fits(event) {
                    return Ok(event.clone());
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            let event = self
                .events
                .recv_timeout(left)
                .with_context(|| format!("no such event {name} within {within:?}; seen: {:?}", self.seen))?;
            self.seen.push(event);
        }
    }

    /// Waits until it has received a message that holds `text`.
    pub fn wait_for(&mut self, text: &str, within: Duration) -> Result<()> {
        let name = if self.port() == 0 { "line" } else { "request" };
        self.wait(name, within, |event| String::from_utf8_lossy(&bytes_of(event)).contains(text)).map(drop)
    }

    /// Waits until the process has ended.
    pub fn wait_gone(&mut self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(event) => self.seen.push(event),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    bail!("process {} is still there after {within:?}", self.pid())
                }
            }
        }
    }

    /// Takes in all that has been reported until now: everything before the answer to a command, or to the end.
    fn catch_up(&mut self) {
        let command = format!("arm caught-up-{}", self.seen.len());
        // A process that has ended says nothing more; what it said is read to its end.
        self.tell(&command).unwrap_or_default();
        while let Ok(event) = self.events.recv_timeout(Duration::from_secs(10)) {
            let done = event.get("command").and_then(Value::as_str) == Some(&command);
            if done {
                return;
            }
            self.seen.push(event);
        }
    }

    /// Everything of this name that has been reported so far.
    pub fn events(&mut self, name: &str) -> Vec<Value> {
        self.catch_up();
        let named = |event: &&Value| event.get("event").and_then(Value::as_str) == Some(name);
        self.seen.iter().filter(named).cloned().collect()
    }

    /// Everything that it has received over stdin so far, as it came.
    pub fn received(&mut self) -> Vec<u8> {
        self.events("line").iter().flat_map(bytes_of).collect()
    }

    /// The HTTP requests that it has received so far.
    pub fn requests(&mut self) -> Vec<HttpRequest> {
        self.events("request").iter().map(HttpRequest::of).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process ends when it learns that nobody listens any more; if it has ended, that is well too.
        self.connection.shutdown(Shutdown::Both).unwrap_or_default();
    }
}

/// A request that a fake HTTP server received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// GET, POST or DELETE.
    pub verb: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in order.
    pub headers: Vec<(String, String)>,
    /// The body, as it came.
    pub body: Vec<u8>,
}

impl HttpRequest {
    fn of(event: &Value) -> Self {
        let text = |name: &str| {
            let value = event.get(name).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let headers = event.get("headers").cloned().unwrap_or_default();
        Self {
            verb: text("verb"),
            path: text("path"),
            headers: serde_json::from_value(headers).unwrap_or_default(),
            body: bytes_of(event),
        }
    }

    /// A header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The method of the JSON-RPC message in it.
    pub fn method(&self) -> Option<String> {
        crate::message::Message::parse(&self.body).ok()?.method()
    }
}
