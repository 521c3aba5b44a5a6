//! Owns what was read of a server's lines and not handed on yet. Pieces of a message are slices of what one read
//! brought: nothing is copied.

use bytes::{Buf as _, Bytes, BytesMut};

use crate::transport::{Inbound, StreamId};

/// Read at once while little comes.
const SMALL: usize = 8 * 1024;
/// Read at once while much comes: as much as the pipe holds.
const LARGE: usize = 256 * 1024;

/// Cuts bytes into lines.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Room for the next read, all of it initialised.
    buffer: BytesMut,
    /// How much is read at once.
    size: usize,
    chunk: Bytes,
    /// The line that is being handed on.
    stream: u64,
    /// Bytes of it were handed on, and not its end.
    within: bool,
    ended: bool,
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            buffer: BytesMut::new(),
            size: SMALL,
            chunk: Bytes::new(),
            stream: 0,
            within: false,
            ended: false,
        }
    }
}

impl Lines {
    /// Where to read to; never empty.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        if self.buffer.len() < self.size / 4 {
            self.buffer.resize(self.size, 0);
        }
        &mut self.buffer
    }

    /// So many bytes were read into the buffer. What was read before must have been handed on.
    pub(crate) fn filled(&mut self, count: usize) {
        if count == self.buffer.len() {
            self.size = (self.size * 4).min(LARGE);
        } else if count < SMALL / 2 && self.size > SMALL {
            self.size = (self.size / 2).max(SMALL);
            self.buffer.truncate(self.size.max(count));
        }
        self.chunk = self.buffer.split_to(count).freeze();
    }

    /// Nothing more will come. A last line without its ending is a line.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    pub(crate) fn at_end(&self) -> bool {
        self.ended && self.chunk.is_empty() && !self.within
    }

    /// The next piece or end of a line.
    pub(crate) fn next(&mut self) -> Option<Inbound> {
        loop {
            let stream = StreamId(self.stream);
            match memchr::memchr(b'\n', &self.chunk) {
                Some(0) => {
                    self.chunk.advance(1);
                    if std::mem::take(&mut self.within) {
                        self.stream += 1;
                        return Some(Inbound::End { stream });
                    }
                }
                Some(at) => {
                    self.within = true;
                    return Some(Inbound::Data { stream, bytes: self.chunk.split_to(at) });
                }
                None if self.chunk.is_empty() => {
                    let last = self.ended && std::mem::take(&mut self.within);
                    return last.then_some(Inbound::End { stream });
                }
                None => {
                    self.within = true;
                    return Some(Inbound::Data { stream, bytes: std::mem::take(&mut self.chunk) });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(lines: &mut Lines, bytes: &[u8]) {
        lines.buffer()[..bytes.len()].copy_from_slice(bytes);
        lines.filled(bytes.len());
    }

    fn cut(text: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::default();
        let (mut found, mut line) = (Vec::new(), Vec::new());
        let mut take = |event| match event {
            Inbound::Data { bytes, .. } => line.extend_from_slice(&bytes),
            _ => found.push(std::mem::take(&mut line)),
        };
        for piece in text.chunks(piece) {
            feed(&mut lines, piece);
            std::iter::from_fn(|| lines.next()).for_each(&mut take);
        }
        lines.end();
        std::iter::from_fn(|| lines.next()).for_each(&mut take);
        assert!(lines.at_end());
        found
    }

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = b"one\n\n{\"a\":1}\r\n  \nlast";
        let expected: Vec<&[u8]> = vec![b"one", b"{\"a\":1}\r", b"  ", b"last"];
        for piece in [1, 2, 3, 5, 100] {
            assert_eq!(cut(text, piece), expected, "{piece}");
        }
        assert_eq!(cut(b"one\n", 100), [b"one"]);
        assert!(cut(b"\n\n", 100).is_empty());
    }

    #[test]
    fn buffers_grow_with_the_flow_and_shrink_without() {
        let mut lines = Lines::default();
        for _ in 0..4 {
            let room = lines.buffer().len();
            lines.filled(room);
            while lines.next().is_some() {}
        }
        assert_eq!(lines.buffer().len(), LARGE);
        for _ in 0..200 {
            lines.buffer();
            lines.filled(10);
            while lines.next().is_some() {}
        }
        assert!(lines.buffer().len() <= SMALL);
    }
}
