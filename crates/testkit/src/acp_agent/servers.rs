//! Owns the agent's connections to the MCP servers that it is given: processes and addresses, as they are named.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::journal::Journal;

/// Longest wait for a server.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Servers(BTreeMap<String, Connection>);

#[derive(Debug)]
enum Connection {
    Process { child: Child, stdin: ChildStdin, stdout: BufReader<ChildStdout>, asked: u64 },
    Address { url: String, headers: Vec<(String, String)>, session: Option<String>, asked: u64 },
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Self::Process { child, .. } = self {
            child.kill().unwrap_or_default();
            child.wait().map(|_| ()).unwrap_or_default();
        }
    }
}

impl Servers {
    /// Connects to each, and notes its tools or why there are none.
    pub(super) fn connect(entries: Option<&Value>, journal: &Journal) -> Self {
        let mut servers = Self::default();
        for entry in entries.and_then(Value::as_array).into_iter().flatten() {
            let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            let opened = Connection::open(entry).and_then(|mut connection| {
                let list = connection.ask("tools/list", &json!({}))?;
                Ok((connection, list))
            });
            match opened {
                Ok((connection, list)) => {
                    let tools = list.get("tools").and_then(Value::as_array).into_iter().flatten();
                    let tools: Vec<&Value> = tools.filter_map(|tool| tool.get("name")).collect();
                    journal.event("server", json!({"name": name, "tools": tools}));
                    servers.0.insert(name, connection);
                }
                Err(error) => journal.event("server", json!({"name": name, "error": format!("{error:#}")})),
            }
        }
        servers
    }

    /// Begins a call. Over HTTP it is on its way apart from all others; a process answers one after the other.
    pub(super) fn call(&mut self, server: &str, tool: &str, arguments: &Value) -> Result<Flight> {
        let connection = self.0.get_mut(server).with_context(|| format!("no server {server}"))?;
        let params = json!({"name": tool, "arguments": arguments});
        let Connection::Address { url, headers, session, asked } = connection else {
            return connection.ask("tools/call", &params).map(Flight::Landed);
        };
        *asked += 1;
        let (url, headers, session, id) = (url.clone(), headers.clone(), session.clone(), *asked);
        let (sender, answer) = mpsc::channel();
        let post = Post { url, headers, session };
        let asks = post.clone();
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        std::thread::spawn(move || drop(sender.send(asks.answer(id, &body))));
        Ok(Flight::Under { post, id, answer })
    }
}

/// A call that has begun.
#[derive(Debug)]
pub(super) enum Flight {
    Landed(Value),
    Under { post: Post, id: u64, answer: mpsc::Receiver<Result<Value>> },
}

/// Where messages are sent.
#[derive(Debug, Clone)]
pub(super) struct Post {
    url: String,
    headers: Vec<(String, String)>,
    session: Option<String>,
}

impl Post {
    fn send(&self, message: &Value) -> Result<Vec<Value>> {
        post(&self.url, &self.headers, self.session.as_deref(), &message.to_string())
            .map(|(answers, _)| answers)
    }

    fn answer(&self, id: u64, message: &Value) -> Result<Value> {
        let ours = |message: &Value| message.get("id").and_then(Value::as_u64) == Some(id);
        let answer = self.send(message)?.into_iter().find(ours).context("no answer to tools/call")?;
        match answer.get("error") {
            Some(error) => bail!("tools/call: {error}"),
            None => Ok(answer.get("result").cloned().unwrap_or_default()),
        }
    }
}

impl Flight {
    /// What it comes to. When the prompt is cancelled its server is told, and nobody waits any more.
    pub(super) fn land(self, is_cancelled: impl Fn() -> bool) -> Result<Value> {
        let (post, id, answer) = match self {
            Self::Landed(value) => return Ok(value),
            Self::Under { post, id, answer } => (post, id, answer),
        };
        loop {
            match answer.recv_timeout(Duration::from_millis(20)) {
                Ok(answer) => return answer,
                Err(mpsc::RecvTimeoutError::Disconnected) => bail!("the call broke off"),
                Err(mpsc::RecvTimeoutError::Timeout) if is_cancelled() => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
        let params = json!({"requestId": id, "reason": "the prompt was cancelled"});
        post.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))?;
        bail!("cancelled")
    }
}

fn pairs(entry: &Value, member: &str) -> Vec<(String, String)> {
    let list = entry.get(member).and_then(Value::as_array).into_iter().flatten();
    let text = |pair: &Value, name: &str| Some(pair.get(name)?.as_str()?.to_owned());
    list.filter_map(|pair| Some((text(pair, "name")?, text(pair, "value")?))).collect()
}

