//! Owns the replacement of secrets in text, whole or as a stream: of the values in use, and of what has a known shape.
//! Knows not where text comes from.

mod lines;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::Regex;

use crate::{in_use, shapes};

pub use lines::RedactingLines;
pub use stream::{RedactingReader, RedactingWriter};

/// What stands in a secret's place.
pub const REDACTED: &str = "[redacted]";

/// A pattern of the user's that is no regular expression.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct PatternError {
    /// The line in the file, from one.
    pub line: usize,
    /// What is wrong.
    pub reason: String,
}

/// Replaces secrets by `[redacted]`: the values in use in this process ([`crate::Secret::in_use`]), the known shapes, and
/// patterns of the user's.
#[derive(Debug)]
pub struct Redactor {
    sources: Vec<String>,
    own: Vec<Regex>,
    all: OnceLock<Option<Regex>>,
    looks_for: Kinds,
}

/// What is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Shapes,
    Values,
    Both,
}

static KNOWN: LazyLock<Redactor> = LazyLock::new(|| Redactor::of(Vec::new(), Vec::new(), Kinds::Both));
static SHAPES: LazyLock<Redactor> = LazyLock::new(|| Redactor::of(Vec::new(), Vec::new(), Kinds::Shapes));
static VALUES: LazyLock<Redactor> = LazyLock::new(|| Redactor::of(Vec::new(), Vec::new(), Kinds::Values));

/// A find: the part to replace, and what it was known by.
#[derive(Debug, Clone)]
struct Find {
    secret: Range<usize>,
    whole: Range<usize>,
}

impl Redactor {
    fn of(sources: Vec<String>, own: Vec<Regex>, looks_for: Kinds) -> Self {
        Self { sources, own, all: OnceLock::new(), looks_for }
    }

