//! Owns a plain HTTP/1.1 client over a real socket, which sends what it is told, well-formed or not. Knows no MCP.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What no answer takes longer than.
const LONG: Duration = Duration::from_mins(1);

/// The head of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn is_events(&self) -> bool {
        self.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"))
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.head.status
    }

    pub(crate) fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("{} {}", self.head.status, String::from_utf8_lossy(&self.body)))
    }

    /// Whatever says why a request was refused.
    pub(crate) fn reason(&self) -> Result<String> {
        let error = &self.json()?["error"];
        let text = error.as_str().or_else(|| error["message"].as_str());
        Ok(text.with_context(|| format!("no text in {error}"))?.to_owned())
    }
}

/// A request as bytes. `Content-Length` is set where there is a body.
pub(crate) fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut lines = vec![format!("{method} {path} HTTP/1.1")];
    lines.extend(headers.iter().map(|(name, value)| format!("{name}: {value}")));
    if !body.is_empty() {
        lines.push(format!("Content-Length: {}", body.len()));
    }
    [lines.join("\r\n").as_bytes(), b"\r\n\r\n", body].concat()
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What is left of the chunk at hand; `None`: the body is over.
    chunk: Option<usize>,
    events: String,
}

impl Wire {
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new(), chunk: None, events: String::new() })
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Says that nothing more is sent; what comes is still read.
    pub(crate) async fn finish(&mut self) -> Result<()> {
        Ok(self.stream.shutdown().await?)
    }

    /// The other side has closed the connection, with or without a last word.
    pub(crate) async fn is_closed(&mut self) -> Result<bool> {
        let mut rest = [0; 1024];
        loop {
            match timeout(LONG, self.stream.read(&mut rest)).await? {
                Ok(0) | Err(_) => return Ok(true),
                Ok(_) => {}
            }
        }
    }

    pub(crate) async fn head(&mut self) -> Result<Head> {
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                break end;
            }
            self.more().await?;
        };
        let text = String::from_utf8(self.buffer.drain(..end + 4).collect())?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status")?.parse()?;
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        self.chunk = Some(0);
        Ok(Head { status, headers })
    }

    /// The next answer, whole.
    pub(crate) async fn answer(&mut self) -> Result<Answer> {
        let head = self.head().await?;
        let mut body = Vec::new();
        if let Some(length) = head.header("content-length") {
            body = self.take(length.parse()?).await?;
        } else if head.header("transfer-encoding") == Some("chunked") {
            while let Some(piece) = self.piece().await? {
                body.extend(piece);
            }
        }
        Ok(Answer { head, body })
    }

    /// So many bytes of a body.
    pub(crate) async fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.buffer.len() < length {
            self.more().await?;
        }
        Ok(self.buffer.drain(..length).collect())
    }

    /// The next message of an event stream; `None`: it has ended. Comments are counted and passed over.
    pub(crate) async fn event(&mut self) -> Result<Option<Value>> {
        loop {
            match self.block().await? {
                None => return Ok(None),
                Some(block) if block.starts_with(':') => {}
                Some(block) => {
                    let data = block.lines().filter_map(|line| line.strip_prefix("data: "));
                    return Ok(Some(serde_json::from_str(&data.collect::<Vec<_>>().join("\n"))?));
                }
            }
        }
    }

    /// What stands before the next empty line of an event stream.
    pub(crate) async fn block(&mut self) -> Result<Option<String>> {
        loop {
            if let Some((block, rest)) = self.events.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.events = rest;
                return Ok(Some(block));
            }
            match self.piece().await? {
                None => return Ok(None),
                Some(piece) => self.events += &String::from_utf8(piece)?,
            }
        }
    }

    /// The next piece of a chunked body.
    async fn piece(&mut self) -> Result<Option<Vec<u8>>> {
        if self.chunk.is_none() {
            return Ok(None);
        }
        let end = loop {
            if let Some(end) = find(&self.buffer, b"\r\n") {
                break end;
            }
            self.more().await?;
        };
        let length = usize::from_str_radix(std::str::from_utf8(&self.buffer[..end])?, 16)?;
        while self.buffer.len() < end + length + 4 {
            self.more().await?;
        }
        let chunk: Vec<u8> = self.buffer.drain(..end + length + 4).collect();
        if length == 0 {
            self.chunk = None;
            return Ok(None);
        }
        Ok(Some(chunk[end + 2..end + 2 + length].to_vec()))
    }

    async fn more(&mut self) -> Result<()> {
        self.buffer.reserve(16 << 10);
        let read =
            timeout(LONG, self.stream.read_buf(&mut self.buffer)).await.context("no answer in time")??;
        if read == 0 {
            bail!("the connection was closed after {:?}", String::from_utf8_lossy(&self.buffer));
        }
        Ok(())
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
