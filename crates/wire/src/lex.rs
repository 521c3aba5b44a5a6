//! Owns the incremental JSON lexer: bytes in any pieces, the same events out. Knows nothing of JSON-RPC.
//!
//! The lexer is not recursive and holds one bit a nesting level, so that a message of any size or depth costs
//! no more than the chunk it arrived in. It follows RFC 8259, with two leniences that real servers need and
//! that are reported by [`Lexer::is_lax`]: `NaN`, `Infinity` and `-Infinity`, and control characters left raw
//! inside strings. Invalid UTF-8 inside strings is passed on as it came.

mod number;
mod run;

use std::fmt;

use number::Number;

/// How deep a message may nest; beyond it is an error, so that a flood of brackets costs 128 KiB at most.
pub const MAX_DEPTH: u32 = 1_000_000;

/// The two kinds of JSON containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `{...}`
    Object,
    /// `[...]`
    Array,
}

/// A piece of a string as it stands in the input: no quotes, no backslashes.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The bytes; UTF-8 may be cut at either end, or invalid.
    pub bytes: &'a [u8],
    /// Every byte is below 0x80.
    pub ascii: bool,
    /// A byte below 0x20 is among them (not allowed by RFC 8259).
    pub control: bool,
}

/// What receives the lexer's events. Every method has an empty body to begin with.
#[expect(unused_variables, reason = "the empty bodies name their arguments for the reader")]
pub trait Sink {
    /// A container opens; `at` is the offset of its bracket.
    fn open(&mut self, container: Container, at: u64) {}
    /// A container closes; `end` is the offset after its bracket.
    fn close(&mut self, container: Container, end: u64) {}
    /// A comma between two elements or members.
    fn comma(&mut self) {}
    /// A string opens; `at` is the offset of its quote, `key` says that it names a member.
    fn string_begin(&mut self, key: bool, at: u64) {}
    /// A piece of the string without escapes.
    fn run(&mut self, run: Run<'_>) {}
    /// One escape: the UTF-16 unit that it stands for, and its spelling.
    fn escape(&mut self, unit: u16, raw: &[u8]) {}
    /// The string ends; `end` is the offset after its closing quote.
    fn string_end(&mut self, end: u64) {}
    /// A whole string without escapes, in place of the three calls above; `at` is the offset of its quote.
    #[inline]
    fn string(&mut self, key: bool, at: u64, run: Run<'_>) {
        self.string_begin(key, at);
        if !run.bytes.is_empty() {
            self.run(run);
        }
        self.string_end(at + run.bytes.len() as u64 + 2);
    }
    /// A piece of a number or literal; `at` is the offset of its first byte.
    fn atom(&mut self, bytes: &[u8], at: u64) {}
    /// The number or literal ends before offset `end`.
    fn atom_end(&mut self, end: u64) {}
    /// A whole number or literal, in place of the two calls above.
    #[inline]
    fn whole_atom(&mut self, bytes: &[u8], at: u64) {
        self.atom(bytes, at);
        self.atom_end(at + bytes.len() as u64);
    }
}

/// Why the input is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Offset of the byte that cannot stand where it does.
    pub offset: u64,
    /// What was wrong, as a lower-case fragment.
    pub reason: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.offset)
    }
}

impl std::error::Error for SyntaxError {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    FirstElement,
    FirstKey,
    Key,
    Colon,
    After,
    Text { key: bool },
    Escape { key: bool },
    Number(Number),
    Literal { word: &'static [u8], matched: u8 },
    Done,
}

/// The lexer of one JSON value. It holds no bytes of the input but an escape that was cut.
#[derive(Debug, Clone)]
pub struct Lexer {
    state: State,
    depth: u32,
    /// The innermost open container is an object.
    object: bool,
    /// One bit a level, the first 64 here and the others behind.
    shallow: u64,
    deep: Vec<u64>,
    consumed: u64,
    escape: [u8; 6],
    escape_len: u8,
    lax: bool,
    failed: Option<SyntaxError>,
}

impl Default for Lexer {
    fn default() -> Self {
        Self::new()
    }
}

impl Lexer {
    /// A lexer at the start of a value.
    pub fn new() -> Self {
        Self {
            state: State::Value,
            depth: 0,
            object: false,
            shallow: 0,
            deep: Vec::new(),
            consumed: 0,
            escape: [0; 6],
            escape_len: 0,
            lax: false,
            failed: None,
        }
    }

