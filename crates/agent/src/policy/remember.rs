//! Owns answers that are to last: rules added to Toolway's own file of the user, in one step, with the rest of the file
//! as it stands.

use std::path::Path;

use serde_json::Value as Json;
use toolway_config::{Audience, Change, Format, Node, Problem, edit_file, read_bytes, read_tolerant};

/// Another program may write the file at the same moment.
const TRIES: usize = 3;

/// Adds rules to the allowed ones of a file. It waits for the disk.
pub(super) fn remember(file: &Path, rules: &[String]) -> Result<(), Problem> {
    let mut last = Problem::error("cannot be written").file(file);
    for _ in 0..TRIES {
        match add(file, rules) {
            Ok(()) => return Ok(()),
            Err(problem) => last = problem,
        }
    }
    Err(last)
}

fn add(file: &Path, rules: &[String]) -> Result<(), Problem> {
    let first =
        |mut problems: Vec<Problem>| problems.pop().unwrap_or_else(|| Problem::error("cannot be written"));
    let seen = if file.exists() { Some(read_bytes(file)?) } else { None };
    let is_empty = seen.as_ref().is_none_or(|bytes| bytes.iter().all(u8::is_ascii_whitespace));
    let mut allow: Vec<Json> = Vec::new();
    if let Some(bytes) = seen.as_ref().filter(|_| !is_empty) {
        let (node, _) = read_tolerant(bytes, Format::Jsonc).map_err(first)?;
        let items = node.get("permissions").and_then(|node| node.get("allow")).and_then(Node::items);
        allow.extend(items.unwrap_or_default().iter().map(Node::to_json));
    }
    for rule in rules {
        let rule = Json::from(rule.as_str());
        if !allow.contains(&rule) {
            allow.push(rule);
        }
    }
    let change = Change::set(&["permissions", "allow"], Json::Array(allow));
    edit_file(file, Format::Jsonc, seen.as_deref(), &[change], Audience::Owner).map_err(first)?;
    Ok(())
}
