//! Owns the way between a host's bytes and lines: a cap on what is held, and the id of a line that was too long. It
//! knows neither stdin nor JSON-RPC's methods.

use bytes::{Bytes, BytesMut};
use toolway_wire::{Id, LineSplitter, Piece, Scanner, Verdict};

/// The most bytes of a line.
pub(super) const LINE_BYTES: usize = 32 << 20;

/// So much is kept of both ends of a line that is too long.
const EDGE: usize = 4 << 10;

/// What a host has sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostLine {
    /// A line with something on it.
    Whole(Bytes),
    /// A line over the cap.
    TooLong(LongLine),
}

/// What is kept of a line over the cap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LongLine {
    /// Its id, where it is a request and has one.
    pub(super) id: Option<Id>,
    /// The call that it was to end, as far as that stands near its beginning or its end.
    pub(super) call: Option<String>,
}

/// A line over the cap while it is read.
#[derive(Debug)]
struct Excess {
    scanner: Scanner,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Excess {
    fn new(line: &[u8], next: &[u8]) -> Self {
        let head = line.iter().chain(next).take(EDGE).copied().collect();
        let mut excess = Self { scanner: Scanner::new(), head, tail: Vec::new() };
        excess.feed(line);
        excess.feed(next);
        excess
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.scanner.feed(bytes);
        self.tail.extend_from_slice(bytes.get(bytes.len().saturating_sub(EDGE)..).unwrap_or_default());
        self.tail.drain(..self.tail.len().saturating_sub(EDGE));
    }

    fn end(mut self) -> LongLine {
        let Verdict::Message(envelope) = self.scanner.finish() else { return LongLine::default() };
        let id = envelope.id().cloned();
        let ends = matches!(envelope.method(), Some("call/result" | "call/fail"));
        let call = || calls_in(&self.head).next().or_else(|| calls_in(&self.tail).last());
        LongLine { id, call: if ends { call() } else { None } }
    }
}

/// The values of members that are called `call`.
fn calls_in(text: &[u8]) -> impl Iterator<Item = String> + '_ {
    memchr::memmem::find_iter(text, b"\"call\"").filter_map(|at| {
        let rest = text.get(at + 6..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let value = rest.strip_prefix(b"\"")?.split(|byte| matches!(byte, b'"' | b'\\')).next()?;
        Some(std::str::from_utf8(value).ok()?.to_owned())
    })
}

/// Cuts chunks into lines. Holds no more than one line, and no more than the cap of it.
#[derive(Debug)]
pub(super) struct Lines {
    splitter: LineSplitter,
    most: usize,
    line: BytesMut,
    /// The line is over the cap: it is read on for its id alone.
    excess: Option<Box<Excess>>,
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
                Some(excess) => excess.feed(bytes),
                None if line.len() + bytes.len() > *most => {
                    *excess = Some(Box::new(Excess::new(line, bytes)));
                    *line = BytesMut::new();
                }
                None => line.extend_from_slice(bytes),
            },
            Piece::End => {
                if let Some(excess) = excess.take() {
                    take(HostLine::TooLong(excess.end()));
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
                [
                    HostLine::TooLong(LongLine { id: id.clone(), call: None }),
                    whole("{\"a\":1}"),
                    HostLine::TooLong(LongLine::default())
                ],
                "{size}"
            );
        }
        assert_eq!(lines(&[&[b'1'; 100], b"\n"], 100).len(), 1);
        assert!(matches!(lines(&[&[b'1'; 100], b"\n"], 100)[0], HostLine::Whole(_)));
    }

    #[test]
    fn the_call_of_a_line_over_the_cap_is_found_at_either_end() {
        let long = "y".repeat(20_000);
        for (method, params, call) in [
            ("call/result", format!(r#"{{"call":"c-1","content":"{long}"}}"#), Some("c-1")),
            ("call/result", format!(r#"{{"content":"{long}", "call" : "c-2" }}"#), Some("c-2")),
            ("call/fail", format!(r#"{{"call":"c-3","reason":"{long}"}}"#), Some("c-3")),
            ("call/result", format!(r#"{{"content":"\"call\":\"no\" {long}","call":"c-4"}}"#), Some("c-4")),
            ("call/progress", format!(r#"{{"call":"c-5","message":"{long}"}}"#), None),
            ("call/result", format!(r#"{{"content":"{long}","call":7}}"#), None),
        ] {
            let line =
                format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n");
            for size in [7, 64, 5000, 50_000] {
                let chunks: Vec<&[u8]> = line.as_bytes().chunks(size).collect();
                let expected = LongLine { id: Some(Id::from_number(1)), call: call.map(ToOwned::to_owned) };
                assert_eq!(lines(&chunks, 100), [HostLine::TooLong(expected)], "{size} {call:?}");
            }
        }
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
