//! Owns the judgement whether a host's JSON Schema can stand in `tools/list`: one pass over its bytes, no tree. One
//! schema that a strict client does not take would cost all other tools as well.

use std::borrow::Cow;
use std::fmt;

use crate::json::RawJson;

/// Parsers of common clients give up somewhere beyond; no schema that a person wrote comes near.
const DEEPEST: usize = 100;

/// Why a schema has no place in `tools/list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddSchema {
    /// It is no object: `true`, `null`, a list.
    NotAnObject,
    /// Its root does not say `"type": "object"`.
    RootType,
    /// `properties` is no object of schemas that are objects.
    Properties,
    /// `required` is no list of texts.
    Required,
    /// It is nested too deep.
    Depth,
    /// It has half a character, or a number beyond 64 bits.
    Value,
}

impl fmt::Display for OddSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnObject => "the schema is no object",
            Self::RootType => "the root of the schema has no \"type\": \"object\"",
            Self::Properties => "properties are not all objects",
            Self::Required => "required is no list of texts",
            Self::Depth => "the schema is nested too deep",
            Self::Value => "the schema has a text or a number that not every client can read",
        })
    }
}

/// MCP asks of `inputSchema`: an object whose `type` is `object`, whose `properties` are objects, whose `required` are
/// texts.
pub(super) fn check(schema: &RawJson) -> Result<(), OddSchema> {
    let mut scan = Scan { bytes: schema.bytes(), at: 0 };
    if scan.peek() != Some(b'{') {
        return Err(OddSchema::NotAnObject);
    }
    let mut is_object = false;
    scan.members(|scan, key| {
        match key {
            "type" => {
                // A member that stands twice means the one to one reader and the other to the next.
                if scan.peek() != Some(b'"') || scan.text()? != "object" {
                    return Err(OddSchema::RootType);
                }
                is_object = true;
            }
            "properties" if scan.peek() == Some(b'{') => scan.members(|scan, _| match scan.peek() {
                Some(b'{') => scan.skip(2),
                _ => Err(OddSchema::Properties),
            })?,
            "properties" => return Err(OddSchema::Properties),
            "required" if scan.peek() == Some(b'[') => scan.texts()?,
            "required" => return Err(OddSchema::Required),
            _ => scan.skip(1)?,
        }
        Ok(())
    })?;
    if is_object { Ok(()) } else { Err(OddSchema::RootType) }
}

/// A place in bytes that are known to be one JSON value.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Takes this sign, if it is the next.
    fn takes(&mut self, sign: u8) -> bool {
        let is_next = self.peek() == Some(sign);
        self.at += usize::from(is_next);
        is_next
    }

    /// The members of the object that begins here; `value` reads each one's value.
    fn members(
        &mut self,
        mut value: impl FnMut(&mut Self, &str) -> Result<(), OddSchema>,
    ) -> Result<(), OddSchema> {
        self.at += 1;
        while self.peek() == Some(b'"') {
            let key = self.text()?;
            self.takes(b':');
            value(self, &key)?;
            self.takes(b',');
        }
        self.takes(b'}');
        Ok(())
    }

    /// The list that begins here has texts alone.
    fn texts(&mut self) -> Result<(), OddSchema> {
        self.at += 1;
        while self.peek() == Some(b'"') {
            self.skip_text()?;
            self.takes(b',');
        }
        if self.takes(b']') { Ok(()) } else { Err(OddSchema::Required) }
    }

    /// The string that begins here.
    fn text(&mut self) -> Result<Cow<'a, str>, OddSchema> {
        let from = self.at;
        self.skip_text()?;
        let raw = self.bytes.get(from..self.at).unwrap_or_default();
        let inside = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
        if memchr::memchr(b'\\', inside).is_none() {
            return Ok(String::from_utf8_lossy(inside));
        }
        serde_json::from_slice(raw).map(Cow::Owned).map_err(|_| OddSchema::Value)
    }

    fn skip_text(&mut self) -> Result<(), OddSchema> {
        let from = self.at;
        let mut has_surrogate = false;
        self.at += 1;
        while let Some(rest) = self.bytes.get(self.at..) {
            let Some(place) = memchr::memchr2(b'"', b'\\', rest) else { break };
            self.at += place + 1;
            if rest.get(place) == Some(&b'"') {
                break;
            }
            has_surrogate |= matches!(rest.get(place + 1..), Some([b'u', b'd' | b'D', ..]));
            self.at += 1;
        }
        let raw = self.bytes.get(from..self.at).unwrap_or_default();
        if has_surrogate && serde_json::from_slice::<String>(raw).is_err() {
            return Err(OddSchema::Value);
        }
        Ok(())
    }

    /// Passes over the value that begins here, which stands `depth` levels deep.
    fn skip(&mut self, mut depth: usize) -> Result<(), OddSchema> {
        let outside = depth;
        loop {
            match self.peek() {
                Some(b'"') => self.skip_text()?,
                Some(b'{' | b'[') => {
                    self.at += 1;
                    depth += 1;
                    if depth > DEEPEST {
                        return Err(OddSchema::Depth);
                    }
                }
                Some(b'}' | b']') => {
                    self.at += 1;
                    depth -= 1;
                }
                Some(b',' | b':') => self.at += 1,
                Some(_) => self.skip_bare()?,
                None => return Ok(()),
            }
            if depth == outside {
                return Ok(());
            }
        }
    }

    /// A number, `true`, `false`, `null`.
    fn skip_bare(&mut self) -> Result<(), OddSchema> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += end;
        let bare = rest.get(..end).unwrap_or_default();
        let is_word = matches!(bare, b"true" | b"false" | b"null");
        if !is_word && (bare.len() > 15 || memchr::memchr2(b'e', b'E', bare).is_some()) {
            return serde_json::from_slice::<f64>(bare).map(|_| ()).map_err(|_| OddSchema::Value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
