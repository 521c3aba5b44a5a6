//! Owns tables of markdown as columns. Pure.

use super::inline::inline;
use super::{BOLD, END};
use crate::width::width;

/// The line may be a row of a table.
pub(super) fn is_row(line: &str) -> bool {
    line.trim_start().starts_with('|')
}

/// The rows in columns; `None` where they are no table: the second one separates the first.
pub(super) fn table(rows: &[String]) -> Option<String> {
    let [head, separator, body @ ..] = rows else { return None };
    let marks = cells(separator);
    let is_mark = |cell: &String| cell.contains('-') && cell.chars().all(|c| matches!(c, '-' | ':' | ' '));
    if marks.is_empty() || !marks.iter().all(is_mark) {
        return None;
    }
    let right: Vec<bool> = marks.iter().map(|mark| mark.ends_with(':') && !mark.starts_with(':')).collect();
    let mut all: Vec<Vec<String>> =
        vec![cells(head).iter().map(|cell| format!("{BOLD}{}{END}", inline(cell))).collect()];
    all.extend(body.iter().map(|row| cells(row).iter().map(|cell| inline(cell)).collect()));
    let count = all.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |at: usize| all.iter().filter_map(|row| row.get(at)).map(|cell| seen(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let mut out = String::new();
    for row in &all {
        let mut line = String::new();
        for (at, width) in widths.iter().enumerate() {
            let cell = row.get(at).map(String::as_str).unwrap_or_default();
            let gap = " ".repeat(width - seen(cell));
            if right.get(at) == Some(&true) {
                line.extend([&gap, cell, "  "]);
            } else {
                line.extend([cell, &gap, "  "]);
            }
        }
        out.extend([line.trim_end(), "\n"]);
    }
    Some(out)
}

/// The cells of a row; a bar behind a backslash is text.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let mut cells = vec![String::new()];
    let mut letters = row.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.peek() == Some(&'|') => {
                letters.next();
                if let Some(cell) = cells.last_mut() {
                    cell.push('|');
                }
            }
            '|' => cells.push(String::new()),
            letter => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(letter);
                }
            }
        }
    }
    if row.ends_with('|') {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The columns that are seen: without colours.
fn seen(text: &str) -> usize {
    let mut pieces = text.split('\x1b');
    let first = width(pieces.next().unwrap_or_default());
    let behind = |piece: &str| piece.split_once('m').map_or(0, |(_, rest)| width(rest));
    first + pieces.map(behind).sum::<usize>()
}
