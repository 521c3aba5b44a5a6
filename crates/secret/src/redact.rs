//! Owns the replacement of secrets in text, whole or as a stream. Knows the shapes, not where text comes from.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::Regex;

use crate::shapes;

/// What stands in a secret's place.
pub const REDACTED: &str = "[redacted]";

/// Bytes that a stream holds back, so that a secret cut by a piece is still seen whole. A find longer than
/// this may be missed where it crosses two pieces.
const OVERLAP: usize = 16 << 10;
const CHUNK: usize = 64 << 10;
/// Bytes already written that the next search may look back on (for `\b`).
const CONTEXT: usize = 64;

/// A pattern of the user's that is no regular expression.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PatternError {
    /// The line in the file, from one.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// Replaces secrets by `[redacted]`: the known shapes, and patterns of the user's.
#[derive(Debug)]
pub struct Redactor {
    sources: Vec<String>,
    own: Vec<Regex>,
    all: OnceLock<Option<Regex>>,
}

static KNOWN: LazyLock<Redactor> =
    LazyLock::new(|| Redactor { sources: Vec::new(), own: Vec::new(), all: OnceLock::new() });

impl Redactor {
    /// The known shapes alone; built once a process, when first used.
    pub fn known() -> &'static Self {
        &KNOWN
    }

    /// The known shapes and the patterns of a file: one regular expression a line; empty lines and lines that
    /// begin with `#` are left out. Where a pattern has a group named `secret`, that part alone is replaced.
    pub fn with_patterns(file: &str) -> Result<Self, PatternError> {
        let (mut sources, mut own) = (Vec::new(), Vec::new());
        for (index, line) in file.lines().enumerate() {
            let line = line.trim_end_matches('\r');
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let pattern = Regex::new(line)
                .map_err(|error| PatternError { line: index + 1, reason: last_line(&error.to_string()) })?;
            if pattern.is_match(b"") {
                let reason = "the pattern matches the empty text".to_owned();
                return Err(PatternError { line: index + 1, reason });
            }
            sources.push(strip_names(line));
            own.push(pattern);
        }
        Ok(Self { sources, own, all: OnceLock::new() })
    }

    /// The text with every secret replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.find(text.as_bytes(), 0).is_none() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        self.replace(text.as_bytes(), 0, usize::MAX, &mut out);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    /// A writer that redacts what goes through it; call [`RedactingWriter::finish`] at the end.
    pub fn writer<W: Write>(&self, inner: W) -> RedactingWriter<'_, W> {
        RedactingWriter { redactor: self, inner, buffer: Vec::new(), written: 0 }
    }

    /// A reader that redacts what comes out of it.
    pub fn reader<R: Read>(&self, inner: R) -> RedactingReader<'_, R> {
        RedactingReader { inner, writer: self.writer(Vec::new()), at: 0, ended: false }
    }

    /// The next secret at or after `from`: the part to replace, and the whole find.
    fn find(&self, text: &[u8], from: usize) -> Option<(Range<usize>, Range<usize>)> {
        let all = self.all.get_or_init(|| {
            let sources: Vec<String> = self
                .sources
                .iter()
                .cloned()
                .chain(shapes::sources())
                .map(|source| format!("(?:{source})"))
                .collect();
            Regex::new(&sources.join("|")).ok()
        });
        let whole = match all {
            Some(all) => all.find_at(text, from)?.range(),
            // The alternation was too large to compile: one by one.
            None => self
                .each()
                .filter_map(|one| one.find_at(text, from))
                .map(|found| found.range())
                .min_by_key(|range| range.start)?,
        };
        // Not beyond the find: else every pattern that is not the one looks through the rest of the text, at each find.
        let upto = text.get(..whole.end)?;
        let secret = self.each().find_map(|one| {
            let captures = one.captures_at(upto, whole.start)?;
            let found = captures.get(0)?.range();
            (found == whole).then(|| captures.name("secret").map_or(found, |group| group.range()))
        });
        Some((secret.unwrap_or(whole.clone()), whole))
    }

    fn each(&self) -> impl Iterator<Item = &Regex> {
        self.own.iter().chain(shapes::EACH.iter())
    }

    /// Writes `text[from..]` redacted to `out`, up to `safe` (a find that begins before it and ends after it
    /// stays, with the name before the secret, by which the next search knows it). Says up to where it got.
    fn replace(&self, text: &[u8], from: usize, safe: usize, out: &mut Vec<u8>) -> usize {
        let safe = safe.min(text.len());
        let mut at = from;
        while at < safe {
            let Some((secret, whole)) = self.find(text, at) else { break };
            if whole.end > safe {
                let stop = whole.start.min(safe);
                out.extend_from_slice(text.get(at..stop).unwrap_or_default());
                return stop;
            }
            out.extend_from_slice(text.get(at..secret.start).unwrap_or_default());
            out.extend_from_slice(REDACTED.as_bytes());
            // A find may end with a delimiter that the next one begins with.
            at = secret.end.max(at + 1);
        }
        if at < safe {
            out.extend_from_slice(text.get(at..safe).unwrap_or_default());
            at = safe;
        }
        at
    }
}

