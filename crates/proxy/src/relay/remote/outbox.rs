//! Owns what is to be written to the client: bytes, and messages in files, of which one piece at a time is held.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;

use crate::relay::parts::{Line, Part, flatten_in_place, read_at};

/// When so much waits, nothing more is taken from the server.
const FULL: usize = 1 << 20;
/// What is read of a file at once.
const CHUNK: usize = 256 << 10;

/// Lines for the client, in their order. Raw line breaks between the tokens of a message become spaces.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    front: Vec<u8>,
    written: usize,
    /// What comes after `front`.
    rest: VecDeque<Piece>,
}

#[derive(Debug)]
enum Piece {
    Bytes(Vec<u8>),
    File { file: Arc<File>, at: u64, end: u64 },
}

impl Outbox {
    /// Nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.written >= self.front.len() && self.rest.is_empty()
    }

    /// Enough waits.
    pub(crate) fn is_full(&self) -> bool {
        self.front.len() - self.written.min(self.front.len()) >= FULL || !self.rest.is_empty()
    }

    /// The next bytes to be written.
    pub(crate) fn front(&self) -> &[u8] {
        self.front.get(self.written..).unwrap_or_default()
    }

    /// So many bytes of the front were written.
    pub(crate) fn advance(&mut self, length: usize) -> io::Result<()> {
        self.written += length;
        if self.written < self.front.len() {
            return Ok(());
        }
        self.front.clear();
        self.front.shrink_to(CHUNK);
        self.written = 0;
        self.load()
    }

    /// Adds whole lines of ours.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.tail().extend_from_slice(bytes);
        }
    }

    /// Adds a line and its end.
    pub(crate) fn line(&mut self, line: Line<'_>) {
        match line {
            Line::Nothing => return,
            Line::One(part) => self.part(part),
            Line::Many(parts) => parts.into_iter().for_each(|part| self.part(part)),
        }
        self.tail().push(b'\n');
        if self.front.is_empty()
            && let Err(error) = self.load()
        {
            tracing::warn!(%error, "a spooled message could not be read back");
        }
    }

    fn part(&mut self, part: Part<'_>) {
        match part {
            Part::Slice(bytes) => {
                let tail = self.tail();
                let from = tail.len();
                tail.extend_from_slice(bytes);
                flatten_in_place(tail.get_mut(from..).unwrap_or_default());
            }
            Part::Bytes(bytes) => self.tail().extend_from_slice(&bytes),
            Part::File { file, start, len } => {
                self.rest.push_back(Piece::File { file, at: start, end: start + len });
            }
        }
    }

    /// Where bytes are added.
    fn tail(&mut self) -> &mut Vec<u8> {
        if self.rest.is_empty() {
            return &mut self.front;
        }
        if !matches!(self.rest.back(), Some(Piece::Bytes(_))) {
            self.rest.push_back(Piece::Bytes(Vec::new()));
        }
        match self.rest.back_mut() {
            Some(Piece::Bytes(bytes)) => bytes,
            _ => &mut self.front,
        }
    }

    /// Fills the empty front from what comes next.
    fn load(&mut self) -> io::Result<()> {
        match self.rest.pop_front() {
            None => {}
            Some(Piece::Bytes(bytes)) => self.front = bytes,
            Some(Piece::File { file, at, end }) => {
                let want = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
                self.front.resize(want, 0);
                let read = read_at(&file, &mut self.front, at)?;
                if read == 0 && want > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.front.truncate(read);
                flatten_in_place(&mut self.front);
                let at = at + read as u64;
                if at < end {
                    self.rest.push_front(Piece::File { file, at, end });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn drain(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !outbox.is_empty() {
            let take = outbox.front().len().min(step);
            assert!(take > 0);
            out.extend_from_slice(&outbox.front()[..take]);
            outbox.advance(take).unwrap();
        }
        out
    }

    #[test]
    fn lines_leave_in_order_whatever_they_are_made_of() {
        let mut file = tempfile::tempfile().unwrap();
        let big = "x\r\ny".repeat(200_000);
        file.write_all(big.as_bytes()).unwrap();
        let file = Arc::new(file);
        let flat = big.replace(['\r', '\n'], " ");
        for step in [1000, 7_777_777] {
            let mut outbox = Outbox::default();
            outbox.bytes(b"first\n");
            outbox.line(Line::One(Part::Slice(b"a\nb")));
            outbox.line(Line::One(Part::File { file: Arc::clone(&file), start: 0, len: big.len() as u64 }));
            outbox.line(Line::Nothing);
            outbox.line(Line::Many(vec![
                Part::Slice(b"["),
                Part::File { file: Arc::clone(&file), start: 4, len: 3 },
                Part::Bytes(b"]".to_vec()),
            ]));
            outbox.bytes(b"last\n");
            assert!(outbox.is_full());
            let expected = format!("first\na b\n{flat}\n[x  ]\nlast\n");
            assert_eq!(String::from_utf8(drain(&mut outbox, step)).unwrap(), expected);
        }
    }

    #[test]
    fn a_file_at_the_front_is_loaded_at_once() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"{}").unwrap();
        let mut outbox = Outbox::default();
        outbox.line(Line::One(Part::File { file: Arc::new(file), start: 0, len: 2 }));
        assert_eq!(drain(&mut outbox, 10), b"{}\n");
    }
}
