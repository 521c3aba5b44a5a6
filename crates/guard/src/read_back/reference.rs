//! Owns arguments that name a saved result: they are replaced by its text on their way up. Splices; everything else
//! of the request stays byte for byte.

use std::ops::Range;

use toolway_wire::find::{self, Step};
use toolway_wire::lex::{Lexer, Run, Sink};
use toolway_wire::push_string;
use toolway_wire::text::TextDecoder;

use super::SCHEME;
use crate::{Guard, GuardError};

/// The most bytes that one reference may stand for.
pub const MAX_REFERENCED: u64 = 64 << 20;
const LONGEST: usize = 4096;

impl Guard {
    /// In a complete `tools/call` request for a tool that `pass_saved` names, replaces every string in
    /// `params.arguments` that is exactly `toolway://saved/ID` or `toolway://saved/ID#/json/pointer` by that text.
    /// `Ok(None)`: there is none, the request goes on as it is. An error names the reference that cannot be
    /// followed; the request should be answered with it.
    pub fn follow_references(
        &self,
        request: &[u8],
        tool: &str,
        session: &str,
    ) -> Result<Option<Vec<u8>>, GuardError> {
        // Solidi may be escaped, so the name alone is looked for.
        let may = memchr::memmem::find(request, b"toolway:").is_some();
        if !may || !self.config().pass_saved.iter().any(|glob| glob.matches(tool)) {
            return Ok(None);
        }
        let Some(arguments) = find::find(request, &[Step::Key("params"), Step::Key("arguments")]) else {
            return Ok(None);
        };
        let mut references = References { at: arguments.start, ..References::default() };
        let mut lexer = Lexer::new();
        let raw = request.get(arguments).unwrap_or_default();
        lexer.feed(raw, &mut references).map_err(|error| GuardError::Json(error.to_string()))?;
        if references.found.is_empty() {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(request.len());
        let mut from = 0;
        for (span, uri) in references.found {
            out.extend_from_slice(request.get(from..span.start).unwrap_or_default());
            push_string(&self.referenced(&uri, session)?, &mut out);
            from = span.end;
        }
        out.extend_from_slice(request.get(from..).unwrap_or_default());
        Ok(Some(out))
    }

    fn referenced(&self, uri: &str, session: &str) -> Result<String, GuardError> {
        let rest = uri.strip_prefix(SCHEME).unwrap_or_default();
        let (id, pointer) = rest.split_once('#').map_or((rest, None), |(id, pointer)| (id, Some(pointer)));
        let entry = self.seen(id, session)?;
        let Some(pointer) = pointer.filter(|pointer| !pointer.is_empty()) else {
            let whole = crate::Span { first: 0, last: None };
            let (bytes, all) = self.store().bytes(&entry, whole, MAX_REFERENCED)?;
            if all > MAX_REFERENCED {
                let path = self.store().exact(&entry);
                return Err(GuardError::TooLarge { bytes: all, limit: MAX_REFERENCED, path });
            }
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        };
        let json = self.store().json(&entry, MAX_REFERENCED)?;
        let missing = || GuardError::Arguments(format!("{uri}: the saved result has nothing there"));
        let at = resolve(&json, pointer).ok_or_else(missing)?;
        Ok(match find::string(&json, at.clone()) {
            Some(text) => text,
            None => String::from_utf8_lossy(json.get(at).unwrap_or_default()).into_owned(),
        })
    }
}

/// Follows a JSON pointer (RFC 6901) as a URI fragment.
fn resolve(json: &[u8], pointer: &str) -> Option<Range<usize>> {
    let mut at = find::find(json, &[])?;
    for token in percent_decoded(pointer).strip_prefix('/')?.split('/') {
        let token = token.replace("~1", "/").replace("~0", "~");
        let inner = json.get(at.clone())?;
        let step = match (inner.first()?, token.parse::<usize>()) {
            (b'[', Ok(index)) => Step::Index(index),
            (b'{', _) => Step::Key(&token),
            _ => return None,
        };
        let found = find::find(inner, &[step])?;
        at = at.start + found.start..at.start + found.end;
    }
    Some(at)
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let decoded = hex.filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(decoded.unwrap_or(byte));
        rest = if decoded.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Finds the strings that are references.
#[derive(Debug, Default)]
struct References {
    /// Where the text that is read begins in the request.
    at: usize,
    begin: u64,
    key: bool,
    text: Vec<u8>,
    decoder: TextDecoder,
    found: Vec<(Range<usize>, String)>,
}

impl Sink for References {
    fn string_begin(&mut self, key: bool, at: u64) {
        self.key = key;
        self.begin = at;
        self.text.clear();
    }

    fn run(&mut self, run: Run<'_>) {
        if self.text.len() <= LONGEST {
            let piece = run.bytes.get(..run.bytes.len().min(LONGEST + 1)).unwrap_or_default();
            self.decoder.run(piece, &mut self.text);
        }
    }

    fn escape(&mut self, unit: u16, _raw: &[u8]) {
        self.decoder.escape(unit, &mut self.text);
    }

    fn string_end(&mut self, end: u64) {
        self.decoder.end(&mut self.text);
        if self.key || self.text.len() > LONGEST || !self.text.starts_with(SCHEME.as_bytes()) {
            return;
        }
        if let (Ok(begin), Ok(end), Ok(text)) =
            (usize::try_from(self.begin), usize::try_from(end), std::str::from_utf8(&self.text))
        {
            self.found.push((self.at + begin..self.at + end, text.to_owned()));
        }
    }
}
