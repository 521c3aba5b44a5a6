//! Owns the reading of TOML.

use serde_json::Number;
use toml_edit::{Document, Item, Key as TomlKey, TableLike, TomlError, Value as TomlValue};

use crate::problem::{Position, Problem};

use super::jsonc::{lower_first, too_deep};
use super::{Key, MAX_DEPTH, Node, Places, Value};

/// Reads the text.
pub(super) fn read(text: &str, places: &mut Places<'_>) -> Result<Node, Problem> {
    let document = Document::parse(text).map_err(|error| problem(&error, text, places))?;
    let start = places.at(0);
    let members = table(document.as_table(), 0, places)?;
    Ok(Node { at: start, end: places.in_file(text.len()), value: Value::Object(members) })
}

fn table(table: &dyn TableLike, depth: usize, places: &mut Places<'_>) -> Result<Vec<(Key, Node)>, Problem> {
    let mut members = Vec::with_capacity(table.len());
    for (name, item) in table.iter() {
        let key_span = table.key(name).and_then(TomlKey::span).or_else(|| item.span()).unwrap_or_default();
        let at = places.at(key_span.start);
        let span = item.span().unwrap_or(key_span);
        let value = node(item, span, depth + 1, places)?;
        members.push((Key { name: name.to_owned(), at }, value));
    }
    Ok(members)
}

fn node(
    item: &Item,
    span: std::ops::Range<usize>,
    depth: usize,
    places: &mut Places<'_>,
) -> Result<Node, Problem> {
    let at = places.at(span.start);
    if depth > MAX_DEPTH {
        return Err(too_deep().at(at));
    }
    let value = match item {
        Item::None => Value::Null,
        Item::Value(value) => return plain(value, at, places.in_file(span.end), depth, places),
        Item::Table(inner) => Value::Object(table(inner, depth, places)?),
        Item::ArrayOfTables(array) => {
            let mut items = Vec::with_capacity(array.len());
            for inner in array {
                let span = inner.span().unwrap_or_else(|| span.clone());
                let (at, end) = (places.at(span.start), places.in_file(span.end));
                items.push(Node { at, end, value: Value::Object(table(inner, depth + 1, places)?) });
            }
            Value::Array(items)
        }
    };
    Ok(Node { at, end: places.in_file(span.end), value })
}

fn plain(
    value: &TomlValue,
    at: Position,
    end: usize,
    depth: usize,
    places: &mut Places<'_>,
) -> Result<Node, Problem> {
    let value = match value {
        TomlValue::String(text) => Value::String(text.value().clone()),
        TomlValue::Integer(number) => Value::Number((*number.value()).into()),
        TomlValue::Float(number) => {
            let number = *number.value();
            Number::from_f64(number).map_or_else(|| Value::String(number.to_string()), Value::Number)
        }
        TomlValue::Boolean(value) => Value::Bool(*value.value()),
        TomlValue::Datetime(date) => Value::String(date.value().to_string()),
        TomlValue::InlineTable(inner) => Value::Object(table(inner, depth, places)?),
        TomlValue::Array(array) => {
            let mut items = Vec::with_capacity(array.len());
            for item in array {
                let span = item.span().unwrap_or_default();
                let (at, end) = (places.at(span.start), places.in_file(span.end));
                if depth + 1 > MAX_DEPTH {
                    return Err(too_deep().at(at));
                }
                items.push(plain(item, at, end, depth + 1, places)?);
            }
            Value::Array(items)
        }
    };
    Ok(Node { at, end, value })
}

fn problem(error: &TomlError, text: &str, places: &mut Places<'_>) -> Problem {
    let span = error.span().unwrap_or_default();
    let at = places.at(span.start);
    if error.message().contains("duplicate key") {
        let name = text.get(span.clone()).unwrap_or_default();
        let name = TomlKey::parse(name).ok().and_then(|keys| keys.last().map(|key| key.get().to_owned()));
        let name = name.unwrap_or_default();
        if let Some(first) = first_of(text, span.start, places) {
            return super::doubled(&name, first.line, at);
        }
    }
    if error.message().contains("recur") {
        return too_deep().at(at);
    }
    Problem::error(lower_first(error.message())).at(at)
}

/// The first of two keys, of which the second one stands at this offset: the text before it is sound, and the line of
/// the second one below its table's header is a file of its own that leads to the key.
fn first_of(text: &str, offset: usize, places: &mut Places<'_>) -> Option<Position> {
    let start = text.get(..offset)?.rfind('\n').map_or(0, |newline| newline + 1);
    let before = text.get(..start)?;
    let rest = text.get(start..)?;
    let line = rest.lines().next()?;
    let is_header = |line: &&str| line.trim_start().starts_with('[');
    let alone = if is_header(&line) {
        format!("{line}\n")
    } else {
        let header = before.lines().rfind(is_header).unwrap_or_default();
        format!("{header}\n{line}\n")
    };
    let (sound, second) = (Document::parse(before).ok()?, Document::parse(alone).ok()?);
    let (mut here, mut there): (&dyn TableLike, &dyn TableLike) = (sound.as_table(), second.as_table());
    loop {
        let (name, item) = there.iter().next()?;
        let key = here.key(name)?;
        let first = here.get(name)?;
        match (item.as_table_like(), first.as_table_like()) {
            (Some(deeper), Some(first)) if !deeper.is_empty() => (here, there) = (first, deeper),
            _ => return Some(places.at(key.span()?.start)),
        }
    }
}