    /// The values in use and the known shapes; built once a process, when first used. What stands at every border that
    /// texts leave by.
    pub fn known() -> &'static Self {
        &KNOWN
    }

    /// The known shapes alone: a judgement of a text that does not depend on what else is in use.
    pub fn shapes() -> &'static Self {
        &SHAPES
    }

    /// The values in use alone: for texts of which nothing else may be taken, and of which there may be many.
    pub fn values() -> &'static Self {
        &VALUES
    }

    /// The values in use, the known shapes and the patterns of a file: one regular expression a line; empty lines and
    /// lines that begin with `#` are left out. Where a pattern has a group named `secret`, that part alone is replaced.
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
        Ok(Self::of(sources, own, Kinds::Both))
    }

    /// The text with every secret replaced.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.secrets(text.as_bytes());
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        emit(text.as_bytes(), 0..text.len(), &secrets, &mut out);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    /// A JSON text, or lines of JSON, with every secret in its strings and names replaced. It stays JSON.
    pub fn redact_json<'a>(&self, json: &'a str) -> Cow<'a, str> {
        let secrets = self.secrets(json.as_bytes());
        if secrets.is_empty() {
            return Cow::Borrowed(json);
        }
        let mut inside = Vec::new();
        let mut secrets = secrets.into_iter().peekable();
        for text in json_texts(json.as_bytes()) {
            while let Some(secret) = secrets.next_if(|secret| secret.start < text.end) {
                let part = secret.start.max(text.start)..secret.end.min(text.end);
                if !part.is_empty() {
                    inside.push(part);
                }
                if secret.end > text.end {
                    // Its rest may be in the next one.
                    break;
                }
            }
        }
        let mut out = Vec::with_capacity(json.len());
        emit(json.as_bytes(), 0..json.len(), &inside, &mut out);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }

    /// Splits a text that comes in pieces, and of which nothing is to be held back in vain: what may be shown, and the end in
    /// which a value in use may have begun. The end belongs before the next piece.
    pub fn split_unfinished(text: &str) -> (&str, &str) {
        let mut cut = in_use::finished(text.as_bytes());
        if cut < text.len() {
            // The end of one may be the beginning of another.
            let whole = in_use::find(text.as_bytes());
            while let Some(value) = whole.iter().find(|value| value.start < cut && cut < value.end) {
                cut = value.start;
            }
        }
        text.split_at_checked(cut).unwrap_or((text, ""))
    }

    /// Every part of a whole text that is to be replaced, ordered by their beginnings.
    fn secrets(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut finds = self.finds(text, 0, text.len());
        // A backslash may be the beginning of an escape; then what comes behind it has another beginning, too.
        if self.looks_for != Kinds::Values
            && let Some(view) = in_use::unescaped(text)
        {
            let inside = self.by_shape(&view.bytes, 0, view.bytes.len());
            finds.extend(inside.into_iter().map(|find| {
                let secret = view.source(&find.secret);
                Find { whole: secret.clone(), secret }
            }));
        }
        let mut secrets: Vec<_> = finds.into_iter().map(|find| find.secret).collect();
        secrets.sort_by_key(|secret| (secret.start, secret.end));
        secrets
    }

    /// Every find that begins at or after `from` and before `safe`, up to the first that ends behind it.
    fn finds(&self, text: &[u8], from: usize, safe: usize) -> Vec<Find> {
        let mut finds = Vec::new();
        if self.looks_for != Kinds::Values {
            finds = self.by_shape(text, from, safe);
        }
        if self.looks_for != Kinds::Shapes {
            let values = in_use::find(text.get(from..).unwrap_or_default());
            let values = values.into_iter().map(|value| value.start + from..value.end + from);
            let values = values.filter(|value| value.start < safe);
            finds.extend(values.map(|value| Find { secret: value.clone(), whole: value }));
        }
        finds
    }

    fn by_shape(&self, text: &[u8], from: usize, safe: usize) -> Vec<Find> {
        let (mut finds, mut at) = (Vec::new(), from);
        while at < safe {
            let Some(find) = self.find(text, at).filter(|find| find.whole.start < safe) else { break };
            // A find may end with a delimiter that the next one begins with.
            at = find.secret.end.max(at + 1);
            let ends = find.whole.end > safe;
            finds.push(find);
            if ends {
                break;
            }
        }
        finds
    }

    /// The next secret at or after `from` by its shape.
    fn find(&self, text: &[u8], from: usize) -> Option<Find> {
        let all = self.all.get_or_init(|| {
            let sources: Vec<String> = self
                .sources
                .iter()
                .cloned()
                .chain(shapes::sources())
                .map(|source| format!("(?:{source})"))
                .collect();
            shapes::on_a_deep_stack(|| Regex::new(&sources.join("|")).ok())
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
        Some(Find { secret: secret.unwrap_or(whole.clone()), whole })
    }

    fn each(&self) -> impl Iterator<Item = &Regex> {
        self.own.iter().chain(shapes::EACH.iter())
    }

    /// Writes `text[from..]` redacted to `out`, up to `safe` (a find that begins before it and ends after it
    /// stays, with the name before the secret, by which the next search knows it). Says up to where it got.
    fn replace(&self, text: &[u8], from: usize, safe: usize, out: &mut Vec<u8>) -> usize {
        let safe = safe.min(text.len());
        let mut finds = self.finds(text, from, safe);
        let mut stop = safe;
        while let Some(cut) = finds.iter().find(|find| find.whole.start < stop && stop < find.whole.end) {
            stop = cut.whole.start;
        }
        finds.retain(|find| find.whole.end <= stop);
        let mut secrets: Vec<_> = finds.into_iter().map(|find| find.secret).collect();
        secrets.sort_by_key(|secret| (secret.start, secret.end));
        let stop = stop.max(from);
        emit(text, from..stop, &secrets, out);
        stop
    }
}

/// Writes a part of the text with the secrets in it replaced, which are ordered by their beginnings.
fn emit(text: &[u8], part: Range<usize>, secrets: &[Range<usize>], out: &mut Vec<u8>) {
    let mut at = part.start;
    for secret in secrets {
        if secret.start >= at {
            out.extend_from_slice(text.get(at..secret.start).unwrap_or_default());
            out.extend_from_slice(REDACTED.as_bytes());
        }
        // One that begins in another's middle goes with it.
        at = at.max(secret.end);
    }
    out.extend_from_slice(text.get(at..part.end).unwrap_or_default());
}

/// What stands between the quotes of each string of a JSON text.
fn json_texts(json: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + json.get(at..)?.iter().position(|byte| *byte == b'"')? + 1;
        let mut end = start;
        loop {
            match json.get(end) {
                Some(b'\\') => end += 2,
                Some(b'"') => break,
                Some(_) => end += 1,
                None => {
                    end = json.len();
                    break;
                }
            }
        }
        at = end + 1;
        Some(start..end)
    })
}

/// The groups of a user's pattern lose their names, so that all patterns fit one alternation.
fn strip_names(pattern: &str) -> String {
    pattern.replace("(?P<secret>", "(?:").replace("(?<secret>", "(?:")
}

fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}
