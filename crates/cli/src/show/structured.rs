//! Owns how structured values are shown: rows as a table where a person reads, JSON otherwise. Pure.

use serde_json::{Map, Value};

use super::text::one_line;
use crate::table::{Align, columns};

/// Who reads: a person at a terminal of this width, or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eyes {
    /// Columns of the terminal.
    Person(usize),
    /// JSON, as it is.
    Program,
}

/// More columns than this are no table.
const MOST_COLUMNS: usize = 24;
/// The most characters of a cell.
const MOST_CELL: usize = 60;

/// The value as text with a line break at its end.
pub(crate) fn structured(value: &Value, eyes: Eyes) -> String {
    match (eyes, rows(value)) {
        (Eyes::Person(width), Some(rows)) => table(rows, width).unwrap_or_else(|| pretty(value)),
        (Eyes::Program, _) | (_, None) => pretty(value),
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The rows in the value: an array of flat objects, alone or as the only member of an object, which is how arrays are
/// wrapped to be structured content.
fn rows(value: &Value) -> Option<Vec<&Map<String, Value>>> {
    let list = match value {
        Value::Array(list) => list,
        Value::Object(members) if members.len() == 1 => members.values().next()?.as_array()?,
        _ => return None,
    };
    let flat = |row: &Map<String, Value>| !row.values().any(|cell| cell.is_array() || cell.is_object());
    let rows: Option<Vec<_>> = list.iter().map(|row| row.as_object().filter(|row| flat(row))).collect();
    rows.filter(|rows| !rows.is_empty())
}

/// A table with the columns in the order in which they first appear; none where it would not fit.
fn table(rows: Vec<&Map<String, Value>>, width: usize) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in rows.iter().flat_map(|row| row.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
        if names.len() > MOST_COLUMNS {
            return None;
        }
    }
    let numbers = |name: &&str| rows.iter().all(|row| row.get(*name).is_none_or(Value::is_number));
    let align: Vec<Align> =
        names.iter().map(|name| if numbers(name) { Align::Right } else { Align::Left }).collect();
    let mut lines = vec![names.iter().map(|name| one_line(name, MOST_CELL)).collect::<Vec<_>>()];
    for row in rows {
        lines.push(names.iter().map(|name| row.get(*name).map(cell).unwrap_or_default()).collect());
    }
    let widest = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let total: usize = (0..names.len()).map(|column| widest(column) + 2).sum();
    // Cells are never cut for the sake of a table: what does not fit is shown as JSON, whole.
    (total <= width.max(40) + 2).then(|| columns(&align, &lines))
}

fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text, usize::MAX),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn flat_rows_are_a_table_for_a_person() {
        let value =
            json!([{"name": "a\u{1b}[1m", "size": 12}, {"name": "bb", "size": 3, "note": null, "on": true}]);
        let shown = structured(&value, Eyes::Person(80));
        assert_eq!(shown, "name      size  note  on\na\\x1b[1m    12\nbb           3        true\n");
        assert_eq!(structured(&json!({"result": value}), Eyes::Person(80)), shown);
        assert_eq!(structured(&value, Eyes::Program), format!("{value:#}\n"));
    }

    #[test]
    fn what_is_no_table_is_whole_json() {
        for value in [
            json!([{"a": {"b": 1}}]),
            json!([1, 2]),
            json!([]),
            json!({"rows": [{"a": 1}], "next": 2}),
            json!({"a": 1}),
            json!([{"long": "x".repeat(200)}]),
        ] {
            assert_eq!(structured(&value, Eyes::Person(80)), format!("{value:#}\n"));
        }
    }
}
