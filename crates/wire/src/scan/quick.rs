//! Owns the quick look at a small, plain message that is wholly there. It says what the general scanner would say, or
//! nothing: anything that is not plain (escapes in names, bytes beyond ASCII, media, batches, faults) is left to it.

use super::envelope::{Envelope, Facts, Field, IdField};
use crate::id::Id;

/// Longer messages gain nothing from a quick look.
pub(super) const LONGEST: usize = 16 << 10;

const PLAIN: u8 = 0;
const QUOTE: u8 = 1;
const ESCAPE: u8 = 2;
const OTHER: u8 = 3;

/// What a byte is within a string.
const CLASSES: [u8; 256] = {
    let mut classes = [PLAIN; 256];
    let mut byte = 0;
    while byte < 256 {
        if byte < 0x20 || byte >= 0x7F {
            classes[byte] = OTHER;
        }
        byte += 1;
    }
    classes[0x22] = QUOTE;
    classes[0x5C] = ESCAPE;
    classes
};

/// A place in the bytes, and what stood before it that a compact spelling would not have.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// White space, and the backslashes of `\/`.
    extra: u64,
    /// A string was `image` or `audio`, as the type of a content block that is counted apart is.
    media: bool,
}

/// Fills the envelope, which is empty, from a message; `None`: the general scanner is to look.
#[inline]
pub(super) fn look(bytes: &[u8], envelope: &mut Envelope) -> Option<()> {
    if bytes.len() > LONGEST || bytes.first() != Some(&b'{') {
        return None;
    }
    let facts = &mut *envelope.facts;
    let mut cursor = Cursor { bytes, at: 1, extra: 0, media: false };
    cursor.each_member(|cursor, name| {
        let start = cursor.at;
        let span = |end: usize| start as u64..end as u64;
        match name {
            b"jsonrpc" => facts.version_ok = cursor.text()? == b"2.0",
            b"id" => {
                facts.id = IdField::Value(cursor.id()?);
                facts.id_at = span(cursor.at);
            }
            b"method" => facts.method = Some(keep(&mut facts.fields, cursor.text()?, 1024)?),
            b"params" => {
                params(cursor, facts)?;
                facts.params = span(cursor.at);
            }
            b"result" => {
                result(cursor, facts)?;
                facts.result = span(cursor.at);
                facts.has_result = true;
            }
            b"error" => {
                // `null` has a meaning of its own.
                if cursor.peek()? != b'{' {
                    return None;
                }
                cursor.skip()?;
                facts.error = span(cursor.at);
                facts.has_error = true;
            }
            _ => cursor.skip()?,
        }
        Some(())
    })?;
    let end = cursor.at;
    let after = bytes.get(end..)?;
    if !after.iter().all(|byte| is_space(*byte)) {
        return None;
    }
    facts.span = 0..end as u64;
    facts.size.chars = end as u64 - cursor.extra;
    facts.ascii = true;
    facts.judge();
    Some(())
}

fn params(cursor: &mut Cursor<'_>, facts: &mut Facts) -> Option<()> {
    facts.begin_params();
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    cursor.at += 1;
    cursor.each_member(|cursor, name| {
        let start = cursor.at;
        match name {
            b"name" => {
                facts.name = Some(keep(&mut facts.fields, cursor.text()?, 1024)?);
                facts.name_at = start as u64..cursor.at as u64;
            }
            b"uri" => facts.uri = Some(keep(&mut facts.fields, cursor.text()?, 8192)?),
            b"requestId" => facts.request_id = Some(cursor.id()?),
            b"protocolVersion" => return None,
            b"_meta" => {
                meta(cursor, facts)?;
                facts.meta_at = start as u64..cursor.at as u64;
            }
            _ => cursor.skip()?,
        }
        Some(())
    })
}

fn meta(cursor: &mut Cursor<'_>, facts: &mut Facts) -> Option<()> {
    facts.token_at = 0..0;
    if cursor.peek()? != b'{' {
        return cursor.skip();
    }
    cursor.at += 1;
    cursor.each_member(|cursor, name| {
        let start = cursor.at;
        cursor.skip()?;
        match name {
            b"progressToken" => facts.token_at = start as u64..cursor.at as u64,
            // A modern request names its version there.
            b"io.modelcontextprotocol/protocolVersion" => return None,
            _ => {}
        }
        Some(())
    })
}

