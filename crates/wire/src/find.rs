//! Owns look-ups in a complete message: where a value stands, so that a change can be a splice. No tree, no copies.
//!
//! The input must be valid JSON (the scanner has seen it); on anything else the look-ups find nothing or less,
//! and never fail.

use std::ops::Range;

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The member of that name; the last one where a name stands twice.
    Key(&'a str),
    /// The element of that number, from 0.
    Index(usize),
}

/// A member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Where its name stands, quotes included.
    pub name: Range<usize>,
    /// Where its value stands.
    pub value: Range<usize>,
}

/// Where the value at `path` stands.
pub fn find(json: &[u8], path: &[Step<'_>]) -> Option<Range<usize>> {
    let start = space(json, 0);
    let mut at = start..value_end(json, start);
    for step in path {
        at = match step {
            Step::Key(key) => members(json, at).filter(|member| is_named(json, member, key)).last()?.value,
            Step::Index(index) => elements(json, at).nth(*index)?,
        };
    }
    (!at.is_empty()).then_some(at)
}

/// The members of the object that stands at `at`.
pub fn members(json: &[u8], at: Range<usize>) -> Members<'_> {
    let open = json.get(at.start) == Some(&b'{');
    Members { json, next: if open { at.start + 1 } else { json.len() }, end: at.end }
}

/// The elements of the array that stands at `at`.
pub fn elements(json: &[u8], at: Range<usize>) -> Elements<'_> {
    let open = json.get(at.start) == Some(&b'[');
    Elements { json, next: if open { at.start + 1 } else { json.len() }, end: at.end }
}

/// The member has that name, however it is spelled.
pub fn is_named(json: &[u8], member: &Member, name: &str) -> bool {
    let raw = json.get(member.name.clone()).unwrap_or_default();
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if inner.contains(&b'\\') {
        return serde_json::from_slice::<String>(raw).is_ok_and(|decoded| decoded == name);
    }
    inner == name.as_bytes()
}

/// The text of the string that stands at `at`; invalid UTF-8 and lone surrogates become U+FFFD.
pub fn string(json: &[u8], at: Range<usize>) -> Option<String> {
    struct Decode(Vec<u8>, crate::text::TextDecoder);
    impl crate::lex::Sink for Decode {
        fn run(&mut self, run: crate::lex::Run<'_>) {
            self.1.run(run.bytes, &mut self.0);
        }
        fn escape(&mut self, unit: u16, _raw: &[u8]) {
            self.1.escape(unit, &mut self.0);
        }
        fn string_end(&mut self, _end: u64) {
            self.1.end(&mut self.0);
        }
    }
    let raw = json.get(at)?;
    if raw.first() != Some(&b'"') {
        return None;
    }
    let mut sink = Decode(Vec::with_capacity(raw.len()), crate::text::TextDecoder::default());
    let mut lexer = crate::lex::Lexer::new();
    lexer.feed(raw, &mut sink).ok()?;
    lexer.finish(&mut sink).ok()?;
    Some(
        String::from_utf8(sink.0)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// Iterator over members, see [`members`].
#[derive(Debug, Clone)]
pub struct Members<'a> {
    json: &'a [u8],
    next: usize,
    end: usize,
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        let start = separator(self.json, self.next);
        if start >= self.end || self.json.get(start) != Some(&b'"') {
            self.next = self.json.len();
            return None;
        }
        let name = start..value_end(self.json, start);
        let colon = space(self.json, name.end);
        let value = space(self.json, colon + 1);
        let value = value..value_end(self.json, value);
        self.next = value.end;
        Some(Member { name, value })
    }
}

/// Iterator over elements, see [`elements`].
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    json: &'a [u8],
    next: usize,
    end: usize,
}

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = separator(self.json, self.next);
        if start >= self.end || matches!(self.json.get(start), None | Some(b']' | b'}')) {
            self.next = self.json.len();
            return None;
        }
        let end = value_end(self.json, start);
        self.next = end.max(start + 1);
        Some(start..end)
    }
}

fn space(json: &[u8], from: usize) -> usize {
    let rest = json.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

fn separator(json: &[u8], from: usize) -> usize {
    let at = space(json, from);
    if json.get(at) == Some(&b',') { space(json, at + 1) } else { at }
}

/// The offset after the value that begins at `start`.
fn value_end(json: &[u8], start: usize) -> usize {
    let mut depth = 0usize;
    let mut i = start;
    while let Some(&byte) = json.get(i) {
        match byte {
            b'"' => {
                i = string_end(json, i);
                if depth == 0 {
                    return i;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                if depth <= 1 {
                    return if depth == 1 { i + 1 } else { i };
                }
                depth -= 1;
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return i,
            _ => {}
        }
        i += 1;
    }
    json.len()
}

fn string_end(json: &[u8], start: usize) -> usize {
    let mut i = start + 1;
    while let Some(found) = json.get(i..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        i += found;
        if json.get(i) == Some(&b'"') {
            return i + 1;
        }
        i += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use Step::{Index, Key};

    fn at<'a>(json: &'a str, path: &[Step<'_>]) -> Option<&'a str> {
        find(json.as_bytes(), path).and_then(|range| json.get(range))
    }

    #[test]
    fn values_are_found_byte_for_byte() {
        let json =
            r#" { "a" : [ 1.0 , {"b":"x\"]}"}, [] ] , "a\u0062": null, "e":{},"a2" :true,"d":1,"d":2 } "#;
        assert_eq!(at(json, &[Key("a"), Index(0)]), Some("1.0"));
        assert_eq!(at(json, &[Key("a"), Index(1), Key("b")]), Some(r#""x\"]}""#));
        assert_eq!(at(json, &[Key("a"), Index(2)]), Some("[]"));
        assert_eq!(at(json, &[Key("a"), Index(3)]), None);
        assert_eq!(at(json, &[Key("ab")]), Some("null"));
        assert_eq!(at(json, &[Key("d")]), Some("2"));
        assert_eq!(at(json, &[Key("e"), Key("x")]), None);
        assert_eq!(at(json, &[Key("a"), Key("x")]), None);
        assert_eq!(at(json, &[]), Some(json.trim()));
    }

    #[test]
    fn deep_and_broken_input_is_harmless() {
        let deep = format!("{{\"a\":{}{},\"b\":7}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(at(&deep, &[Key("b")]), Some("7"));
        for broken in ["", "{", "{\"a\"", "{\"a\":", "[", "[,", "[}", "{]", "\"", "[1 2"] {
            let range = 0..broken.len();
            assert!(members(broken.as_bytes(), range.clone()).count() <= 1);
            assert!(elements(broken.as_bytes(), range).count() <= 2);
        }
    }

    #[test]
    fn strings_decode_leniently() {
        assert_eq!(string(br#""a\u00e9\ud83d\ude00\ud800b""#, 0..28).unwrap(), "aé😀\u{FFFD}b");
        assert_eq!(string(b"\"\xFFx\"", 0..4).unwrap(), "\u{FFFD}x");
        assert_eq!(string(b"12", 0..2), None);
    }
}
