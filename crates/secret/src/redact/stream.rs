//! Owns redaction of what comes in pieces, cut anywhere. What may be the beginning of a secret is held back.

use std::io::{self, Read, Write};

use super::Redactor;

/// Bytes that a stream holds back, so that a secret cut by a piece is still seen whole. A find longer than
/// this may be missed where it crosses two pieces.
pub(super) const OVERLAP: usize = 16 << 10;
pub(super) const CHUNK: usize = 64 << 10;
/// Bytes already written that the next search may look back on (for `\b`).
const CONTEXT: usize = 64;

impl Redactor {
    /// A writer that redacts what goes through it; call [`RedactingWriter::finish`] at the end.
    pub fn writer<W: Write>(&self, inner: W) -> RedactingWriter<'_, W> {
        RedactingWriter { redactor: self, inner, buffer: Vec::new(), written: 0 }
    }

    /// A reader that redacts what comes out of it.
    pub fn reader<R: Read>(&self, inner: R) -> RedactingReader<'_, R> {
        RedactingReader { inner, writer: self.writer(Vec::new()), at: 0, ended: false }
    }
}

/// See [`Redactor::writer`]. What was not finished is lost when it is dropped.
#[derive(Debug)]
pub struct RedactingWriter<'r, W> {
    redactor: &'r Redactor,
    inner: W,
    buffer: Vec<u8>,
    written: usize,
}

impl<W: Write> RedactingWriter<'_, W> {
    /// The inner writer, which has what is redacted so far.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Writes what was held back, and gives the inner writer back.
    pub fn finish(mut self) -> io::Result<W> {
        self.drain(true)?;
        Ok(self.inner)
    }

    fn drain(&mut self, last: bool) -> io::Result<()> {
        let safe = if last { usize::MAX } else { self.buffer.len().saturating_sub(OVERLAP) };
        let mut out = Vec::with_capacity(self.buffer.len());
        let mut at = self.redactor.replace(&self.buffer, self.written, safe, &mut out);
        // A find without an end must not hold everything back for ever.
        if !last && self.buffer.len() - at > 16 * CHUNK {
            at = self.redactor.replace(&self.buffer, at, usize::MAX, &mut out);
        }
        self.inner.write_all(&out)?;
        let keep_from = at.saturating_sub(CONTEXT);
        self.buffer.drain(..keep_from);
        self.written = at - keep_from;
        Ok(())
    }
}

impl<W: Write> Write for RedactingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.get(..bytes.len().min(CHUNK)).unwrap_or_default();
        self.buffer.extend_from_slice(taken);
        if self.buffer.len() - self.written >= CHUNK + OVERLAP {
            self.drain(false)?;
        }
        Ok(taken.len())
    }

    /// Does not write what is held back: a secret could be cut there.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// See [`Redactor::reader`].
#[derive(Debug)]
pub struct RedactingReader<'r, R> {
    inner: R,
    writer: RedactingWriter<'r, Vec<u8>>,
    at: usize,
    ended: bool,
}

impl<R: Read> Read for RedactingReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.writer.inner.len() && !self.ended {
            self.writer.inner.clear();
            self.at = 0;
            let mut piece = vec![0; CHUNK];
            let read = self.inner.read(&mut piece)?;
            if read == 0 {
                self.writer.drain(true)?;
                self.ended = true;
            } else {
                self.writer.write_all(piece.get(..read).unwrap_or_default())?;
            }
        }
        let ready = self.writer.inner.get(self.at..).unwrap_or_default();
        let length = ready.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..length), ready.get(..length)) {
            to.copy_from_slice(from);
        }
        self.at += length;
        Ok(length)
    }
}