fn result(cursor: &mut Cursor<'_>, facts: &mut Facts) -> Option<()> {
    if cursor.peek()? != b'{' {
        return None;
    }
    cursor.at += 1;
    cursor.each_member(|cursor, name| {
        match name {
            b"content" | b"messages" => {
                cursor.media = false;
                cursor.skip()?;
                if cursor.media {
                    return None;
                }
            }
            b"isError" => {
                let error = cursor.peek()? == b't';
                cursor.word(if error { b"true" } else { b"false" })?;
                facts.is_error = Some(error);
            }
            b"structuredContent" => {
                facts.structured = true;
                cursor.skip()?;
            }
            b"resultType" | b"nextCursor" | b"protocolVersion" => return None,
            _ => cursor.skip()?,
        }
        Some(())
    })
}

fn keep(fields: &mut Vec<u8>, text: &[u8], most: usize) -> Option<Field> {
    if text.len() > most {
        return None;
    }
    let start = u32::try_from(fields.len()).ok()?;
    fields.extend_from_slice(text);
    Some(Field { start, end: start + u32::try_from(text.len()).ok()? })
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

impl<'a> Cursor<'a> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn space(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
            self.extra += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }

    /// The members of the object whose brace stands just before.
    #[inline]
    fn each_member(&mut self, mut take: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.space();
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let name = self.text()?;
            self.space();
            self.expect(b':')?;
            self.space();
            take(self, name)?;
            self.space();
            let next = self.peek()?;
            self.at += 1;
            match next {
                b',' => self.space(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// A string without escapes.
    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| CLASSES[usize::from(*byte)] != PLAIN)?;
        if rest.get(length) != Some(&b'"') {
            return None;
        }
        self.at += length + 1;
        rest.get(..length)
    }

    /// The rest of a string whose quote stands just before.
    #[inline]
    fn skip_text(&mut self) -> Option<()> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let length = rest.iter().position(|byte| CLASSES[usize::from(*byte)] != PLAIN)?;
            self.at += length + 1;
            self.media |= length == 5 && (rest.starts_with(b"image") || rest.starts_with(b"audio"));
            match CLASSES[usize::from(*rest.get(length)?)] {
                QUOTE => return Some(()),
                ESCAPE => {
                    match rest.get(length + 1)? {
                        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'/' => self.extra += 1,
                        _ => return None,
                    }
                    self.at += 1;
                }
                _ => return None,
            }
        }
    }

    fn id(&mut self) -> Option<Id> {
        let start = self.at;
        match self.peek()? {
            b'"' => {
                let text = self.text()?;
                if text.len() > 4096 {
                    return None;
                }
                Some(Id::string(self.bytes.get(start..self.at)?, None))
            }
            b'0'..=b'9' => {
                self.number()?;
                Some(Id::number(self.bytes.get(start..self.at)?))
            }
            _ => None,
        }
    }

    /// An integer, or what is plainly a fraction.
    #[inline]
    fn number(&mut self) -> Option<()> {
        if self.peek()? == b'-' {
            self.at += 1;
        }
        let digits = self.digits();
        if digits == 0 || (digits > 1 && self.bytes.get(self.at - digits) == Some(&b'0')) {
            return None;
        }
        if self.peek()? == b'.' {
            self.at += 1;
            if self.digits() == 0 {
                return None;
            }
        }
        (!matches!(self.peek()?, b'e' | b'E' | b'.' | b'+' | b'-')).then_some(())
    }

    #[inline]
    fn digits(&mut self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        if !self.bytes.get(self.at..)?.starts_with(word) {
            return None;
        }
        self.at += word.len();
        Some(())
    }

    /// Any value, at most 64 levels deep.
    fn skip(&mut self) -> Option<()> {
        // One bit for each open container, the innermost lowest: an object.
        let (mut open, mut depth) = (0u64, 0u32);
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.skip_text()?;
                }
                bracket @ (b'{' | b'[') => {
                    if depth == 64 {
                        return None;
                    }
                    self.at += 1;
                    self.space();
                    let object = bracket == b'{';
                    if self.peek()? == bracket + 2 {
                        self.at += 1;
                    } else {
                        open = open << 1 | u64::from(object);
                        depth += 1;
                        if object {
                            self.name()?;
                        }
                        continue;
                    }
                }
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => self.number()?,
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                self.space();
                let object = open & 1 == 1;
                let next = self.peek()?;
                self.at += 1;
                match (next, object) {
                    (b',', _) => {
                        self.space();
                        if object {
                            self.name()?;
                        }
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        open >>= 1;
                        depth -= 1;
                    }
                    _ => return None,
                }
            }
        }
    }

    /// A member's name and colon.
    #[inline]
    fn name(&mut self) -> Option<()> {
        self.expect(b'"')?;
        self.skip_text()?;
        self.space();
        self.expect(b':')?;
        self.space();
        Some(())
    }
}
