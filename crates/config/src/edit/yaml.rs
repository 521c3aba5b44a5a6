//! Owns changes in YAML: the lines of the member are written anew, all other lines stay, comments with them. Where the
//! member does not stand on lines of its own the whole file is written anew, and its comments are lost.

use serde_json::{Map, Value as Json};

use crate::problem::Problem;
use crate::tree::{self, Format, Key, Node, Value, yaml_plain};

use super::{Change, difference};

/// The text with the changes made. The data is known to fit them.
pub(super) fn apply(text: &str, changes: &[Change]) -> Result<String, Problem> {
    changes.iter().try_fold(text.to_owned(), |text, change| make(&text, change))
}

fn make(text: &str, change: &Change) -> Result<String, Problem> {
    let root = super::read(text, Format::Yaml).map_err(first)?;
    let mut data = root.as_ref().map_or_else(|| Json::Object(Map::new()), Node::to_json);
    let spliced = root.as_ref().and_then(|root| splice(text, root, &data, change));
    difference::apply(&mut data, change)?;
    // A splice is only kept if it did what was asked and nothing else.
    let fits = |text: &String| {
        super::read(text, Format::Yaml).is_ok_and(|root| root.is_some_and(|root| root.to_json() == data))
    };
    Ok(spliced.filter(fits).unwrap_or_else(|| document(&data, line_end(text))))
}

fn first(problems: Vec<Problem>) -> Problem {
    problems.into_iter().next().unwrap_or_else(|| Problem::error("cannot be read"))
}

fn line_end(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

/// The change made in the lines of the member; `None` where the member has none of its own.
fn splice(text: &str, root: &Node, data: &Json, change: &Change) -> Option<String> {
    let path = change.path();
    let known = (0..=path.len())
        .rev()
        .find(|length| root.at_path(path.get(..*length).unwrap_or_default()).is_some())?;
    match change {
        Change::Set { value, .. } if known == path.len() => replace(text, root, path, value),
        Change::Set { value, .. } => {
            let (there, missing) = path.split_at(known);
            let (name, below) = missing.split_first()?;
            let value = below
                .iter()
                .rev()
                .fold(value.clone(), |value, name| Json::Object(Map::from_iter([(name.clone(), value)])));
            insert(text, root, data, there, name, value)
        }
        Change::Remove { .. } => {
            let (_, above) = path.split_last()?;
            let members = root.at_path(above)?.members()?;
            if members.len() == 1 && !above.is_empty() {
                return replace(text, root, above, &Json::Object(Map::new()));
            }
            let (key, value) = member(root, path)?;
            let (start, end, _) = lines_of(text, key, value)?;
            Some([text.get(..start)?, text.get(end..)?].concat())
        }
    }
}

fn member<'a>(root: &'a Node, path: &[String]) -> Option<&'a (Key, Node)> {
    let (last, above) = path.split_last()?;
    root.at_path(above)?.members()?.iter().find(|(key, _)| key.name == *last)
}

/// From the beginning of a member's first line to the end of its last one, and its indentation; `None` if it shares a
/// line with anything else.
fn lines_of<'t>(text: &'t str, key: &Key, value: &Node) -> Option<(usize, usize, &'t str)> {
    let start = text.get(..key.at.offset)?.rfind('\n').map_or(0, |newline| newline + 1);
    let indent = text.get(start..key.at.offset)?;
    // A block scalar ends behind its last line break.
    let last = text.get(..last_byte(key, value))?.trim_end().len();
    let end = text.get(last..)?.find('\n').map_or(text.len(), |newline| last + newline + 1);
    indent.chars().all(|c| c == ' ').then_some((start, end, indent))
}

/// Where the text of a member ends, without the blank lines and comments behind it.
fn last_byte(key: &Key, value: &Node) -> usize {
    let inner = match &value.value {
        Value::Object(members) => members.last().map(|(key, value)| last_byte(key, value)),
        Value::Array(items) => items.last().map(|item| last_byte(key, item)),
        Value::Null if value.end <= value.at.offset => Some(key.at.offset),
        _ => Some(value.end),
    };
    inner.unwrap_or(value.end).max(key.at.offset)
}

fn replace(text: &str, root: &Node, path: &[String], value: &Json) -> Option<String> {
    let (key, old) = member(root, path)?;
    let simple = |node: &Node| !matches!(node.value, Value::Object(_) | Value::Array(_) | Value::Null);
    let stands_alone = text.get(old.at.offset..old.end).is_some_and(|old| !old.contains('\n'));
    if simple(old) && stands_alone && !value.is_object() && !value.is_array() {
        return Some([text.get(..old.at.offset)?, &scalar(value), text.get(old.end..)?].concat());
    }
    let (start, end, indent) = lines_of(text, key, old)?;
    let mut lines = String::new();
    write_member(&mut lines, &key.name, value, indent.len());
    Some([text.get(..start)?, &with_ends(&lines, text), text.get(end..)?].concat())
}

