//! The agent of these tests: an MCP client over real sockets, one request a connection. It knows nothing of the host.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};
use toolway_testkit::SOON;

/// An agent with a session of MCP 2025-11-25.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    url: String,
    session: Option<String>,
}

/// What a request came to.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The messages of the body, whether one or a stream of them.
    pub(crate) messages: Vec<Value>,
    pub(crate) session: Option<String>,
    pub(crate) after: Duration,
}

impl Answer {
    /// The response; notifications before it are left out.
    pub(crate) fn response(&self) -> Result<&Value> {
        let response = self.messages.iter().find(|message| message.get("id").is_some());
        response.with_context(|| format!("no response in {self:?}"))
    }

    /// The text of the first block of a tool's result.
    pub(crate) fn text(&self) -> Result<String> {
        let response = self.response()?;
        let text = response["result"]["content"][0]["text"].as_str();
        Ok(text.with_context(|| format!("no text in {response}"))?.to_owned())
    }

    /// The message of the error.
    pub(crate) fn error(&self) -> Result<String> {
        let response = self.response()?;
        let text = response["error"]["message"].as_str();
        Ok(text.with_context(|| format!("no error in {response}"))?.to_owned())
    }
}

/// A request that is on its way.
#[derive(Debug)]
pub(crate) struct Pending(Receiver<Result<Answer>>);

impl Pending {
    pub(crate) fn answer(self) -> Result<Answer> {
        self.0.recv_timeout(SOON + SOON).context("no answer in time")?
    }
}

impl Agent {
    /// An agent that has not said a word.
    pub(crate) fn new(url: &str) -> Self {
        Self { url: url.to_owned(), session: None }
    }

    /// The handshake.
    pub(crate) fn connect(url: &str) -> Result<Self> {
        let mut agent = Self::new(url);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}});
        let answer =
            agent.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))?;
        ensure!(answer.status == 200, "{answer:?}");
        agent.session = answer.session;
        let answer = agent.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        ensure!(answer.status == 202, "{answer:?}");
        Ok(agent)
    }

    /// The same agent after the handshake.
    pub(crate) fn connected(&self) -> Result<Self> {
        Self::connect(&self.url)
    }

    /// The names of the tools.
    pub(crate) fn tools(&self) -> Result<Vec<String>> {
        let answer = self.post(&json!({"jsonrpc": "2.0", "id": "list", "method": "tools/list"}))?;
        let response = answer.response()?;
        let tools = response["result"]["tools"].as_array().with_context(|| response.to_string())?;
        Ok(tools.iter().filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect())
    }

    /// Calls a tool and waits for the end.
    pub(crate) fn call(&self, id: u64, tool: &str, arguments: &Value) -> Result<Answer> {
        self.call_later(id, tool, arguments).answer()
    }

    /// Calls a tool.
    pub(crate) fn call_later(&self, id: u64, tool: &str, arguments: &Value) -> Pending {
        self.post_later(&call(id, tool, arguments))
    }

    /// Cancels a call.
    pub(crate) fn cancel(&self, id: u64) -> Result<()> {
        let params = json!({"requestId": id, "reason": "the user does not want it any more"});
        self.post(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))?;
        Ok(())
    }

    /// Sends a message in another thread.
    pub(crate) fn post_later(&self, message: &Value) -> Pending {
        let (sender, receiver) = channel();
        let (agent, message) = (self.clone(), message.clone());
        std::thread::spawn(move || sender.send(agent.post(&message)).unwrap_or_default());
        Pending(receiver)
    }

    /// Sends a message and reads the answer to its end.
    pub(crate) fn post(&self, message: &Value) -> Result<Answer> {
        let begun = Instant::now();
        let rest = self.url.strip_prefix("http://").context("no http URL")?;
        let (address, path) = rest.split_once('/').context("no path")?;
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(SOON + SOON))?;
        let body = message.to_string();
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        write!(
            stream,
            "POST /{path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{session}\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        let mut answer = read(&bytes)?;
        answer.after = begun.elapsed();
        Ok(answer)
    }
}

/// A call with a progress token.
pub(crate) fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": format!("p{id}")}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn read(bytes: &[u8]) -> Result<Answer> {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").context("no head")?;
    let status = head.split(' ').nth(1).context("no status")?.parse()?;
    let header = |name: &str| {
        let found = head.lines().find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        });
        found.unwrap_or_default()
    };
    let whole = if header("transfer-encoding") == "chunked" { dechunk(body)? } else { body.to_owned() };
    let messages = if header("content-type").starts_with("text/event-stream") {
        let data = whole.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
        data.filter(|data| !data.is_empty()).map(serde_json::from_str).collect::<Result<_, _>>()?
    } else if whole.trim().is_empty() {
        Vec::new()
    } else {
        vec![serde_json::from_str(&whole)?]
    };
    let session = Some(header("mcp-session-id")).filter(|id| !id.is_empty());
    Ok(Answer { status, messages, session, after: Duration::ZERO })
}

fn dechunk(mut body: &str) -> Result<String> {
    let mut whole = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").context("a chunk without a size")?;
        let size = usize::from_str_radix(size.trim(), 16)?;
        if size == 0 {
            return Ok(whole);
        }
        let Some(chunk) = rest.get(..size) else { bail!("a chunk that is cut") };
        whole.push_str(chunk);
        body = rest.get(size + 2..).context("a chunk without an end")?;
    }
}
