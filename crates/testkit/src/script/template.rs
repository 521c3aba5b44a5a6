//! Texts with generated parts: what a script sends. It must not know who sends it, nor hold a large text in memory.

use std::borrow::Cow;
use std::io::{self, Write};

use anyhow::{Result, bail};
use base64::Engine as _;

use crate::message::Message;
use crate::png::png;

const CHUNK: usize = 64 * 1024;

/// A text with generated parts.
///
/// | written | becomes |
/// |---|---|
/// | `{id}` | the request's id, spelled as it came |
/// | `{method}` | the request's method |
/// | `{params}` | the request's `params`, spelled as they came (`{}` if absent) |
/// | `{token}` | `params._meta.progressToken`, spelled as it came |
/// | `{arg:NAME}` | `params.arguments.NAME`, spelled as it came (`null` if absent) |
/// | `{line}` | the whole request, as the inside of a JSON string |
/// | `{session}` | the HTTP session id |
/// | `{count}` | how many messages have matched the rule, this one included |
/// | `{TEXT*N}` | TEXT N times; TEXT has neither braces nor quotes |
/// | `{(TEXT)*N}` | the same for any TEXT, which may hold generated parts |
/// | `{base64:N}` | the base64 of N fixed bytes |
/// | `{png:N}` | the base64 of a valid PNG of about N bytes |
///
/// Everything else stands for itself, so JSON is written as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Repeat(Template, u64),
    Base64(u64),
    Field(Field),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Field {
    Id,
    Method,
    Params,
    Token,
    Line,
    Session,
    Count,
    Arg(String),
}

/// What the fields of a [`Template`] stand for while one request is handled.
#[derive(Debug, Clone, Default)]
pub struct Values {
    /// The request, as it came.
    pub line: Vec<u8>,
    /// The HTTP session id.
    pub session: String,
    /// How many messages have matched the rule.
    pub count: u64,
}

impl Values {
    fn field(&self, field: &Field) -> Cow<'_, [u8]> {
        let message = || Message::parse(&self.line);
        let text = |raw: Option<&str>, or: &'static str| raw.unwrap_or(or).as_bytes().to_vec();
        Cow::Owned(match field {
            Field::Session => return Cow::Borrowed(self.session.as_bytes()),
            Field::Count => self.count.to_string().into_bytes(),
            Field::Id => text(message().ok().and_then(|m| m.id()), "null"),
            Field::Params => text(message().ok().and_then(|m| m.raw("params")), "{}"),
            Field::Method => message().ok().and_then(|m| m.method()).unwrap_or_default().into_bytes(),
            Field::Token => {
                text(message().ok().and_then(|m| m.path(&["params", "_meta", "progressToken"])), "null")
            }
            Field::Arg(name) => {
                text(message().ok().and_then(|m| m.path(&["params", "arguments", name])), "null")
            }
            Field::Line => {
                let text = String::from_utf8_lossy(&self.line);
                let quoted = serde_json::Value::String(text.into_owned()).to_string();
                quoted
                    .strip_prefix('"')
                    .and_then(|t| t.strip_suffix('"'))
                    .unwrap_or_default()
                    .as_bytes()
                    .to_vec()
            }
        })
    }
}

impl Template {
    /// Parses `text`; with `escapes`, `\n \r \t \0 \s \\ \xHH` are decoded first.
    pub fn parse(text: &str, escapes: bool) -> Result<Self> {
        let bytes = if escapes { unescape(text)? } else { text.as_bytes().to_vec() };
        Ok(Self::scan(&bytes))
    }

    /// A template that is exactly these bytes.
    pub fn exact(bytes: impl Into<Vec<u8>>) -> Self {
        Self { pieces: vec![Piece::Bytes(bytes.into())] }
    }

    /// This template followed by another.
    #[must_use]
    pub fn then(mut self, other: Self) -> Self {
        self.pieces.extend(other.pieces);
        self
    }