    /// Begins anew, keeping the memory.
    pub fn reset(&mut self) {
        let mut deep = std::mem::take(&mut self.deep);
        deep.clear();
        deep.shrink_to(64);
        *self = Self { deep, ..Self::new() };
    }

    /// Bytes taken so far.
    pub fn offset(&self) -> u64 {
        self.consumed
    }

    /// The input used `NaN`, `Infinity`, `-Infinity` or a raw control character in a string.
    pub fn is_lax(&self) -> bool {
        self.lax
    }

    /// The value is complete; only white space may follow.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes the next bytes. After an error every further call returns it again.
    pub fn feed<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), SyntaxError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.run(bytes, sink);
        if let Err(error) = result {
            self.failed = Some(error);
        }
        self.consumed += bytes.len() as u64;
        result
    }

    /// The input has ended.
    pub fn finish<S: Sink>(&mut self, sink: &mut S) -> Result<(), SyntaxError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let State::Number(number) = self.state
            && number.may_end()
        {
            self.end_atom(self.consumed, sink);
        }
        if self.state == State::Done {
            return Ok(());
        }
        let error = SyntaxError { offset: self.consumed, reason: "the value is not complete" };
        self.failed = Some(error);
        Err(error)
    }

    #[inline]
    fn run<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Result<(), SyntaxError> {
        let mut i = 0;
        while let Some(&byte) = bytes.get(i) {
            match self.state {
                State::Text { key } => i = self.text(bytes, i, key, sink),
                State::Value | State::FirstElement => {
                    if is_space(byte) {
                        i += 1;
                    } else {
                        i = self.value(bytes, i, sink)?;
                    }
                }
                State::After => {
                    match byte {
                        b',' => {
                            sink.comma();
                            self.state = if self.object { State::Key } else { State::Value };
                        }
                        b'}' if self.object => self.pop(i, Container::Object, sink),
                        b']' if !self.object => self.pop(i, Container::Array, sink),
                        _ if is_space(byte) => {}
                        _ => return Err(self.error(i, "expected a comma or the end of the container")),
                    }
                    i += 1;
                }
                State::Colon => {
                    match byte {
                        b':' => self.state = State::Value,
                        _ if is_space(byte) => {}
                        _ => return Err(self.error(i, "expected a colon")),
                    }
                    i += 1;
                }
                State::FirstKey | State::Key => {
                    match byte {
                        b'"' => {
                            i = self.begin_text(bytes, i, true, sink);
                            continue;
                        }
                        b'}' if self.state == State::FirstKey => self.pop(i, Container::Object, sink),
                        _ if is_space(byte) => {}
                        _ => return Err(self.error(i, "expected a member name")),
                    }
                    i += 1;
                }
                State::Number(number) => i = self.number(bytes, i, number, sink)?,
                State::Literal { word, matched } => i = self.literal(bytes, i, word, matched, sink)?,
                State::Escape { key } => {
                    self.take_escape(byte, i, key, sink)?;
                    i += 1;
                }
                State::Done => {
                    if !is_space(byte) {
                        return Err(self.error(i, "more follows the value"));
                    }
                    i += 1;
                }
            }
        }
        Ok(())
    }

    /// A string begins; `i` is the offset of its quote.
    #[inline]
    fn begin_text<S: Sink>(&mut self, bytes: &[u8], i: usize, key: bool, sink: &mut S) -> usize {
        let at = self.consumed + i as u64;
        let rest = bytes.get(i + 1..).unwrap_or_default();
        let found = run::plain(rest);
        if rest.get(found.length) == Some(&b'"') {
            self.lax |= found.control;
            let plain = rest.get(..found.length).unwrap_or_default();
            sink.string(key, at, Run { bytes: plain, ascii: found.ascii, control: found.control });
            return self.end_text(bytes, i + found.length + 2, key, sink);
        }
        sink.string_begin(key, at);
        self.state = State::Text { key };
        i + 1
    }

    /// A string has ended before offset `i`. What most often follows is taken with it.
    #[inline]
    fn end_text<S: Sink>(&mut self, bytes: &[u8], i: usize, key: bool, sink: &mut S) -> usize {
        if !key {
            return self.end_value(bytes, i, sink);
        }
        if bytes.get(i) == Some(&b':') {
            self.state = State::Value;
            return i + 1;
        }
        self.state = State::Colon;
        i
    }

    #[inline]
    fn end_value<S: Sink>(&mut self, bytes: &[u8], i: usize, sink: &mut S) -> usize {
        if self.depth == 0 {
            self.state = State::Done;
        } else if bytes.get(i) == Some(&b',') {
            sink.comma();
            self.state = if self.object { State::Key } else { State::Value };
            return i + 1;
        } else {
            self.state = State::After;
        }
        i
    }

    #[inline]
    fn text<S: Sink>(&mut self, bytes: &[u8], mut i: usize, key: bool, sink: &mut S) -> usize {
        loop {
            let rest = bytes.get(i..).unwrap_or_default();
            let found = run::plain(rest);
            let (plain, rest) = rest.split_at(found.length);
            if !plain.is_empty() {
                self.lax |= found.control;
                sink.run(Run { bytes: plain, ascii: found.ascii, control: found.control });
            }
            i += found.length;
            match rest {
                [] => return i,
                [b'"', ..] => {
                    sink.string_end(self.consumed + i as u64 + 1);
                    return self.end_text(bytes, i + 1, key, sink);
                }
                [b'\\', b'u', d0, d1, d2, d3, ..]
                    if [d0, d1, d2, d3].iter().all(|digit| digit.is_ascii_hexdigit()) =>
                {
                    let unit =
                        [d0, d1, d2, d3].iter().fold(0, |unit, digit| (unit << 4) | u16::from(hex(**digit)));
                    sink.escape(unit, rest.get(..6).unwrap_or_default());
                    i += 6;
                }
                [_, escape, ..] if simple_escape(*escape) != 0 => {
                    sink.escape(simple_escape(*escape), rest.get(..2).unwrap_or_default());
                    i += 2;
                }
                _ => {
                    self.escape_len = 0;
                    self.state = State::Escape { key };
                    return i + 1;
                }
            }
        }
    }

    fn take_escape<S: Sink>(
        &mut self,
        byte: u8,
        i: usize,
        key: bool,
        sink: &mut S,
    ) -> Result<(), SyntaxError> {
        let unit = if self.escape_len == 0 {
            match byte {
                b'u' => None,
                _ => match simple_escape(byte) {
                    0 => return Err(self.error(i, "unknown escape in a string")),
                    unit => Some(unit),
                },
            }
        } else if byte.is_ascii_hexdigit() {
            if self.escape_len == 5 { Some(self.unicode(byte)) } else { None }
        } else {
            return Err(self.error(i, "expected four hexadecimal digits after \\u"));
        };
        if self.escape_len == 0 {
            self.escape = [b'\\', byte, 0, 0, 0, 0];
            self.escape_len = 2;
        } else if let Some(slot) = self.escape.get_mut(usize::from(self.escape_len)) {
            *slot = byte;
            self.escape_len += 1;
        }
        if let Some(unit) = unit {
            let raw = self.escape;
            sink.escape(unit, raw.get(..usize::from(self.escape_len)).unwrap_or_default());
            self.state = State::Text { key };
        }
        Ok(())
    }

    /// The unit of `\uXXXX` whose last digit is `last`.
    fn unicode(&self, last: u8) -> u16 {
        [self.escape[2], self.escape[3], self.escape[4], last]
            .iter()
            .fold(0, |unit, digit| (unit << 4) | u16::from(hex(*digit)))
    }

    fn value<S: Sink>(&mut self, bytes: &[u8], i: usize, sink: &mut S) -> Result<usize, SyntaxError> {
        let at = self.consumed + i as u64;
        match bytes.get(i).copied().unwrap_or(b' ') {
            b'"' => return Ok(self.begin_text(bytes, i, false, sink)),
            b'{' => {
                self.push(i, true)?;
                sink.open(Container::Object, at);
                self.state = State::FirstKey;
            }
            b'[' => {
                self.push(i, false)?;
                sink.open(Container::Array, at);
                self.state = State::FirstElement;
            }
            b']' if self.state == State::FirstElement => self.pop(i, Container::Array, sink),
            byte @ (b'-' | b'0'..=b'9') => {
                let number = match byte {
                    b'-' => Number::Minus,
                    b'0' => Number::Zero,
                    _ => Number::Integer,
                };
                return self.number_from(bytes, i, i + 1, number, sink);
            }
            byte => {
                let word: &'static [u8] = match byte {
                    b't' => b"true",
                    b'f' => b"false",
                    b'n' => b"null",
                    b'N' => b"NaN",
                    b'I' => b"Infinity",
                    _ => return Err(self.error(i, "expected a value")),
                };
                self.lax |= matches!(byte, b'N' | b'I');
                return self.literal(bytes, i, word, 0, sink);
            }
        }
        Ok(i + 1)
    }

    fn number<S: Sink>(
        &mut self,
        bytes: &[u8],
        i: usize,
        number: Number,
        sink: &mut S,
    ) -> Result<usize, SyntaxError> {
        self.number_from(bytes, i, i, number, sink)
    }

    fn number_from<S: Sink>(
        &mut self,
        bytes: &[u8],
        start: usize,
        mut i: usize,
        mut number: Number,
        sink: &mut S,
    ) -> Result<usize, SyntaxError> {
        loop {
            let Some(&byte) = bytes.get(i) else {
                self.emit_atom(bytes, start, i, sink);
                self.state = State::Number(number);
                return Ok(i);
            };
            if byte.is_ascii_digit()
                && matches!(number, Number::Integer | Number::Fraction | Number::Exponent)
            {
                i += 1;
            } else if let Some(next) = number.next(byte) {
                number = next;
                i += 1;
            } else if number == Number::Minus && byte == b'I' {
                self.lax = true;
                self.emit_atom(bytes, start, i, sink);
                return self.literal(bytes, i, b"Infinity", 0, sink);
            } else if number.may_end() {
                let at = self.consumed + start as u64;
                if matches!(self.state, State::Number(_)) {
                    self.emit_atom(bytes, start, i, sink);
                    sink.atom_end(self.consumed + i as u64);
                } else {
                    sink.whole_atom(bytes.get(start..i).unwrap_or_default(), at);
                }
                return Ok(self.end_value(bytes, i, sink));
            } else {
                return Err(self.error(i, "malformed number"));
            }
        }
    }

    fn literal<S: Sink>(
        &mut self,
        bytes: &[u8],
        start: usize,
        word: &'static [u8],
        matched: u8,
        sink: &mut S,
    ) -> Result<usize, SyntaxError> {
        let mut i = start;
        let mut matched = matched;
        while let Some(expected) = word.get(usize::from(matched)) {
            match bytes.get(i) {
                Some(byte) if byte == expected => {
                    matched += 1;
                    i += 1;
                }
                Some(_) => return Err(self.error(i, "expected a value")),
                None => {
                    self.emit_atom(bytes, start, i, sink);
                    self.state = State::Literal { word, matched };
                    return Ok(i);
                }
            }
        }
        self.emit_atom(bytes, start, i, sink);
        self.end_atom(self.consumed + i as u64, sink);
        Ok(i)
    }

    fn emit_atom<S: Sink>(&self, bytes: &[u8], start: usize, end: usize, sink: &mut S) {
        if let Some(piece) = bytes.get(start..end)
            && !piece.is_empty()
        {
            sink.atom(piece, self.consumed + start as u64);
        }
    }

    fn end_atom<S: Sink>(&mut self, end: u64, sink: &mut S) {
        sink.atom_end(end);
        self.after_value();
    }

    fn after_value(&mut self) {
        self.state = if self.depth == 0 { State::Done } else { State::After };
    }

    fn in_object(&self) -> bool {
        let level = self.depth.saturating_sub(1);
        let word = match (level / 64) as usize {
            0 => self.shallow,
            word => self.deep.get(word - 1).copied().unwrap_or_default(),
        };
        word >> (level % 64) & 1 == 1
    }

    #[inline]
    fn push(&mut self, i: usize, object: bool) -> Result<(), SyntaxError> {
        let bit = self.depth % 64;
        let word = if self.depth < 64 {
            &mut self.shallow
        } else {
            if self.depth >= MAX_DEPTH {
                return Err(self.error(i, "nested deeper than 1,000,000 levels"));
            }
            let word = (self.depth / 64) as usize - 1;
            if self.deep.len() <= word {
                self.deep.push(0);
            }
            match self.deep.get_mut(word) {
                Some(word) => word,
                None => &mut self.shallow,
            }
        };
        *word = (*word & !(1 << bit)) | (u64::from(object) << bit);
        self.depth += 1;
        self.object = object;
        Ok(())
    }

    fn pop<S: Sink>(&mut self, i: usize, container: Container, sink: &mut S) {
        self.depth -= 1;
        self.object = self.in_object();
        sink.close(container, self.consumed + i as u64 + 1);
        self.after_value();
    }

    fn error(&self, i: usize, reason: &'static str) -> SyntaxError {
        SyntaxError { offset: self.consumed + i as u64, reason }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit.wrapping_sub(b'A').wrapping_add(10) & 15,
    }
}

/// The unit of a two-byte escape; 0 where there is no such escape.
#[inline]
fn simple_escape(byte: u8) -> u16 {
    match byte {
        b'"' | b'\\' | b'/' => u16::from(byte),
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