/// The groups of a user's pattern lose their names, so that all patterns fit one alternation.
fn strip_names(pattern: &str) -> String {
    pattern.replace("(?P<secret>", "(?:").replace("(?<secret>", "(?:")
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// See [`Redactor::writer`]. What was not finished is lost when it is dropped.
#[derive(Debug)]
pub struct RedactingWriter<'r, W> {
    redactor: &'r Redactor,
    inner: W,
    buffer: Vec<u8>,
    written: usize,
}

impl<W: Write> RedactingWriter<'_, W> {
    /// The inner writer, which has what is redacted so far.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Writes what was held back, and gives the inner writer back.
    pub fn finish(mut self) -> io::Result<W> {
        self.drain(true)?;
        Ok(self.inner)
    }

    fn drain(&mut self, last: bool) -> io::Result<()> {
        let safe = if last { usize::MAX } else { self.buffer.len().saturating_sub(OVERLAP) };
        let mut out = Vec::with_capacity(self.buffer.len());
        let mut at = self.redactor.replace(&self.buffer, self.written, safe, &mut out);
        // A find without an end must not hold everything back for ever.
        if !last && self.buffer.len() - at > 16 * CHUNK {
            at = self.redactor.replace(&self.buffer, at, usize::MAX, &mut out);
        }
        self.inner.write_all(&out)?;
        let keep_from = at.saturating_sub(CONTEXT);
        self.buffer.drain(..keep_from);
        self.written = at - keep_from;
        Ok(())
    }
}

impl<W: Write> Write for RedactingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.get(..bytes.len().min(CHUNK)).unwrap_or_default();
        self.buffer.extend_from_slice(taken);
        if self.buffer.len() - self.written >= CHUNK + OVERLAP {
            self.drain(false)?;
        }
        Ok(taken.len())
    }

    /// Does not write what is held back: a secret could be cut there.
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// See [`Redactor::reader`].
#[derive(Debug)]
pub struct RedactingReader<'r, R> {
    inner: R,
    writer: RedactingWriter<'r, Vec<u8>>,
    at: usize,
    ended: bool,
}

