//! Owns what a text is once its escapes are undone, and where what is found there stands in the text itself. Whether a
//! backslash or a percent sign is an escape cannot be known, so each text is looked through both ways.

use std::ops::Range;

use super::patterns::Patterns;

/// A JSON text within a JSON text, in a query: deeper is not looked.
const DEEPEST: usize = 3;

/// Every place in the text where a pattern stands, as it is or behind escapes.
pub(super) fn find(patterns: &Patterns, text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    look(patterns, text, DEEPEST, &mut found);
    found
}

/// Where the end of the text begins that may be the beginning of a pattern, as it is or behind escapes; its length where
/// there is none.
pub(super) fn unfinished(patterns: &Patterns, text: &[u8]) -> usize {
    let end = text.len().saturating_sub(LONGEST_BEGUN);
    end + begun(patterns, text.get(end..).unwrap_or_default(), DEEPEST)
}

fn begun(patterns: &Patterns, text: &[u8], deeper: usize) -> usize {
    // Whatever an escape that is not whole stands for, it goes with what comes behind it.
    let whole = text.get(..text.len() - cut_escape(text)).unwrap_or_default();
    let mut least = patterns.unfinished(whole);
    if deeper > 0 {
        for undo in [percent as Undo, backslash as Undo] {
            let Some(view) = View::of(whole, undo) else { continue };
            let begun = begun(patterns, &view.bytes, deeper - 1);
            if begun < view.bytes.len() {
                least = least.min(view.source(&(begun..begun + 1)).start);
            }
        }
    }
    least
}

/// How long the escape at the end is that is not whole; 0: there is none.
fn cut_escape(text: &[u8]) -> usize {
    let from = text.len().saturating_sub(LONGEST_ESCAPE);
    let end = text.get(from..).unwrap_or_default();
    let cut = |at: &usize| {
        let rest = end.get(*at..).unwrap_or_default();
        let before = text.get(..from + at).unwrap_or_default();
        let escaping = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        if rest.starts_with(b"\\") && escaping % 2 == 1 {
            return false;
        }
        let digits = |rest: &[u8]| rest.iter().all(u8::is_ascii_hexdigit);
        match rest {
            [b'\\'] => true,
            [b'%', rest @ ..] | [b'\\', b'x', rest @ ..] => rest.len() < 2 && digits(rest),
            [b'\\', b'u', rest @ ..] if rest.len() < 4 => digits(rest),
            // The first half of a pair.
            [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', _, _, rest @ ..] => {
                rest.len() < 6 && b"\\u".iter().zip(rest).all(|(a, b)| a == b)
            }
            _ => false,
        }
    };
    (0..end.len()).find(cut).map_or(0, |at| end.len() - at)
}

fn look(patterns: &Patterns, text: &[u8], deeper: usize, found: &mut Vec<Range<usize>>) {
    patterns.find(text, found);
    if deeper == 0 {
        return;
    }
    for undo in [percent as Undo, backslash as Undo] {
        let Some(view) = View::of(text, undo) else { continue };
        let mut inside = Vec::new();
        look(patterns, &view.bytes, deeper - 1, &mut inside);
        found.extend(inside.into_iter().map(|range| view.source(&range)));
    }
}

/// A value whose beginning is longer than this is not waited for.
const LONGEST_BEGUN: usize = 8 << 10;
const LONGEST_ESCAPE: usize = 12;

/// What stands for the escape at the beginning of a text, and how long the escape is.
pub(super) type Undo = fn(&[u8]) -> Option<(Unescaped, usize)>;

/// At most one character.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unescaped {
    bytes: [u8; 4],
    length: usize,
}

impl Unescaped {
    fn byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], length: 1 }
    }

    fn character(character: char) -> Self {
        let mut bytes = [0; 4];
        let length = character.encode_utf8(&mut bytes).len();
        Self { bytes, length }
    }
}

