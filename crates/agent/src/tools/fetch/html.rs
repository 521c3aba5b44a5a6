//! Owns turning HTML into text that reads well: headings, lists, links, code. Forgiving, and linear in what it is given.
//! Pure.

mod entities;
mod writer;

use url::Url;

use entities::decoded;
use writer::Writer;

/// What is left of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Readable {
    pub(super) title: String,
    pub(super) text: String,
}

/// Elements whose content is no text, up to their end.
const SILENT: [&str; 8] = ["script", "style", "template", "noscript", "svg", "iframe", "canvas", "object"];

/// The text of a page at this address.
pub(super) fn text(html: &str, base: &Url) -> Readable {
    let mut writer = Writer::new(base);
    let mut title = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        writer.text(&decoded(before));
        let Some(parsed) = parse(tag) else {
            // No tag after all.
            writer.text("<");
            rest = tag.get(1..).unwrap_or_default();
            continue;
        };
        rest = parsed.rest;
        let name = parsed.name.as_str();
        if parsed.closing {
            writer.close(name);
        } else if SILENT.contains(&name) && !parsed.empty {
            rest = after_end(rest, name).1;
        } else if name == "title" {
            let (inner, after) = after_end(rest, "title");
            if title.is_empty() {
                title = decoded(inner).split_whitespace().collect::<Vec<_>>().join(" ");
            }
            rest = after;
        } else {
            writer.open(name, &parsed);
        }
    }
    writer.text(&decoded(rest));
    Readable { title, text: writer.finish() }
}

/// A tag.
struct Tag<'a> {
    /// In small letters; empty for comments and declarations.
    name: String,
    closing: bool,
    empty: bool,
    attributes: &'a str,
    rest: &'a str,
}

impl Tag<'_> {
    /// The value of an attribute.
    fn attribute(&self, wanted: &str) -> Option<String> {
        let mut rest = self.attributes;
        loop {
            rest = rest.trim_start_matches(|character: char| character.is_whitespace() || character == '/');
            let end = rest
                .find(|character: char| character.is_whitespace() || character == '=')
                .unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let valued = after.trim_start().strip_prefix('=').map(str::trim_start);
            let (value, next) = match valued {
                None => ("", after),
                Some(value) => match value.chars().next() {
                    Some(quote @ ('"' | '\'')) => {
                        value.get(1..).and_then(|value| value.split_once(quote)).unwrap_or((value, ""))
                    }
                    _ => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
                },
            };
            if name.eq_ignore_ascii_case(wanted) && !name.is_empty() {
                return Some(decoded(value).into_owned());
            }
            if next.len() >= rest.len() || next.is_empty() {
                return None;
            }
            rest = next;
        }
    }
}

/// The tag at the beginning, if it is one.
fn parse(text: &str) -> Option<Tag<'_>> {
    let other = |rest| Tag { name: String::new(), closing: false, empty: true, attributes: "", rest };
    if let Some(comment) = text.strip_prefix("<!--") {
        return Some(other(comment.split_once("-->").map_or("", |(_, rest)| rest)));
    }
    if text.starts_with("<!") || text.starts_with("<?") {
        return Some(other(text.split_once('>').map_or("", |(_, rest)| rest)));
    }
    let inner = text.get(1..)?;
    let (closing, inner) = inner.strip_prefix('/').map_or((false, inner), |inner| (true, inner));
    let end = inner.find(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
    let (name, after) = inner.split_at(end.unwrap_or(inner.len()));
    if !name.starts_with(|character: char| character.is_ascii_alphabetic()) {
        return None;
    }
    let close = end_of_tag(after)?;
    let attributes = after.get(..close).unwrap_or_default();
    Some(Tag {
        name: name.to_ascii_lowercase(),
        closing,
        empty: attributes.ends_with('/'),
        attributes,
        rest: after.get(close + 1..).unwrap_or_default(),
    })
}

/// Where the tag ends: a `>` within quotes is none.
fn end_of_tag(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut valued = false;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(at),
            (None, b'"' | b'\'') if valued => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        valued = byte == b'=' || (valued && byte.is_ascii_whitespace());
    }
    None
}

/// What stands before the end of an element, and what after it.
fn after_end<'a>(text: &'a str, name: &str) -> (&'a str, &'a str) {
    for (at, _) in text.match_indices("</") {
        let after = text.get(at + 2..).unwrap_or_default();
        let found = after.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if found {
            let rest = after.split_once('>').map_or("", |(_, rest)| rest);
            return (text.get(..at).unwrap_or_default(), rest);
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests;
