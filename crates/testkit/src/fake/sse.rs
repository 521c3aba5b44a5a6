//! An open SSE answer (WHATWG HTML, server-sent events) in HTTP/1.1 chunks, written by whoever has an event.

use std::io::{self, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use super::Port;
use super::stdio::Pieces;
use crate::script::{Step, Template, Values};

/// A stream that several threads may write to.
#[derive(Debug, Clone)]
pub(super) struct SseStream {
    connection: Arc<Mutex<TcpStream>>,
}

impl SseStream {
    /// Writes the head of the answer.
    pub(super) fn open(connection: TcpStream, headers: &str) -> io::Result<Self> {
        let mut connection = connection;
        let fixed =
            "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked";
        connection.write_all(format!("HTTP/1.1 200 OK\r\n{fixed}\r\n{headers}\r\n").as_bytes())?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)) })
    }

    /// Writes one chunk of the body.
    pub(super) fn raw(&self, text: &Template, values: &Values, pieces: usize) -> io::Result<()> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Pieces { inner: &*connection, size: pieces };
        let len = text.len(values);
        if len == 0 {
            return Ok(());
        }
        out.write_all(format!("{len:x}\r\n").as_bytes())?;
        text.write(values, &mut out)?;
        out.write_all(b"\r\n")
    }

    /// Ends the stream properly.
    pub(super) fn end(&self) -> io::Result<()> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.write_all(b"0\r\n\r\n")
    }

    /// Breaks the connection.
    pub(super) fn cut(&self) {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // A connection that is gone already is as good as cut.
        connection.shutdown(Shutdown::Both).unwrap_or_default();
    }
}

/// Writes events to a stream.
#[derive(Debug)]
pub(super) struct SsePort {
    pub(super) stream: SseStream,
    pub(super) pieces: usize,
    id: Option<String>,
    retry: Option<u64>,
}

impl SsePort {
    pub(super) fn new(stream: SseStream) -> Self {
        Self { stream, pieces: 0, id: None, retry: None }
    }

    pub(super) fn event(&mut self, name: &str, data: &Template, values: &Values) -> io::Result<()> {
        let mut head = format!("event: {name}\n");
        if let Some(id) = self.id.take() {
            head.extend(["id: ", &id, "\n"]);
        }
        if let Some(ms) = self.retry.take() {
            head.extend(["retry: ", &ms.to_string(), "\n"]);
        }
        head.push_str("data: ");
        let text = Template::exact(head).then(data.clone()).then(Template::exact(b"\n\n".as_slice()));
        self.stream.raw(&text, values, self.pieces)
    }
}

impl Port for SsePort {
    fn step(&mut self, step: &Step, values: &Values) -> io::Result<()> {
        match step {
            Step::Send(text) => self.event("message", text, values)?,
            Step::Raw(text) => self.stream.raw(text, values, self.pieces)?,
            Step::Pieces(size) => self.pieces = *size,
            Step::EventId(id) => self.id = Some(id.clone()),
            Step::Retry(ms) => self.retry = Some(*ms),
            Step::Cut | Step::Close => self.stream.cut(),
            Step::End => self.stream.end()?,
            Step::Never | Step::Stream => {}
            other => return Err(io::Error::other(format!("not in a stream: {other:?}"))),
        }
        Ok(())
    }

    fn finish(&mut self, _: &Values) -> io::Result<()> {
        Ok(())
    }
}