    fn scan(mut rest: &[u8]) -> Self {
        let mut pieces = Vec::new();
        let mut plain = Vec::new();
        while let Some((&first, tail)) = rest.split_first() {
            if let Some((piece, used)) = (first == b'{').then(|| generated(rest)).flatten() {
                if !plain.is_empty() {
                    pieces.push(Piece::Bytes(std::mem::take(&mut plain)));
                }
                pieces.push(piece);
                rest = rest.get(used..).unwrap_or_default();
            } else {
                plain.push(first);
                rest = tail;
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Bytes(plain));
        }
        Self { pieces }
    }

    /// Writes the text; nothing larger than a chunk is held.
    pub fn write(&self, values: &Values, out: &mut dyn Write) -> io::Result<()> {
        for piece in &self.pieces {
            match piece {
                Piece::Bytes(bytes) => out.write_all(bytes)?,
                Piece::Field(field) => out.write_all(&values.field(field))?,
                Piece::Base64(n) => write_base64(*n, out)?,
                Piece::Repeat(body, times) => write_repeated(&body.render(values), *times, out)?,
            }
        }
        Ok(())
    }

    /// The number of bytes that [`Template::write`] writes.
    pub fn len(&self, values: &Values) -> u64 {
        let size = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => bytes.len() as u64,
            Piece::Field(field) => values.field(field).len() as u64,
            Piece::Base64(n) => n.div_ceil(3) * 4,
            Piece::Repeat(body, times) => body.len(values) * times,
        };
        self.pieces.iter().map(size).sum()
    }

    /// The text in memory.
    pub fn render(&self, values: &Values) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to a Vec cannot fail.
        self.write(values, &mut out).unwrap_or_default();
        out
    }
}

fn generated(text: &[u8]) -> Option<(Piece, usize)> {
    if text.starts_with(b"{(") {
        return repeated_group(text);
    }
    let end = text.iter().skip(1).position(|b| b"{}\"".contains(b))? + 1;
    if text.get(end) != Some(&b'}') {
        // The text to repeat may itself be a bracket of JSON, as in `{[*100}`, but never a quote or a brace.
        return None;
    }
    let inside = text.get(1..end)?;
    let piece = match inside {
        b"id" => Piece::Field(Field::Id),
        b"method" => Piece::Field(Field::Method),
        b"params" => Piece::Field(Field::Params),
        b"token" => Piece::Field(Field::Token),
        b"line" => Piece::Field(Field::Line),
        b"session" => Piece::Field(Field::Session),
        b"count" => Piece::Field(Field::Count),
        _ => other(inside)?,
    };
    Some((piece, end + 1))
}

fn other(inside: &[u8]) -> Option<Piece> {
    let text = std::str::from_utf8(inside).ok();
    if let Some(name) = text.and_then(|t| t.strip_prefix("arg:")) {
        return Some(Piece::Field(Field::Arg(name.to_owned())));
    }
    if let Some(n) = text.and_then(|t| t.strip_prefix("base64:")) {
        return Some(Piece::Base64(n.parse().ok()?));
    }
    if let Some(n) = text.and_then(|t| t.strip_prefix("png:")) {
        let image = base64::engine::general_purpose::STANDARD.encode(png(n.parse().ok()?));
        return Some(Piece::Bytes(image.into_bytes()));
    }
    let star = inside.iter().rposition(|b| *b == b'*')?;
    let times = number(inside.get(star + 1..)?)?;
    let body = inside.get(..star).filter(|b| !b.is_empty())?;
    Some(Piece::Repeat(Template::exact(body), times))
}

