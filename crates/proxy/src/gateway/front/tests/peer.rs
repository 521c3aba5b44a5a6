//! An HTTP client that says exactly what it is told, and reads an answer piece by piece.

use std::fmt::Write as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::hub::SOON;

/// One connection, with one request on it.
pub(super) struct Peer {
    stream: TcpStream,
    buffer: Vec<u8>,
    chunked: bool,
    left: usize,
    pub(super) status: u16,
    pub(super) head: String,
}

/// A request's text.
pub(super) fn request(method: &str, port: u16, headers: &[(&str, &str)], body: &str) -> String {
    let mut text = format!("{method} /mcp HTTP/1.1\r\n");
    let has = |name: &str| headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    if !has("host") {
        write!(text, "Host: 127.0.0.1:{port}\r\n").unwrap();
    }
    if method == "POST" && !has("content-type") {
        text.push_str("Content-Type: application/json\r\n");
    }
    if !has("accept") {
        text.push_str("Accept: application/json, text/event-stream\r\n");
    }
    if !body.is_empty() && !has("content-length") {
        write!(text, "Content-Length: {}\r\n", body.len()).unwrap();
    }
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    format!("{text}\r\n{body}")
}

impl Peer {
    /// Sends these bytes and reads the head of the answer.
    pub(super) async fn send(port: u16, bytes: &str) -> Self {
        let mut peer = Self::open(port, bytes).await;
        peer.head().await;
        peer
    }

    /// Sends these bytes and waits for nothing.
    pub(super) async fn open(port: u16, bytes: &str) -> Self {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        Self { stream, buffer: Vec::new(), chunked: false, left: 0, status: 0, head: String::new() }
    }

    /// More bytes of the request; what the other end makes of them is no matter.
    pub(super) async fn more(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    async fn fill(&mut self) -> bool {
        let mut piece = vec![0; 16 << 10];
        let read = timeout(SOON, self.stream.read(&mut piece)).await.expect("nothing came");
        let read = read.unwrap_or(0);
        self.buffer.extend_from_slice(&piece[..read]);
        read > 0
    }

    pub(super) async fn head(&mut self) {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            assert!(self.fill().await, "no head: {:?}", String::from_utf8_lossy(&self.buffer));
        };
        self.head = String::from_utf8(self.buffer.drain(..end).collect()).unwrap();
        self.status = self.head.split(' ').nth(1).unwrap().parse().unwrap();
        self.chunked = self.header("transfer-encoding").as_deref() == Some("chunked");
        self.left = self.header("content-length").map_or(0, |text| text.parse().unwrap());
    }

    /// A header of the answer.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        values.next().map(|value| value.trim().to_owned())
    }

    /// The next piece of the body; empty: it has ended.
    pub(super) async fn piece(&mut self) -> String {
        if !self.chunked {
            while self.buffer.len() < self.left && self.fill().await {}
            let take = self.left.min(self.buffer.len());
            self.left -= take;
            return String::from_utf8(self.buffer.drain(..take).collect()).unwrap();
        }
        loop {
            if let Some(at) = self.buffer.windows(2).position(|window| window == b"\r\n") {
                let text = String::from_utf8(self.buffer[..at].to_vec()).unwrap();
                let length = usize::from_str_radix(text.trim(), 16).unwrap();
                if self.buffer.len() >= at + 2 + length + 2 {
                    let piece = self.buffer[at + 2..at + 2 + length].to_vec();
                    self.buffer.drain(..at + 2 + length + 2);
                    return String::from_utf8(piece).unwrap();
                }
            }
            if !self.fill().await {
                return String::new();
            }
        }
    }

    /// The whole body.
    pub(super) async fn body(&mut self) -> String {
        let mut body = String::new();
        loop {
            let piece = self.piece().await;
            if piece.is_empty() {
                return body;
            }
            body.push_str(&piece);
        }
    }

    /// Reads events until one carries this.
    pub(super) async fn until(&mut self, text: &str) -> String {
        let mut body = String::new();
        while !body.contains(text) {
            let piece = self.piece().await;
            assert!(!piece.is_empty(), "the stream ended before {text:?}: {body}");
            body.push_str(&piece);
        }
        body
    }

    /// The other end closes the connection.
    pub(super) async fn is_closed(&mut self) -> bool {
        let mut piece = vec![0; 1024];
        loop {
            match timeout(SOON, self.stream.read(&mut piece)).await {
                Ok(Ok(0) | Err(_)) => return true,
                Ok(Ok(_)) => {}
                Err(_) => return false,
            }
        }
    }
}

/// A legacy client that has shaken hands.
pub(super) struct Legacy {
    pub(super) port: u16,
    pub(super) session: String,
}

impl Legacy {
    pub(super) async fn new(port: u16, version: &str) -> Self {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{}}}}}}"#
        );
        let mut peer = Peer::send(port, &request("POST", port, &[], &body)).await;
        assert_eq!(peer.status, 200, "{}", peer.head);
        let session = peer.header("mcp-session-id").expect("no session");
        assert!(peer.body().await.contains("protocolVersion"));
        Self { port, session }
    }

    pub(super) async fn post(&self, body: &str) -> Peer {
        self.send("POST", &[], body).await
    }

    pub(super) async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Peer {
        let mut all = vec![("Mcp-Session-Id", self.session.as_str())];
        all.extend_from_slice(headers);
        Peer::send(self.port, &request(method, self.port, &all, body)).await
    }
}

/// A call of this method.
pub(super) fn call(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}