fn insert(text: &str, root: &Node, data: &Json, path: &[String], name: &str, value: Json) -> Option<String> {
    let members = root.at_path(path)?.members();
    let place = members.and_then(<[(Key, Node)]>::last).and_then(|(key, last)| lines_of(text, key, last));
    let Some((start, end, indent)) = place else {
        // `{}` or nothing: the member above is written anew, with its content.
        let mut whole = path.iter().try_fold(data, |data, name| data.get(name))?.as_object().cloned()?;
        whole.insert(name.to_owned(), value);
        return if path.is_empty() { None } else { replace(text, root, path, &Json::Object(whole)) };
    };
    debug_assert!(start <= end, "lines end behind their start");
    let mut lines = String::new();
    let head = text.get(..end)?;
    if !head.ends_with('\n') {
        lines.push('\n');
    }
    write_member(&mut lines, name, &value, indent.len());
    Some([head, &with_ends(&lines, text), text.get(end..)?].concat())
}

fn with_ends(lines: &str, text: &str) -> String {
    if line_end(text) == "\n" { lines.to_owned() } else { lines.replace('\n', "\r\n") }
}

/// A whole file.
pub(super) fn document(data: &Json, line_end: &str) -> String {
    let mut out = String::new();
    match data {
        Json::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                write_member(&mut out, name, value, 0);
            }
        }
        other => out = format!("{}\n", flow(other)),
    }
    if line_end == "\n" { out } else { out.replace('\n', line_end) }
}

fn write_member(out: &mut String, name: &str, value: &Json, indent: usize) {
    out.push_str(&" ".repeat(indent));
    out.push_str(&text_scalar(name));
    out.push(':');
    write_value(out, value, indent);
}

/// A value behind a colon or a dash, to the end of its last line.
fn write_value(out: &mut String, value: &Json, indent: usize) {
    match value {
        Json::Object(members) if !members.is_empty() => {
            out.push('\n');
            for (name, value) in members {
                write_member(out, name, value, indent + 2);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                write_item(out, item, indent + 2);
            }
        }
        other => {
            out.push(' ');
            out.push_str(&flow(other));
            out.push('\n');
        }
    }
}

fn write_item(out: &mut String, item: &Json, indent: usize) {
    let begin = out.len();
    match item {
        // The first member stands behind the dash.
        Json::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                write_member(out, name, value, indent + 2);
            }
            out.replace_range(begin..begin + indent + 2, &format!("{}- ", " ".repeat(indent)));
        }
        other => {
            out.push_str(&" ".repeat(indent));
            out.push('-');
            write_value(out, other, indent);
        }
    }
}

/// An empty collection or a scalar.
fn flow(value: &Json) -> String {
    match value {
        Json::Object(_) => "{}".to_owned(),
        Json::Array(_) => "[]".to_owned(),
        other => scalar(other),
    }
}

fn scalar(value: &Json) -> String {
    match value {
        Json::String(text) => text_scalar(text),
        other => other.to_string(),
    }
}

/// Text as a plain scalar where it cannot be taken for anything else, else in double quotes, as JSON writes it.
fn text_scalar(text: &str) -> String {
    let plain_character = |c: char| c.is_alphanumeric() || "_-./@+ ".contains(c);
    let is_plain = text.starts_with(|c: char| c.is_alphanumeric() || "_/.".contains(c))
        && text.chars().all(plain_character)
        && !text.ends_with(' ')
        && !["yes", "no", "on", "off", "y", "n"].contains(&text.to_ascii_lowercase().as_str())
        && !text.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && matches!(yaml_plain(text), Value::String(_));
    if is_plain { text.to_owned() } else { Json::from(text).to_string() }
}

/// The comments of the old text that the new one does not have.
pub(super) fn lost_comments(old: &str, new: &str) -> Vec<String> {
    let mut kept = comments(new);
    let mut lost = comments(old);
    lost.retain(|comment| match kept.iter().position(|other| other == comment) {
        Some(index) => {
            kept.swap_remove(index);
            false
        }
        None => true,
    });
    lost
}

fn comments(text: &str) -> Vec<String> {
    let mut inside = Vec::new();
    if let Ok((root, _)) = tree::read_tolerant(text.as_bytes(), Format::Yaml) {
        scalars(&root, &mut inside);
    }
    let mut found = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let hash = line.char_indices().find(|(index, c)| {
            let before = line.get(..*index).unwrap_or_default();
            let place = offset + index;
            *c == '#'
                && (before.is_empty() || before.ends_with([' ', '\t']))
                && !inside.iter().any(|(start, end)| (*start..*end).contains(&place))
        });
        found.extend(
            hash.and_then(|(index, _)| line.get(index..)).map(|comment| comment.trim_end().to_owned()),
        );
        offset += line.len();
    }
    found
}

fn scalars(node: &Node, found: &mut Vec<(usize, usize)>) {
    match &node.value {
        Value::Object(members) => members.iter().for_each(|(_, value)| scalars(value, found)),
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::String(_) => found.push((node.at.offset, node.end)),
        _ => {}
    }
}
