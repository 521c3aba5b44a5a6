//! Owns what is to be written to a server: whole lines in their order. Small messages are joined, so that many leave by
//! one write; of a message in a file one piece at a time is held.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _};

use bytes::Bytes;

use crate::transport::Payload;

/// A larger message is not copied.
const LARGE: usize = 16 * 1024;
/// What is read of a file at once.
const CHUNK: usize = 64 * 1024;

/// Lines for the server.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// What is being written.
    front: Front,
    /// How much of it has been.
    written: usize,
    rest: VecDeque<Piece>,
    /// Small messages that come after all the rest.
    tail: Vec<u8>,
    /// Bytes in memory.
    len: usize,
}

#[derive(Debug)]
enum Front {
    Joined(Vec<u8>),
    Whole(Bytes),
}

#[derive(Debug)]
enum Piece {
    Bytes(Front),
    File { file: File, left: u64 },
}

impl Default for Front {
    fn default() -> Self {
        Self::Joined(Vec::new())
    }
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.front().is_empty()
    }

    /// Bytes that wait. A file counts as what is held of it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a message and its line ending. Raw line breaks between its tokens become spaces.
    pub(crate) fn push(&mut self, payload: Payload) {
        match payload {
            Payload::Bytes(bytes) if bytes.len() >= LARGE && !has_break(&bytes) => {
                self.len += bytes.len();
                self.add(Piece::Bytes(Front::Whole(bytes)));
            }
            Payload::Bytes(bytes) => {
                let from = self.tail.len();
                self.tail.extend_from_slice(&bytes);
                flatten(self.tail.get_mut(from..).unwrap_or_default());
                self.len += bytes.len();
            }
            Payload::File { mut file, len } => match file.rewind() {
                Ok(()) => self.add(Piece::File { file, left: len }),
                Err(error) => return tracing::warn!(%error, "a spooled message could not be read back"),
            },
        }
        self.tail.push(b'\n');
        self.len += 1;
        self.load();
    }

    /// The next bytes; empty when there are none.
    pub(crate) fn front(&self) -> &[u8] {
        let bytes = match &self.front {
            Front::Joined(bytes) => bytes.as_slice(),
            Front::Whole(bytes) => bytes,
        };
        bytes.get(self.written..).unwrap_or_default()
    }

    /// So many bytes of the front were written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written += count;
        self.len = self.len.saturating_sub(count);
        self.load();
    }

    fn add(&mut self, piece: Piece) {
        if !self.tail.is_empty() {
            let joined = std::mem::take(&mut self.tail);
            self.rest.push_back(Piece::Bytes(Front::Joined(joined)));
        }
        self.rest.push_back(piece);
    }

    /// Goes on to the next piece when the front is written.
    fn load(&mut self) {
        if !self.front().is_empty() {
            return;
        }
        self.written = 0;
        match self.rest.pop_front() {
            Some(Piece::Bytes(front)) => self.front = front,
            Some(Piece::File { file, left }) => self.load_file(file, left),
            None => {
                let mut spare = match std::mem::take(&mut self.front) {
                    Front::Joined(bytes) if bytes.capacity() <= LARGE => bytes,
                    _ => Vec::new(),
                };
                spare.clear();
                self.front = Front::Joined(std::mem::replace(&mut self.tail, spare));
            }
        }
    }

    /// Reads the next piece of a file. One that is shorter than it was is filled up with spaces: its message is broken
    /// and is refused by the server, the next one is not.
    fn load_file(&mut self, mut file: File, left: u64) {
        let size = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        let mut piece = vec![b' '; size];
        let mut left = left - size as u64;
        if let Err(error) = file.read_exact(&mut piece) {
            tracing::warn!(%error, "a spooled message could not be read back");
            left = 0;
        }
        flatten(&mut piece);
        self.len += piece.len();
        self.front = Front::Joined(piece);
        if left > 0 {
            self.rest.push_front(Piece::File { file, left });
        }
    }
}

fn has_break(bytes: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', bytes).is_some()
}

fn flatten(bytes: &mut [u8]) {
    let mut from = 0;
    while let Some(at) = bytes.get(from..).and_then(|rest| memchr::memchr2(b'\n', b'\r', rest)) {
        from += at;
        if let Some(byte) = bytes.get_mut(from) {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn drain(outbox: &mut Outbox, piece: usize) -> Vec<u8> {
        let mut written = Vec::new();
        while !outbox.is_empty() {
            let count = outbox.front().len().min(piece);
            written.extend_from_slice(&outbox.front()[..count]);
            outbox.advance(count);
        }
        assert_eq!(outbox.len(), 0);
        written
    }

    #[test]
    fn messages_of_every_size_leave_whole_and_in_order() {
        let large = "x".repeat(100_000);
        let mut file = tempfile::tempfile().unwrap();
        let spooled = "y\n".repeat(100_000);
        file.write_all(spooled.as_bytes()).unwrap();
        for piece in [1000, 70_000, usize::MAX] {
            let mut outbox = Outbox::default();
            assert!(outbox.is_empty());
            for text in ["one", "t\r\nwo", &large, "three", &format!("a\n{large}")] {
                outbox.push(Payload::Bytes(Bytes::copy_from_slice(text.as_bytes())));
            }
            let len = spooled.len() as u64;
            outbox.push(Payload::File { file: file.try_clone().unwrap(), len });
            outbox.push(Payload::Bytes("last".into()));
            let spooled = spooled.replace('\n', " ");
            let expected = format!("one\nt  wo\n{large}\nthree\na {large}\n{spooled}\nlast\n");
            assert!(drain(&mut outbox, piece) == expected.as_bytes(), "{piece}");
            outbox.push(Payload::Bytes("again".into()));
            assert_eq!(drain(&mut outbox, piece), b"again\n");
        }
    }

    #[test]
    fn a_file_of_any_length_is_held_in_pieces() {
        let mut outbox = Outbox::default();
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 << 20).unwrap();
        outbox.push(Payload::File { file, len: 64 << 20 });
        assert!(outbox.len() <= CHUNK + 1);
        outbox.clear();
        assert!(outbox.is_empty());
    }
}
