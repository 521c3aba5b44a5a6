//! `toolway saved list`.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use toolway_guard::SavedEntry;

use super::{Failure, Shelf, results};
use crate::exit::Exit;
use crate::render::{self, Output, plain};
use crate::table::{Align, columns};

/// The most characters of a server's or a tool's name.
const NAME: usize = 28;

pub(super) fn list(shelf: &Shelf, json: bool) -> Result<Exit, Failure> {
    let entries = shelf.store.list()?;
    let mut out = Output::new();
    if json {
        let all: Vec<Value> = entries.iter().map(|entry| described(shelf, entry)).collect();
        writeln!(out, "{:#}", Value::Array(all))?;
    } else {
        out.write_all(page(shelf, &entries).as_bytes())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

fn page(shelf: &Shelf, entries: &[SavedEntry]) -> String {
    let directory = shelf.directory.display();
    let Some(newest) = entries.first() else {
        return format!(
            "no saved results in {directory}\nA result is saved when a relay (toolway stdio, sse or streamable-http) \
             finds it too large for its client.\n"
        );
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let mut rows = vec![["ID", "AGE", "SERVER", "TOOL", "SIZE", "LINES"].map(String::from).to_vec()];
    rows.extend(entries.iter().map(|entry| row(shelf, entry, now)));
    let align = [Align::Left, Align::Right, Align::Left, Align::Left, Align::Right, Align::Right];
    let bytes = entries.iter().map(SavedEntry::disk_bytes).sum();
    format!(
        "{}\n{}, {} in {directory}\nShow one: {} show {} --lines 1-200\n",
        columns(&align, &rows),
        results(entries.len()),
        render::size(bytes),
        shelf.command,
        newest.id
    )
}

fn row(shelf: &Shelf, entry: &SavedEntry, now: u64) -> Vec<String> {
    let saved = u64::try_from(entry.at_us / 1_000_000).unwrap_or(0);
    let subject = entry.tool.as_ref().or(entry.uri.as_ref()).unwrap_or(&entry.method);
    let failed = if entry.is_error == Some(true) { " (error)" } else { "" };
    vec![
        plain(&entry.id, NAME),
        render::age(now.saturating_sub(saved)),
        plain(&entry.server, NAME),
        format!("{}{failed}", plain(subject, NAME)),
        render::size(entry.bytes),
        render::grouped(lines(shelf, entry)),
    ]
}

/// Lines of what `show` shows.
fn lines(shelf: &Shelf, entry: &SavedEntry) -> u64 {
    let readable = shelf.store.readable(entry);
    let shown = entry.files.iter().find(|file| shelf.store.path(&file.file) == readable);
    shown.and_then(|file| file.lines).unwrap_or(entry.lines)
}

/// The entry as the index has it, with full paths.
fn described(shelf: &Shelf, entry: &SavedEntry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or(Value::Null);
    let path = |file: &str| shelf.store.path(file).to_string_lossy().into_owned();
    if let Value::Object(members) = &mut value {
        members.insert("path".to_owned(), json!(path(&entry.file)));
        members.insert("readable_path".to_owned(), json!(shelf.store.readable(entry).to_string_lossy()));
    }
    value
}
