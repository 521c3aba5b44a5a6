//! A buffered HTTP/1.1 reader for either side of a connection. Knows heads, bodies and chunks, not MCP.

use std::io::{Error, Result};
use std::net::TcpStream;

use crate::sys;

/// The start line and the headers, their names in lower case.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) start: String,
    headers: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.get("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"))
    }

    pub(crate) fn is_events(&self) -> bool {
        self.get("content-type").is_some_and(|t| t.starts_with("text/event-stream"))
    }

    pub(crate) fn content_length(&self) -> Option<usize> {
        self.get("content-length")?.parse().ok()
    }
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) stream: TcpStream,
    buf: Vec<u8>,
    pos: usize,
}

impl Conn {
    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).ok();
        Self { stream, buf: Vec::with_capacity(1 << 16), pos: 0 }
    }

    fn fill(&mut self) -> Result<usize> {
        if self.pos == self.buf.len() {
            self.buf.clear();
            self.pos = 0;
        }
        sys::read_more(&self.stream, &mut self.buf, 1 << 18).map_err(Error::from)
    }

    /// What has arrived and was not taken, reading once if that is nothing; empty at the end.
    pub(crate) fn arrived(&mut self, out: &mut Vec<u8>) -> Result<usize> {
        if self.pos == self.buf.len() && self.fill()? == 0 {
            return Ok(0);
        }
        let n = self.buf.len() - self.pos;
        out.extend_from_slice(&self.buf[self.pos..]);
        self.pos = self.buf.len();
        Ok(n)
    }

    /// The next head; None at the end, or when there is no end of it within 1 MiB.
    pub(crate) fn head(&mut self) -> Result<Option<Head>> {
        loop {
            if let Some(k) = memchr::memmem::find(&self.buf[self.pos..], b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&self.buf[self.pos..self.pos + k]).into_owned();
                self.pos += k + 4;
                let mut lines = text.split("\r\n");
                let start = lines.next().unwrap_or("").to_owned();
                let headers = lines
                    .filter_map(|l| l.split_once(':'))
                    .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned()))
                    .collect();
                return Ok(Some(Head { start, headers }));
            }
            if self.buf.len() - self.pos > 1 << 20 || self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    fn line(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(k) = memchr::memchr(b'\n', &self.buf[self.pos..]) {
                let line = String::from_utf8_lossy(&self.buf[self.pos..self.pos + k]);
                let line = line.trim_end_matches('\r').to_owned();
                self.pos += k + 1;
                return Ok(Some(line));
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Exactly `n` bytes onto `out`; false when the peer ended before.
    fn exact(&mut self, n: usize, out: &mut Vec<u8>) -> Result<bool> {
        let mut left = n;
        loop {
            let have = (self.buf.len() - self.pos).min(left);
            out.extend_from_slice(&self.buf[self.pos..self.pos + have]);
            self.pos += have;
            left -= have;
            if left == 0 {
                return Ok(true);
            }
            if left >= 1 << 16 {
                return self.straight(left, out);
            }
            if self.fill()? == 0 {
                return Ok(false);
            }
        }
    }

    /// The same for many bytes, without the way through the buffer, which is empty.
    fn straight(&mut self, n: usize, out: &mut Vec<u8>) -> Result<bool> {
        let end = out.len() + n;
        out.reserve_exact(n);
        while out.len() < end {
            let left = end - out.len();
            if sys::read_more(&self.stream, out, left)? == 0 {
                return Ok(false);
            }
        }
        // More than asked for when there was more room: the beginning of what comes next.
        self.buf.clear();
        self.buf.extend_from_slice(&out[end..]);
        self.pos = 0;
        out.truncate(end);
        Ok(true)
    }

    /// One chunk of a chunked body: its size, 0 the last; None on a cut.
    pub(crate) fn chunk(&mut self, out: &mut Vec<u8>) -> Result<Option<usize>> {
        let Some(line) = self.line()? else { return Ok(None) };
        let size = line.split(';').next().unwrap_or("").trim();
        let n = usize::from_str_radix(size, 16).unwrap_or(0);
        if n > 0 && !self.exact(n, out)? {
            return Ok(None);
        }
        self.line()?;
        Ok(Some(n))
    }

    /// The whole body that goes with this head.
    pub(crate) fn body(&mut self, head: &Head) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        if head.is_chunked() {
            while self.chunk(&mut out)?.is_some_and(|n| n > 0) {}
        } else if let Some(n) = head.content_length() {
            self.exact(n, &mut out)?;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::Conn;

    /// What a peer sends, as the other side's connection.
    fn sent(bytes: Vec<u8>) -> Conn {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut peer = TcpStream::connect(listener.local_addr().expect("an address")).expect("connects");
        std::thread::spawn(move || peer.write_all(&bytes));
        Conn::new(listener.accept().expect("accepts").0)
    }

    #[test]
    fn small_large_and_chunked_bodies_follow_each_other() {
        let large = "x".repeat(1_000_000);
        let mut all = Vec::new();
        for body in ["", "small", &large, "small"] {
            all.extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).bytes());
        }
        all.extend(format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\nf4240;x=y\r\n{large}\r\n0\r\n\r\n").bytes());
        all.extend(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut");
        let mut conn = sent(all);
        let mut sizes = vec![];
        while let Some(head) = conn.head().expect("reads") {
            assert_eq!(head.start, "HTTP/1.1 200 OK");
            sizes.push(conn.body(&head).expect("reads").len());
        }
        assert_eq!(sizes, [0, 5, 1_000_000, 5, 1_000_005, 3]);
    }
}
