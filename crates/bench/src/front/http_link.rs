//! The client's side of a front that is an HTTP server: one POST a message on kept-alive connections.

use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use super::Miss;
use crate::conn::{Conn, Head};

/// What a POST brought.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(crate) status: u32,
    session: Option<String>,
    pub(crate) messages: Vec<Vec<u8>>,
}

/// Where to post, and as whom.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(super) host: String,
    pub(super) path: String,
    session: String,
}

#[derive(Debug)]
pub(crate) struct HttpLink {
    pub(crate) target: Target,
    free: Vec<Conn>,
    pub(crate) got: VecDeque<Vec<u8>>,
}

impl Target {
    pub(crate) fn connect(&self) -> Result<Conn, Miss> {
        Ok(Conn::new(TcpStream::connect(&self.host)?))
    }

    pub(super) fn post(&self, conn: &mut Conn, message: &[u8], timeout: Duration) -> Result<Posted, Miss> {
        self.send(conn, message)?;
        Self::receive(conn, timeout)
    }

    /// Posts without a look at what comes back.
    pub(crate) fn send(&self, conn: &mut Conn, message: &[u8]) -> Result<(), Miss> {
        let session = match self.session.as_str() {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n"),
        };
        let mut request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n{session}\r\n",
            self.path,
            self.host,
            message.len()
        )
        .into_bytes();
        request.extend_from_slice(message);
        Ok(conn.stream.write_all(&request)?)
    }

    /// What came back of the oldest message that was sent on this connection.
    pub(crate) fn receive(conn: &mut Conn, timeout: Duration) -> Result<Posted, Miss> {
        conn.stream.set_read_timeout(Some(timeout.max(Duration::from_millis(1))))?;
        let head = conn.head()?.ok_or(Miss::Closed)?;
        let status = head.start.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        let session = head.get("mcp-session-id").map(str::to_owned);
        let messages = if head.is_events() {
            events(&stream_body(conn, &head)?)
        } else {
            let body = conn.body(&head)?;
            if body.trim_ascii().is_empty() { vec![] } else { vec![body] }
        };
        Ok(Posted { status, session, messages })
    }
}

/// The whole body of an event stream, however it is delimited.
fn stream_body(conn: &mut Conn, head: &Head) -> std::io::Result<Vec<u8>> {
    if head.is_chunked() || head.content_length().is_some() {
        return conn.body(head);
    }
    let mut all = vec![];
    while conn.arrived(&mut all)? > 0 {}
    Ok(all)
}

/// The data of each event.
fn events(body: &[u8]) -> Vec<Vec<u8>> {
    let mut out = vec![];
    let mut data: Vec<u8> = vec![];
    for line in body.split(|b| *b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if !data.is_empty() {
                out.push(std::mem::take(&mut data));
            }
        } else if let Some(more) = line.strip_prefix(b"data:") {
            if !data.is_empty() {
                data.push(b'\n');
            }
            data.extend_from_slice(more.strip_prefix(b" ").unwrap_or(more));
        }
    }
    if !data.is_empty() {
        out.push(data);
    }
    out
}

impl HttpLink {
    pub(crate) fn new(host: String, path: String) -> Self {
        let target = Target { host, path, session: String::new() };
        Self { target, free: vec![], got: VecDeque::new() }
    }

    /// Posts, and keeps what came back; gives the status.
    pub(crate) fn post(&mut self, message: &[u8], timeout: Duration) -> Result<u32, Miss> {
        let mut conn = match self.free.pop() {
            Some(conn) => conn,
            None => self.target.connect()?,
        };
        let posted = self.target.post(&mut conn, message, timeout)?;
        if let Some(session) = posted.session {
            self.target.session = session;
        }
        self.got.extend(posted.messages);
        self.free.push(conn);
        Ok(posted.status)
    }
}

#[cfg(test)]
mod tests {
    use super::events;

    #[test]
    fn events_are_cut_at_empty_lines_and_joined_over_data_lines() {
        let body =
            b"event: message\r\nid: 1\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: comment\n\ndata:2\n\ndata: 3";
        assert_eq!(events(body), [b"{\"a\":\n1}".to_vec(), b"2".to_vec(), b"3".to_vec()]);
    }
}
