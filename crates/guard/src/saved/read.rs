//! Owns reading a text file by lines and searching it, streaming, whatever the length of its lines.

use std::collections::VecDeque;
use std::io::{self, Read};

use regex::bytes::Regex;

const CHUNK: usize = 64 << 10;
/// A longer line is handed on in pieces of this size.
pub(crate) const PIECE: usize = 64 << 10;
/// What a search shows of a line at most, around the find.
const SHOWN: usize = 400;
/// What the pieces of a long line share in a search, so that a find across them is seen.
const OVERLAP: usize = 1024;

/// A line, or a piece of a long one, without its line break.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinePiece<'a> {
    /// From 1.
    pub(crate) number: u64,
    /// Where in its line the piece begins, in bytes.
    pub(crate) column: u64,
    pub(crate) bytes: &'a [u8],
    /// The line ends with this piece.
    pub(crate) ends: bool,
}

/// Hands every line to `take`, which says whether to go on. `\n` and `\r\n` end lines.
pub(crate) fn each_line(
    mut file: impl Read,
    mut take: impl FnMut(LinePiece<'_>) -> io::Result<bool>,
) -> io::Result<()> {
    let mut buffer: Vec<u8> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let (mut number, mut column) = (1, 0);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            break;
        }
        let mut rest = chunk.get(..read).unwrap_or_default();
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(at);
            rest = after.get(1..).unwrap_or_default();
            let whole: &[u8] = if buffer.is_empty() {
                line
            } else {
                buffer.extend_from_slice(line);
                &buffer
            };
            let bytes = whole.strip_suffix(b"\r").unwrap_or(whole);
            if !take(LinePiece { number, column, bytes, ends: true })? {
                return Ok(());
            }
            buffer.clear();
            number += 1;
            column = 0;
        }
        buffer.extend_from_slice(rest);
        if buffer.len() >= PIECE {
            if !take(LinePiece { number, column, bytes: &buffer, ends: false })? {
                return Ok(());
            }
            column += buffer.len() as u64;
            buffer.clear();
        }
    }
    if !buffer.is_empty() || column > 0 {
        take(LinePiece { number, column, bytes: &buffer, ends: true })?;
    }
    Ok(())
}

/// What a search finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A line with a find, or one beside it.
    Line {
        /// From 1.
        number: u64,
        /// The line; of a long one the part around the find.
        text: String,
        /// It has the find; otherwise it is context.
        matched: bool,
    },
    /// Lines are left out here.
    Gap,
}

/// Hands every line that fits to `take`, with `context` lines around it, from line `from` on.
pub(super) fn search(
    file: impl Read,
    pattern: &Regex,
    context: usize,
    from: u64,
    take: &mut dyn FnMut(Found) -> bool,
) -> io::Result<()> {
    let mut before: VecDeque<(u64, String)> = VecDeque::new();
    let mut carry: Vec<u8> = Vec::new();
    let (mut after, mut told, mut found_in) = (0usize, 0u64, 0u64);
    each_line(file, |piece| {
        if piece.number < from {
            return Ok(true);
        }
        let joined = [carry.as_slice(), piece.bytes].concat();
        carry.clear();
        if !piece.ends {
            carry.extend_from_slice(joined.get(joined.len().saturating_sub(OVERLAP)..).unwrap_or_default());
        }
        if found_in == piece.number {
            return Ok(true);
        }
        if let Some(found) = pattern.find(&joined) {
            found_in = piece.number;
            let first = before.front().map_or(piece.number, |(number, _)| *number);
            if told > 0 && first > told + 1 && !take(Found::Gap) {
                return Ok(false);
            }
            for (number, text) in before.drain(..) {
                if !take(Found::Line { number, text, matched: false }) {
                    return Ok(false);
                }
            }
            told = piece.number;
            after = context;
            return Ok(take(Found::Line {
                number: piece.number,
                text: around(&joined, found.range()),
                matched: true,
            }));
        }
        if !piece.ends {
            return Ok(true);
        }
        let text = around(&joined, 0..0);
        if after > 0 {
            after -= 1;
            told = piece.number;
            return Ok(take(Found::Line { number: piece.number, text, matched: false }));
        }
        if context > 0 {
            if before.len() == context {
                before.pop_front();
            }
            before.push_back((piece.number, text));
        }
        Ok(true)
    })
}

/// A line, or of a long one the part around a find.
fn around(line: &[u8], found: std::ops::Range<usize>) -> String {
    if line.len() <= SHOWN {
        return String::from_utf8_lossy(line).into_owned();
    }
    let start = found.start.saturating_sub(SHOWN / 4).min(line.len());
    let end = (start + SHOWN).min(line.len());
    let is_border = |at: &usize| line.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let start = (start.saturating_sub(3)..=start).rev().find(is_border).unwrap_or(start);
    let end = (end..(end + 4).min(line.len())).find(is_border).unwrap_or(end);
    let text = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    let (left, right) = (if start > 0 { "... " } else { "" }, if end < line.len() { " ..." } else { "" });
    format!("{left}{text}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, pattern: &str, context: usize, from: u64) -> Vec<String> {
        let mut out = Vec::new();
        search(text.as_bytes(), &Regex::new(pattern).unwrap(), context, from, &mut |found| {
            out.push(match found {
                Found::Line { number, text, matched } => {
                    format!("{number}{}{text}", if matched { ':' } else { '-' })
                }
                Found::Gap => "--".into(),
            });
            true
        })
        .unwrap();
        out
    }

    #[test]
    fn finds_come_with_their_context_once() {
        let text = "a\nb\nX1\nc\nX2\nd\ne\nf\ng\nX3\n";
        assert_eq!(found(text, "X", 0, 1), ["3:X1", "--", "5:X2", "--", "10:X3"]);
        assert_eq!(found(text, "X", 1, 1), ["2-b", "3:X1", "4-c", "5:X2", "6-d", "--", "9-g", "10:X3"]);
        assert_eq!(found(text, "X", 0, 6), ["10:X3"]);
        assert_eq!(found("one\r\ntwo", "o$", 0, 1), ["2:two"]);
    }

    #[test]
    fn long_lines_are_searched_in_pieces_and_shown_in_part() {
        let text = format!("{}NEEDLE{}\nlast NEEDLE", "x".repeat(PIECE * 2 - 3), "y".repeat(100_000));
        let found = found(&text, "NEEDLE", 1, 1);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("1:... xxx") && found[0].contains("xNEEDLEy") && found[0].len() < 450);
        assert_eq!(found[1], "2:last NEEDLE");
    }

    #[test]
    fn lines_are_counted_whatever_the_chunks() {
        let text = format!("{}\n\n{}\nend", "a".repeat(PIECE), "b".repeat(PIECE * 3 + 5));
        let mut lines: Vec<(u64, usize)> = Vec::new();
        each_line(text.as_bytes(), |piece| {
            match lines.last_mut() {
                Some((number, len)) if *number == piece.number => *len += piece.bytes.len(),
                _ => lines.push((piece.number, piece.bytes.len())),
            }
            Ok(true)
        })
        .unwrap();
        assert_eq!(lines, [(1, PIECE), (2, 0), (3, PIECE * 3 + 5), (4, 3)]);
    }
}
