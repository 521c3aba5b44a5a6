//! Owns changes in TOML. Comments and order stay; so do CRLF line ends, if the file has no others.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Key, Table, TableLike, Value};

use crate::problem::Problem;

use super::Change;

/// The text with the changes made. The data is known to fit them.
pub(super) fn apply(text: &str, changes: &[Change]) -> Result<String, Problem> {
    let mut document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| Problem::error(error.message().to_owned()))?;
    for change in changes {
        make(&mut document, change)?;
    }
    let mut edited = document.to_string();
    // The comments above the first table go with it; those at the top of the file, before a blank line, are the file's.
    let head = head(text);
    if !edited.starts_with(head) {
        edited.insert_str(0, head);
    }
    Ok(if crlf_only(text) { edited.replace("\r\n", "\n").replace('\n', "\r\n") } else { edited })
}

/// The comments at the top of a file, with the blank line behind them.
fn head(text: &str) -> &str {
    let mut length = 0;
    for line in text.split_inclusive('\n') {
        length += line.len();
        if line.trim().is_empty() {
            return text.get(..length).unwrap_or_default();
        }
        if !line.starts_with('#') {
            break;
        }
    }
    ""
}

fn make(document: &mut DocumentMut, change: &Change) -> Result<(), Problem> {
    let Some((last, above)) = change.path().split_last() else { return Ok(()) };
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for name in above {
        if table.get(name).is_none() {
            if matches!(change, Change::Remove { .. }) {
                return Ok(());
            }
            let mut made = Table::new();
            made.set_implicit(true);
            table.insert(name, Item::Table(made));
        }
        table = table.get_mut(name).and_then(Item::as_table_like_mut).ok_or_else(|| {
            Problem::error("is no table, so it has no members that could be changed").field(name.as_str())
        })?;
    }
    match change {
        Change::Remove { .. } => {
            table.remove(last);
            keep_empty(document.as_table_mut(), above);
        }
        Change::Set { value, .. } => set(table, last, value)?,
    }
    Ok(())
}

/// A table that only was there by what is in it gets a header when it is empty, lest it vanish.
fn keep_empty(root: &mut Table, path: &[String]) {
    let table = path.iter().try_fold(root, |table, name| table.get_mut(name)?.as_table_mut());
    if let Some(table) = table.filter(|table| table.is_empty()) {
        table.set_implicit(false);
        table.set_dotted(false);
    }
}

fn crlf_only(text: &str) -> bool {
    text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count()
}

fn set(table: &mut dyn TableLike, name: &str, value: &Json) -> Result<(), Problem> {
    match table.get_mut(name) {
        // A value in the place of a value keeps the blanks and the comment around it.
        Some(Item::Value(old)) => {
            let decor = old.decor().clone();
            *old = plain(value, name)?;
            *old.decor_mut() = decor;
        }
        Some(item) => *item = whole(value, name)?,
        None => {
            let item = whole(value, name)?;
            table.insert(name, item);
        }
    }
    Ok(())
}

/// An object becomes a table of its own, with its objects as tables below it.
fn whole(value: &Json, name: &str) -> Result<Item, Problem> {
    let Json::Object(members) = value else { return plain(value, name).map(Item::Value) };
    let mut table = Table::new();
    for (name, value) in members {
        table.insert_formatted(&Key::new(name), whole(value, name)?);
    }
    // A header of its own is only needed by what stands directly below it.
    table.set_implicit(!members.is_empty() && members.values().all(Json::is_object));
    Ok(Item::Table(table))
}

fn plain(value: &Json, name: &str) -> Result<Value, Problem> {
    Ok(match value {
        Json::Null => return Err(Problem::error("null cannot be written in TOML").field(name)),
        Json::Bool(value) => (*value).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) if !number.is_u64() => float.into(),
            _ => return Err(Problem::error("this number is too large for TOML").field(name)),
        },
        Json::String(text) => text.as_str().into(),
        Json::Array(items) => {
            let items: Result<Vec<Value>, Problem> = items.iter().map(|item| plain(item, name)).collect();
            Value::Array(Array::from_iter(items?))
        }
        Json::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, plain(value, name)?);
            }
            Value::InlineTable(table)
        }
    })
}