impl Connection {
    fn open(entry: &Value) -> Result<Self> {
        let text = |name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
        let mut connection = match (text("url"), text("command")) {
            (Some(url), _) => {
                Self::Address { url, headers: pairs(entry, "headers"), session: None, asked: 0 }
            }
            (None, Some(command)) => {
                let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
                let mut child = Command::new(command)
                    .args(args.filter_map(Value::as_str))
                    .envs(pairs(entry, "env"))
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()?;
                let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
                let stdout = BufReader::new(stdout.context("no stdout")?);
                Self::Process { child, stdin: stdin.context("no stdin")?, stdout, asked: 0 }
            }
            (None, None) => bail!("neither a url nor a command"),
        };
        let us = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "scripted-agent", "version": "1"},
        });
        connection.ask("initialize", &us)?;
        connection.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        Ok(connection)
    }

    fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let (Self::Process { asked, .. } | Self::Address { asked, .. }) = self;
        *asked += 1;
        let id = *asked;
        let answers = self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        let ours = |message: &Value| message.get("id").and_then(Value::as_u64) == Some(id);
        let answer = match (answers.into_iter().find(ours), self) {
            (Some(answer), _) => answer,
            (None, Self::Process { stdout, .. }) => loop {
                let mut line = String::new();
                if stdout.read_line(&mut line)? == 0 {
                    bail!("the server has ended");
                }
                match serde_json::from_str::<Value>(&line) {
                    Ok(message) if ours(&message) => break message,
                    _ => {}
                }
            },
            (None, Self::Address { .. }) => bail!("no answer to {method}"),
        };
        match answer.get("error") {
            Some(error) => bail!("{method}: {error}"),
            None => Ok(answer.get("result").cloned().unwrap_or_default()),
        }
    }

    /// Sends a message. Over HTTP what is answered comes back at once.
    fn send(&mut self, message: &Value) -> Result<Vec<Value>> {
        match self {
            Self::Process { stdin, .. } => {
                writeln!(stdin, "{message}")?;
                stdin.flush()?;
                Ok(Vec::new())
            }
            Self::Address { url, headers, session, .. } => {
                let (answers, given) = post(url, headers, session.as_deref(), &message.to_string())?;
                *session = given.or(session.take());
                Ok(answers)
            }
        }
    }
}

/// One POST over HTTP/1.1 on a connection of its own: the messages of the answer, and the session's id.
fn post(
    url: &str,
    headers: &[(String, String)],
    session: Option<&str>,
    body: &str,
) -> Result<(Vec<Value>, Option<String>)> {
    let rest = url.strip_prefix("http://").context("only http here")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\nContent-Length: {}\r\n",
        body.len()
    );
    let own = session.map(|session| ("Mcp-Session-Id".to_owned(), session.to_owned()));
    for (name, value) in headers.iter().chain(own.as_ref()) {
        head = format!("{head}{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let answer = whole_answer(&mut stream)?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").context("no HTTP answer")?;
    let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).into_owned();
    let raw = answer.get(end + 4..).unwrap_or_default();
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let status = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = if header("transfer-encoding").is_some() { unchunked(raw) } else { raw.to_vec() };
    if !status.starts_with('2') {
        bail!("HTTP status {status}: {}", String::from_utf8_lossy(&body));
    }
    let text = String::from_utf8_lossy(&body).into_owned();
    let messages = if header("content-type").unwrap_or_default().contains("event-stream") {
        text.lines().filter_map(|line| line.strip_prefix("data:")).filter_map(parsed).collect()
    } else {
        parsed(&text).into_iter().collect()
    };
    Ok((messages, header("mcp-session-id")))
}

/// What comes until the answer is whole, whether or not the connection is closed then.
fn whole_answer(stream: &mut TcpStream) -> Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut piece = [0; 16 << 10];
    loop {
        let read = match stream.read(&mut piece) {
            Ok(read) => read,
            // A server that is done may cut the connection; what came before counts.
            Err(_) if !answer.is_empty() => return Ok(answer),
            Err(error) => return Err(error).context("no answer"),
        };
        answer.extend_from_slice(piece.get(..read).unwrap_or_default());
        if read == 0 || is_whole(&answer) {
            return Ok(answer);
        }
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let body = answer.get(end + 4..).unwrap_or_default();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    match length {
        Some(length) => body.len() >= length,
        None if head.contains("transfer-encoding:") => body.ends_with(b"0\r\n\r\n"),
        None => head.starts_with("http/1.1 202") || head.starts_with("http/1.1 204"),
    }
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn unchunked(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = String::from_utf8_lossy(raw.get(..end).unwrap_or_default()).into_owned();
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        body.extend_from_slice(raw.get(end + 2..end + 2 + size).unwrap_or_default());
        raw = raw.get(end + 4 + size..).unwrap_or_default();
        if size == 0 {
            break;
        }
    }
    body
}