fn repeated_group(text: &[u8]) -> Option<(Piece, usize)> {
    let mut depth = 0_usize;
    for (at, window) in text.windows(2).enumerate().skip(1) {
        match window {
            b"{(" => depth += 1,
            b")*" => {
                let digits = text.get(at + 2..)?;
                let len = digits.iter().take_while(|b| b.is_ascii_digit()).count();
                if len == 0 || digits.get(len) != Some(&b'}') {
                    continue;
                }
                if depth > 0 {
                    depth -= 1;
                    continue;
                }
                let times = number(digits.get(..len)?)?;
                let body = Template::scan(text.get(2..at)?);
                return Some((Piece::Repeat(body, times), at + 2 + len + 1));
            }
            _ => {}
        }
    }
    None
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn write_repeated(body: &[u8], times: u64, out: &mut dyn Write) -> io::Result<()> {
    if body.is_empty() || times == 0 {
        return Ok(());
    }
    let in_chunk = usize::try_from(times).unwrap_or(usize::MAX).min((CHUNK / body.len()).max(1));
    let chunk = body.repeat(in_chunk);
    let mut left = times;
    while left > 0 {
        let now = usize::try_from(left).unwrap_or(usize::MAX).min(in_chunk);
        out.write_all(chunk.get(..now * body.len()).unwrap_or_default())?;
        left -= now as u64;
    }
    Ok(())
}

/// The bytes that `{base64:N}` encodes.
pub fn fixed_bytes(n: u64) -> impl Iterator<Item = u8> {
    (0..n).map(|i| (i.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
}

fn write_base64(n: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut bytes = fixed_bytes(n);
    loop {
        let part: Vec<u8> = bytes.by_ref().take(CHUNK / 4 * 3).collect();
        if part.is_empty() {
            return Ok(());
        }
        let text = base64::engine::general_purpose::STANDARD.encode(&part);
        out.write_all(text.as_bytes())?;
    }
}

fn unescape(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.bytes();
    while let Some(byte) = chars.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match chars.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b's') => b' ',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            Some(b'"') => b'"',
            Some(b'x') => {
                let pair: Vec<u8> = chars.by_ref().take(2).collect();
                u8::from_str_radix(std::str::from_utf8(&pair)?, 16)?
            }
            other => bail!("no such escape: \\{}", other.map_or(' ', char::from)),
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str, escapes: bool, request: &str) -> String {
        let template = Template::parse(text, escapes).unwrap();
        let values = Values { line: request.as_bytes().to_vec(), session: "S1".to_owned(), count: 3 };
        let bytes = template.render(&values);
        assert_eq!(bytes.len() as u64, template.len(&values));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_stands_for_itself() {
        let json = r#"{"a":{},"b":[{"c":"{d}"}],"e":"{f*}","g":"5*3}"}"#;
        assert_eq!(rendered(json, false, ""), json);
    }

    #[test]
    fn generated_parts_are_filled_in() {
        let request = r#"{"id": "a\u0062" ,"method":"tools/call","params":{"arguments":{"t":"x\"y"},"_meta":{"progressToken":1.0}}}"#;
        let text = "{id} {method} {token} {arg:t} {arg:no} {session} {count} {ab*3} {[*2}{]*2}";
        assert_eq!(
            rendered(text, false, request),
            r#""a\u0062" tools/call 1.0 "x\"y" null S1 3 ababab [[]]"#
        );
    }

    #[test]
    fn groups_hold_generated_parts_and_groups() {
        assert_eq!(rendered(r#"[{("{r*3}",)*2}0] {({(a)*2}-)*2}"#, false, ""), r#"["rrr","rrr",0] aa-aa-"#);
    }

    #[test]
    fn escapes_are_decoded_on_demand() {
        let raw = Template::parse(r"\xef\xbb\xbf{a\n*2}\r\0\\n", true).unwrap();
        assert_eq!(raw.render(&Values::default()), b"\xef\xbb\xbfa\na\n\r\0\\n");
        assert_eq!(rendered(r#"{"a":"\n"}"#, false, ""), r#"{"a":"\n"}"#);
        assert!(Template::parse(r"\q", true).is_err());
    }

    #[test]
    fn base64_decodes_to_the_fixed_bytes() {
        for n in [0, 1, 2, 3, 100, 200_000] {
            let text = rendered(&format!("{{base64:{n}}}"), false, "");
            let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
            assert_eq!(bytes, fixed_bytes(n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn large_texts_are_written_piece_by_piece() {
        struct Largest(usize, u64);
        impl Write for Largest {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.max(bytes.len());
                self.1 += bytes.len() as u64;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut out = Largest(0, 0);
        let template = Template::parse("<{x*1073741824}>", false).unwrap();
        template.write(&Values::default(), &mut out).unwrap();
        assert_eq!(out.1, 1_073_741_826);
        assert!(out.0 <= CHUNK, "a write of {} bytes", out.0);
    }
}
