//! Markdown of saved `checks` and `faults` rows: one block a check or scenario, readable however many fronts there are.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::table::Row;

fn leaves(value: &Value, path: &str, out: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(value, &path, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| leaves(item, path, out)),
        Value::String(text) => out.push((path.to_owned(), text.clone())),
        other => out.push((path.to_owned(), other.to_string())),
    }
}

/// One cell for one check: what was lost first, then what was only respelled.
fn verdict(value: &Value) -> String {
    if let Value::String(text) = value {
        return if text == "identical" { "=".into() } else { text.clone() };
    }
    let mut all = vec![];
    leaves(value, "", &mut all);
    let paths = |keep: &dyn Fn(&str, &str) -> bool| -> String {
        let kept: Vec<&str> = all.iter().filter(|(p, s)| keep(p, s)).map(|(p, _)| p.as_str()).collect();
        kept.join(", ")
    };
    let is_added = |path: &str| path.starts_with('+') || path.contains(".+");
    let other: Vec<String> = all
        .iter()
        .filter(|(path, word)| {
            let plain = ["identical", "respelled", "reordered", "kept", "DROPPED"].contains(&word.as_str());
            !path.contains('+') && !plain && !word.starts_with("CHANGED")
        })
        .map(|(path, word)| format!("{path}: {word}"))
        .collect();
    let named = |name: &str, list: String| (!list.is_empty()).then(|| format!("{name}{list}"));
    let worst: Vec<String> = [
        named("dropped: ", paths(&|_, word| word == "DROPPED")),
        named("changed: ", paths(&|_, word| word.starts_with("CHANGED"))),
        named("", other.join(", ")),
        named("added: ", paths(&|path, _| is_added(path))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !worst.is_empty() {
        return worst.join("; ");
    }
    named("respelled: ", paths(&|_, word| word == "respelled"))
        .or_else(|| named("reordered", paths(&|_, word| word == "reordered")).map(|_| "reordered".into()))
        .unwrap_or_else(|| "=".into())
}

fn clip(text: &str, n: usize) -> String {
    let text = text.replace('|', "/").replace('\n', " ");
    if text.chars().count() > n { format!("{}…", text.chars().take(n).collect::<String>()) } else { text }
}

fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(|x| x.as_str().unwrap_or("")).collect::<Vec<_>>().join(" + "),
        other => other.to_string(),
    }
}

/// The cells of one row: (check or scenario, text).
fn cells(row: &Row, width: usize) -> Vec<(String, String)> {
    if let Some(scenario) = row.get("scenario").and_then(Value::as_str) {
        let hidden = ["front", "upstream", "scenario", "stderr"];
        let seen: Vec<String> = row
            .iter()
            .filter(|(key, _)| !hidden.contains(&key.as_str()))
            .map(|(key, value)| format!("{key}: {}", clip(&words(value), width)))
            .collect();
        return vec![(scenario.to_owned(), seen.join("; "))];
    }
    row.iter()
        .filter(|(key, _)| *key != "front" && *key != "upstream")
        .map(|(key, value)| (key.clone(), clip(&verdict(value), width * 2)))
        .collect()
}

/// The blocks, in the order in which checks and fronts first appear.
pub(crate) fn report(rows: &[Row], width: usize) -> String {
    let (mut fronts, mut names): (Vec<String>, Vec<String>) = (vec![], vec![]);
    let mut table: HashMap<(String, String), String> = HashMap::new();
    for row in rows {
        let of = |key| row.get(key).and_then(Value::as_str).unwrap_or("?");
        let front = format!("{} ({})", of("front"), of("upstream"));
        if !fronts.contains(&front) {
            fronts.push(front.clone());
        }
        for (name, cell) in cells(row, width) {
            if !names.contains(&name) {
                names.push(name.clone());
            }
            table.insert((name, front.clone()), cell);
        }
    }
    let mut out = String::new();
    for name in &names {
        write!(out, "\n**{name}**\n\n| front (upstream) | what happened |\n|---|---|\n").ok();
        for front in &fronts {
            if let Some(cell) = table.get(&(name.clone(), front.clone())) {
                writeln!(out, "| {front} | {cell} |").ok();
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn verdicts_show_the_worst_first() {
        let table = [
            (json!("identical"), "="),
            (json!({"a": "identical"}), "="),
            (json!({"a": "respelled", "b": "identical"}), "respelled: a"),
            (json!({"a": "reordered"}), "reordered"),
            (
                json!({"a": "DROPPED", "b": {"c": "CHANGED 1 -> 2"}, "+d": "1"}),
                "dropped: a; changed: b.c; added: +d",
            ),
            (json!({"ids": {"0": "no answer"}}), "ids.0: no answer"),
        ];
        for (value, want) in table {
            assert_eq!(verdict(&value), want, "{value}");
        }
    }

    #[test]
    fn report_has_one_block_a_check() {
        let row = |front: &str, word: &str| {
            json!({"front": front, "upstream": "stdio", "ids": word}).as_object().cloned()
        };
        let rows: Vec<Row> = [row("a", "identical"), row("b", "lost | all")].into_iter().flatten().collect();
        let want = "\n**ids**\n\n| front (upstream) | what happened |\n|---|---|\n| a (stdio) | = |\n| b (stdio) | lost / all |\n";
        assert_eq!(report(&rows, 110), want);
    }
}
