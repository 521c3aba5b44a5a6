//! An event stream of the upstream: one chunk an event, and the ways to break it. Knows no sessions.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Emit;
use crate::conn::Conn;
use crate::sys;

/// The head of every event stream, without the empty line.
pub(super) const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n";

#[derive(Debug)]
pub(super) struct Events {
    stream: Mutex<TcpStream>,
    closed: AtomicBool,
}

impl Events {
    pub(super) fn over(conn: &Conn) -> std::io::Result<Self> {
        Ok(Self { stream: Mutex::new(conn.stream.try_clone()?), closed: AtomicBool::new(false) })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    pub(super) fn event(&self, event: &str, id: Option<&str>, data: &[u8]) {
        if self.is_closed() {
            return;
        }
        let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let head = format!("event: {event}\n{id}data: ");
        let len = head.len() + data.len() + 2;
        let mut chunk = Vec::with_capacity(len + 32);
        chunk.extend_from_slice(format!("{len:x}\r\n{head}").as_bytes());
        chunk.extend_from_slice(data);
        chunk.extend_from_slice(b"\n\n\r\n");
        self.raw(&chunk);
    }

    /// Bytes of the chunked body as they are.
    pub(super) fn raw(&self, bytes: &[u8]) {
        if sys::held(&self.stream).write_all(bytes).is_err() {
            self.close();
        }
    }

    pub(super) fn finish(&self) {
        if !self.is_closed() {
            self.raw(b"0\r\n\r\n");
        }
    }

    /// A comment every 5 s finds out that the peer left.
    pub(super) fn keep_alive(&self) {
        while !self.is_closed() {
            sys::pause(Duration::from_secs(5));
            self.raw(b"10\r\n: keep-alive..\n\n\r\n");
        }
    }
}

impl Emit for Events {
    fn emit(&self, message: &[u8]) {
        self.event("message", None, message);
    }

    fn emit_torn(&self) {
        self.raw(b"ff\r\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":");
    }

    fn emit_with_id(&self, event_id: &str, message: &[u8]) {
        self.event("message", Some(event_id), message);
    }

    fn cut(&self) {
        self.close();
        sys::held(&self.stream).shutdown(Shutdown::Both).ok();
    }
}