impl<R: Read> Read for RedactingReader<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.writer.inner.len() && !self.ended {
            self.writer.inner.clear();
            self.at = 0;
            let mut piece = vec![0; CHUNK];
            let read = self.inner.read(&mut piece)?;
            if read == 0 {
                self.writer.drain(true)?;
                self.ended = true;
            } else {
                self.writer.write_all(piece.get(..read).unwrap_or_default())?;
            }
        }
        let ready = self.writer.inner.get(self.at..).unwrap_or_default();
        let length = ready.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..length), ready.get(..length)) {
            to.copy_from_slice(from);
        }
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_shapes_are_replaced_and_the_rest_stays() {
        let gh = format!("ghp_{}", "a1B2".repeat(9));
        let cases = [
            (format!("token {gh} end"), "token [redacted] end".to_owned()),
            (
                "Authorization: Bearer abc.def-123456".to_owned(),
                "Authorization: Bearer [redacted]".to_owned(),
            ),
            (
                "\"authorization\":\"Basic dXNlcjpwYXNz\"".to_owned(),
                "\"authorization\":\"Basic [redacted]\"".to_owned(),
            ),
            ("key AKIAIOSFODNN7EXAMPLE.".to_owned(), "key [redacted].".to_owned()),
            ("postgres://joe:hunter2@db/x".to_owned(), "postgres://joe:[redacted]@db/x".to_owned()),
            (
                "{\\\"password\\\":\\\"hunter22\\\"}".to_owned(),
                "{\\\"password\\\":\\\"[redacted]\\\"}".to_owned(),
            ),
            (format!("sk-ant-{}", "x".repeat(30)), "[redacted]".to_owned()),
            (format!("xoxb-{}", "1".repeat(12)), "[redacted]".to_owned()),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x".to_owned(),
                "[redacted] x".to_owned(),
            ),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-_1".to_owned(), "[redacted]".to_owned()),
            (
                "AWS_SECRET_ACCESS_KEY=".to_owned() + &"k".repeat(40),
                "AWS_SECRET_ACCESS_KEY=[redacted]".to_owned(),
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(Redactor::known().redact(&text), expected);
        }
        for plain in ["a task-force of 12", "https://h:8080/x", "no secrets here", "skip-this", ""] {
            assert!(matches!(Redactor::known().redact(plain), Cow::Borrowed(_)), "{plain}");
        }
    }

    #[test]
    fn own_patterns_join_and_errors_name_the_line() {
        let own = Redactor::with_patterns("# ours\n\nACME-[0-9]+\nuser=(?<secret>\\w+)\n").unwrap();
        assert_eq!(
            own.redact("ACME-12 user=bob AKIAIOSFODNN7EXAMPLE"),
            "[redacted] user=[redacted] [redacted]"
        );
        let error = Redactor::with_patterns("ok\n\n(unclosed").unwrap_err();
        assert_eq!(error.line, 3);
        assert_eq!(Redactor::with_patterns("x*").unwrap_err().line, 1);
    }

    #[test]
    fn a_secret_across_pieces_is_seen() {
        let secret = format!("ghp_{}", "Z".repeat(36));
        let text = format!("{} {secret} {}", "word ".repeat(40_000), "more ".repeat(20_000));
        let mut writer = Redactor::known().writer(Vec::new());
        for piece in text.as_bytes().chunks(777) {
            writer.write_all(piece).unwrap();
        }
        let written = String::from_utf8(writer.finish().unwrap()).unwrap();
        assert_eq!(written, text.replace(&secret, REDACTED));
        let mut read = String::new();
        Redactor::known().reader(text.as_bytes()).read_to_string(&mut read).unwrap();
        assert_eq!(read, written);
    }

    #[test]
    fn a_secret_that_is_known_by_its_name_is_seen_wherever_a_stream_is_cut() {
        let find = "password=sesame123";
        for before in 0..=find.len() {
            let text = format!("{}{find} {}", " ".repeat(CHUNK - before), "more ".repeat(CHUNK));
            let mut writer = Redactor::known().writer(Vec::new());
            // Of the first pieces that are looked through, what is written ends at `CHUNK`.
            for piece in text.as_bytes().chunks(OVERLAP) {
                writer.write_all(piece).unwrap();
            }
            let written = String::from_utf8(writer.finish().unwrap()).unwrap();
            assert!(written == text.replace("sesame123", REDACTED), "{before} bytes before the cut");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(proptest::prelude::ProptestConfig::default().cases / 16))]
        #[test]
        fn streams_redact_like_whole_texts(filler in "[a-z :=\"@/-]{0,40}", piece in 1usize..90_000, at in 0usize..150_000) {
            let mut text = "lorem ipsum dolor ".repeat(9000);
            text.insert_str(at, &format!(" {filler} AKIAIOSFODNN7EXAMPLE password={filler}sesame123 "));
            let mut writer = Redactor::known().writer(Vec::new());
            for piece in text.as_bytes().chunks(piece) {
                writer.write_all(piece).unwrap();
            }
            let written = String::from_utf8(writer.finish().unwrap()).unwrap();
            proptest::prop_assert_eq!(written, Redactor::known().redact(&text).into_owned());
        }
    }
}
