//! Owns the way between a host's bytes and lines: a cap on what is held, and the id of a line that was too long. It
//! knows neither stdin nor JSON-RPC's methods.

use bytes::{Bytes, BytesMut};
use toolway_wire::{Envelope, Id, LineSplitter, Piece, Scanner, Verdict};

/// The most bytes of a line.
pub(super) const LINE_BYTES: usize = 32 << 20;

/// What a host has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostLine {
    /// A line with something on it.
    Whole(Bytes),
    /// A line over the cap, of which nothing is kept but its id, where it is a request and has one.
    TooLong(Option<Id>),
}

/// Cuts chunks into lines. Holds no more than one line, and no more than the cap of it.
#[derive(Debug)]
pub(super) struct Lines {
    splitter: LineSplitter,
    most: usize,
    line: BytesMut,
    /// The line is over the cap: it is read on for its id alone.
    excess: Option<Box<Scanner>>,
}

impl Lines {
    pub(super) fn new(most: usize) -> Self {
        Self { splitter: LineSplitter::new(), most, line: BytesMut::new(), excess: None }
    }

    /// Takes the next bytes, and gives the lines that they end.
    pub(super) fn feed(&mut self, chunk: &[u8], mut take: impl FnMut(HostLine)) {
        let Self { splitter, most, line, excess } = self;
        splitter.split(chunk, |piece| match piece {
            Piece::Data(bytes) => match excess {
                Some(scanner) => {
                    scanner.feed(bytes);
                }
                None if line.len() + bytes.len() > *most => {
                    let mut scanner = Box::new(Scanner::new());
                    scanner.feed(line);
                    scanner.feed(bytes);
                    *line = BytesMut::new();
                    *excess = Some(scanner);
                }
                None => line.extend_from_slice(bytes),
            },
            Piece::End => {
                if let Some(mut scanner) = excess.take() {
                    take(HostLine::TooLong(id_of(&scanner.finish())));
                } else if !line.trim_ascii().is_empty() {
                    take(HostLine::Whole(line.split().freeze()));
                }
                line.clear();
            }
        });
    }

    /// The input has ended: what stands on a last line without an ending.
    pub(super) fn end(&mut self) -> Option<HostLine> {
        let mut last = None;
        self.feed(b"\n", |line| last = Some(line));
        last
    }
}

fn id_of(verdict: &Verdict<'_>) -> Option<Id> {
    match verdict {
        Verdict::Message(envelope) => request_id(envelope),
        _ => None,
    }
}

fn request_id(envelope: &Envelope) -> Option<Id> {
    envelope.id().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]], most: usize) -> Vec<HostLine> {
        let mut lines = Lines::new(most);
        let mut got = Vec::new();
        for chunk in chunks {
            lines.feed(chunk, |line| got.push(line));
        }
        got.extend(lines.end());
        got
    }

    fn whole(text: &str) -> HostLine {
        HostLine::Whole(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let text = b"{\"a\":1}\r\n\n  \n{\"b\":2}\n{\"c\":3}";
        let expected = [whole("{\"a\":1}"), whole("{\"b\":2}"), whole("{\"c\":3}")];
        for size in 1..text.len() {
            let chunks: Vec<&[u8]> = text.chunks(size).collect();
            assert_eq!(lines(&chunks, 100), expected, "{size}");
        }
    }

    #[test]
    fn a_line_over_the_cap_is_dropped_and_the_next_one_is_read() {
        let long = format!(
            r#"{{"jsonrpc":"2.0","method":"call/result","params":{{"content":"{}"}},"id":"x7"}}"#,
            "y".repeat(500)
        );
        let text = format!("{long}\n{{\"a\":1}}\n{}\n", "z".repeat(500));
        let id = Id::from_json(b"\"x7\"");
        for size in [1, 7, 64, 2000] {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(
                lines(&chunks, 100),
                [HostLine::TooLong(id.clone()), whole("{\"a\":1}"), HostLine::TooLong(None)],
                "{size}"
            );
        }
        assert_eq!(lines(&[&[b'1'; 100], b"\n"], 100).len(), 1);
        assert!(matches!(lines(&[&[b'1'; 100], b"\n"], 100)[0], HostLine::Whole(_)));
    }

    #[test]
    fn memory_is_given_back_after_a_long_line() {
        let mut reader = Lines::new(1000);
        for _ in 0..100_000 {
            reader.feed(b"aaaaaaaaaaaaaaaaaaaa", |_| {});
        }
        assert!(reader.line.capacity() < 2000, "{}", reader.line.capacity());
    }
}
