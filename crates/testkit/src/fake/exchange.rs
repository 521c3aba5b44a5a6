//! One HTTP request and its scripted answer: plain, streamed, broken, or none.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::sse::{SsePort, SseStream};
use super::stdio::Pieces;
use super::{Fake, Port};
use crate::script::{Step, Template, Values};

/// The answer to one request, as far as it has been written.
pub(super) struct Exchange {
    fake: Arc<Fake>,
    connection: TcpStream,
    /// The request waits for an answer (202 is none).
    pub(super) owed: bool,
    status: Option<(u16, String)>,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    body: Option<Template>,
    chunked: bool,
    pieces: usize,
    state: Progress,
    gone: Option<String>,
}

enum Progress {
    Nothing,
    Streaming(SsePort),
    Over,
}

impl Exchange {
    pub(super) fn new(fake: &Arc<Fake>, connection: TcpStream) -> Self {
        Self {
            fake: Arc::clone(fake),
            connection,
            owed: false,
            status: None,
            headers: Vec::new(),
            body: None,
            chunked: false,
            pieces: 0,
            state: Progress::Nothing,
            gone: None,
        }
    }

    /// Answers with a status and a short text.
    pub(super) fn plain(&mut self, status: u16, kind: &str, text: &[u8]) -> io::Result<()> {
        self.status = Some((status, "Fake".to_owned()));
        self.headers.push(("Content-Type".to_owned(), kind.into()));
        self.body = Some(Template::exact(text));
        self.write_plain(&Values::default())
    }

    fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        for (name, value) in &self.headers {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        head
    }

    fn stream(&mut self) -> io::Result<&mut SsePort> {
        if !matches!(self.state, Progress::Streaming(_)) {
            let head = String::from_utf8_lossy(&self.head()).into_owned();
            let stream = SseStream::open(self.connection.try_clone()?, &head)?;
            let mut port = SsePort::new(stream);
            port.pieces = self.pieces;
            self.state = Progress::Streaming(port);
        }
        match &mut self.state {
            Progress::Streaming(port) => Ok(port),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn write_plain(&mut self, values: &Values) -> io::Result<()> {
        self.write_head_and(values, |body, values, out| body.write(values, out))
    }

    fn write_head_and(
        &mut self,
        values: &Values,
        write: impl FnOnce(&Template, &Values, &mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()> {
        self.state = Progress::Over;
        let body = self.body.take().unwrap_or_default();
        let fallback = if self.owed || body.len(values) > 0 { 200 } else { 202 };
        let (status, reason) = self.status.take().unwrap_or((fallback, "Fake".to_owned()));
        let mut head = format!("HTTP/1.1 {status} {reason}\r\n").into_bytes();
        head.extend(self.head());
        let typed = self.headers.iter().any(|h| h.0.eq_ignore_ascii_case("content-type"));
        if !typed && body.len(values) > 0 {
            head.extend(b"Content-Type: application/json\r\n");
        }
        if self.chunked {
            head.extend(b"Transfer-Encoding: chunked\r\n\r\n");
        } else {
            head.extend(format!("Content-Length: {}\r\n\r\n", body.len(values)).bytes());
        }
        let mut out = Pieces { inner: &self.connection, size: self.pieces };
        out.write_all(&head)?;
        if self.chunked {
            let mut chunks = Chunks(&self.connection, self.pieces);
            write(&body, values, &mut chunks)?;
            return self.connection.write_all(b"0\r\n\r\n");
        }
        write(&body, values, &mut out)
    }

    /// Breaks the connection, in the middle of the body if there is one.
    fn cut(&mut self, values: &Values) -> io::Result<()> {
        if let Progress::Streaming(port) = &self.state {
            port.stream.cut();
        } else if self.body.is_some() {
            self.write_head_and(values, |body, values, out| {
                let mut whole = body.render(values);
                whole.truncate(whole.len() / 2);
                out.write_all(&whole)
            })?;
        }
        self.state = Progress::Over;
        // A connection that is gone already is as good as cut.
        self.connection.shutdown(Shutdown::Both).unwrap_or_default();
        Ok(())
    }

    /// Gives no answer until the client gives up.
    fn hang(&mut self) -> io::Result<()> {
        self.state = Progress::Over;
        wait_for_close(&self.connection)?;
        self.fake.journal.event("closed", json!({}));
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Port for Exchange {
    fn step(&mut self, step: &Step, values: &Values) -> io::Result<()> {
        match step {
            Step::Status(code, reason) => self.status = Some((*code, reason.clone())),
            Step::Header(name, value) => self.headers.push((name.clone(), value.render(values))),
            Step::Body(body) => self.body = Some(body.clone()),
            Step::Chunked => self.chunked = true,
            Step::Pieces(size) => {
                self.pieces = *size;
                if let Progress::Streaming(port) = &mut self.state {
                    port.pieces = *size;
                }
            }
            Step::Resume(id, text) => self.fake.peers.keep(id, text.render(values)),
            Step::Cut => self.cut(values)?,
            Step::Never => self.hang()?,
            Step::Stream => {
                self.stream()?;
            }
            Step::Send(_) if self.fake.script.settings.reply_sse && self.status.is_none() => {
                self.stream()?.step(step, values)?;
            }
            Step::End => {
                self.stream()?.step(step, values)?;
                self.state = Progress::Over;
            }
            Step::EventId(_) | Step::Retry(_) => self.stream()?.step(step, values)?,
            _ if matches!(self.state, Progress::Streaming(_)) => {
                self.stream()?.step(step, values)?;
            }
            Step::Send(text) => self.body = Some(text.clone()),
            Step::Raw(text) => {
                self.state = Progress::Over;
                text.write(values, &mut &self.connection)?;
            }
            Step::Close => {
                self.state = Progress::Over;
                self.connection.shutdown(Shutdown::Both)?;
            }
            other => return Err(io::Error::other(format!("not over HTTP: {other:?}"))),
        }
        Ok(())
    }

    fn finish(&mut self, values: &Values) -> io::Result<()> {
        match &self.state {
            Progress::Over => Ok(()),
            Progress::Streaming(port) => port.stream.end(),
            Progress::Nothing if self.owed && self.status.is_none() && self.body.is_none() => self.hang(),
            Progress::Nothing => self.write_plain(values),
        }
    }

    fn gone(&mut self) -> Option<String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if self.gone.is_none() {
            let flag = format!("gone:{}", NEXT.fetch_add(1, Ordering::Relaxed));
            let connection = self.connection.try_clone().ok()?;
            let (fake, name) = (Arc::clone(&self.fake), flag.clone());
            std::thread::spawn(move || {
                let mut byte = [0];
                if connection.peek(&mut byte).unwrap_or(0) == 0 {
                    fake.journal.event("closed", json!({}));
                    fake.arm(&name);
                }
            });
            self.gone = Some(flag);
        }
        self.gone.clone()
    }
}

/// Every write becomes a chunk.
struct Chunks<'a>(&'a TcpStream, usize);

impl io::Write for Chunks<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = if self.1 == 0 { bytes.len() } else { self.1 };
        let piece = bytes.get(..size.min(bytes.len())).unwrap_or_default();
        if !piece.is_empty() {
            let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            self.0.write_all(&chunk)?;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads until the client closes.
pub(super) fn wait_for_close(connection: &TcpStream) -> io::Result<()> {
    let mut input = BufReader::new(connection.try_clone()?);
    let mut bytes = [0; 512];
    while matches!(input.read(&mut bytes), Ok(n) if n > 0) {}
    Ok(())
}