/// Percent-encoding (RFC 3986, 2.1).
fn percent(text: &[u8]) -> Option<(Unescaped, usize)> {
    match text {
        [b'%', high, low, ..] => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
            Some((Unescaped::byte(byte), 3))
        }
        _ => None,
    }
}

/// Escapes of JSON (RFC 8259, 7), and those of its neighbours that JSON has not.
pub(super) fn backslash(text: &[u8]) -> Option<(Unescaped, usize)> {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 4)?;
        let text = std::str::from_utf8(digits).ok()?;
        u32::from_str_radix(text, 16).ok()
    };
    let byte = match text {
        [b'\\', b'u', ..] => {
            let first = unit(2)?;
            if (0xD800..0xDC00).contains(&first)
                && text.get(6..8) == Some(b"\\u")
                && let Some(second @ 0xDC00..0xE000) = unit(8)
            {
                let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Some((Unescaped::character(char::from_u32(code)?), 12));
            }
            return Some((Unescaped::character(char::from_u32(first)?), 6));
        }
        [b'\\', b'x', rest @ ..] => {
            let text = std::str::from_utf8(rest.get(..2)?).ok()?;
            return Some((Unescaped::byte(u8::from_str_radix(text, 16).ok()?), 4));
        }
        [b'\\', b'n', ..] => b'\n',
        [b'\\', b'r', ..] => b'\r',
        [b'\\', b't', ..] => b'\t',
        [b'\\', b'b', ..] => 8,
        [b'\\', b'f', ..] => 12,
        [b'\\', byte @ (b'"' | b'\\' | b'/' | b'\''), ..] => *byte,
        _ => return None,
    };
    Some((Unescaped::byte(byte), 2))
}

/// A text with its escapes undone.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) bytes: Vec<u8>,
    escapes: Vec<Escape>,
}

#[derive(Debug)]
struct Escape {
    /// In the view.
    at: usize,
    length: usize,
    /// In the text.
    source: usize,
    source_length: usize,
}

impl View {
    /// `None`: there is nothing to undo.
    pub(super) fn of(text: &[u8], undo: Undo) -> Option<Self> {
        let mut view = Self { bytes: Vec::new(), escapes: Vec::new() };
        let (mut at, mut kept) = (0, 0);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            let Some(next) = rest.iter().position(|byte| matches!(byte, b'%' | b'\\')) else { break };
            at += next;
            let Some((unescaped, length)) = text.get(at..).and_then(undo) else {
                at += 1;
                continue;
            };
            view.bytes.extend_from_slice(text.get(kept..at).unwrap_or_default());
            let escape =
                Escape { at: view.bytes.len(), length: unescaped.length, source: at, source_length: length };
            view.escapes.push(escape);
            view.bytes.extend_from_slice(unescaped.bytes.get(..unescaped.length).unwrap_or_default());
            at += length;
            kept = at;
        }
        if view.escapes.is_empty() {
            return None;
        }
        view.bytes.extend_from_slice(text.get(kept..).unwrap_or_default());
        Some(view)
    }

    /// Where a part of the view stands in the text, with whole escapes.
    pub(crate) fn source(&self, range: &Range<usize>) -> Range<usize> {
        let start = match self.last_before(range.start) {
            Some(escape) if range.start < escape.at + escape.length => escape.source,
            escape => behind(escape, range.start),
        };
        let end = match self.last_before(range.end.saturating_sub(1)) {
            Some(escape) if range.end <= escape.at + escape.length => escape.source + escape.source_length,
            escape => behind(escape, range.end),
        };
        start..end
    }

    fn last_before(&self, at: usize) -> Option<&Escape> {
        let before = self.escapes.partition_point(|escape| escape.at <= at);
        before.checked_sub(1).and_then(|index| self.escapes.get(index))
    }
}

fn behind(escape: Option<&Escape>, at: usize) -> usize {
    escape.map_or(at, |escape| escape.source + escape.source_length + (at - escape.at - escape.length))
}
