//! Owns what an agent's question for permission is about, in the terms of the rules, and which of its options is the
//! answer. It asks nobody itself.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolway_bridge::RawJson;

use crate::policy::Action;

/// The parameters of `session/request_permission`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Question {
    pub(super) tool_call: RawJson,
    #[serde(default)]
    pub(super) options: Vec<Choice>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Choice {
    option_id: String,
    #[serde(default)]
    kind: String,
}

/// What a call does, from all that is known of it. `agent` names whose tool it is where it does nothing that is known.
pub(super) fn actions(call: &RawJson, agent: &str) -> Vec<Action> {
    let call = call.tree();
    let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
    let empty = Map::new();
    let input = call.get("rawInput").and_then(Value::as_object).unwrap_or(&empty);
    let paths = || paths(&call, input);
    let found: Vec<Action> = match text("kind") {
        "execute" => command(input)
            .or_else(|| Some(text("title").trim_matches('`').to_owned()).filter(|title| !title.is_empty()))
            .map(|command| {
                let cwd = ["cwd", "workdir", "directory"].iter().find_map(|name| input.get(*name)?.as_str());
                Action::Shell { command, cwd: cwd.map(PathBuf::from) }
            })
            .into_iter()
            .collect(),
        "read" | "search" => paths().into_iter().map(Action::Read).collect(),
        "edit" | "delete" | "move" => paths().into_iter().map(Action::Write).collect(),
        "fetch" => {
            let url = ["url", "uri"].iter().find_map(|name| input.get(*name)?.as_str());
            url.map(|url| Action::Fetch(url.to_owned())).into_iter().collect()
        }
        _ => Vec::new(),
    };
    if !found.is_empty() {
        return found;
    }
    // Something else, or something that does not say what it touches: it is judged by its name.
    let name = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or(text("kind"));
    vec![Action::Mcp { server: agent.to_owned(), tool: name.to_owned(), explicit: false }]
}

fn command(input: &Map<String, Value>) -> Option<String> {
    match ["command", "cmd", "script"].iter().find_map(|name| input.get(*name))? {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<String> =
                words.iter().filter_map(|word| Some(word.as_str()?.to_owned())).collect();
            let (first, rest) = words.split_first()?;
            Some(super::terminal::line(first, rest))
        }
        _ => None,
    }
}

/// Members that name a file.
const NAMES: [&str; 8] =
    ["path", "file_path", "filePath", "filepath", "target_file", "notebook_path", "destination", "newPath"];

fn paths(call: &Value, input: &Map<String, Value>) -> BTreeSet<PathBuf> {
    let list = |name: &str| call.get(name).and_then(Value::as_array).into_iter().flatten();
    let told = list("locations").chain(list("content")).filter_map(|one| one.get("path")?.as_str());
    let own = NAMES.iter().filter_map(|name| input.get(*name)?.as_str());
    told.chain(own).filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

/// The answer that allows this one call, if the agent offers one. One that allows more than was asked is none.
pub(super) fn allow(options: &[Choice]) -> Option<Value> {
    options.iter().find(|option| option.kind == "allow_once").map(selected)
}

/// The answer that refuses it.
pub(super) fn refuse(options: &[Choice]) -> Value {
    let kinds = ["reject_once", "reject_always"];
    let found = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
    found.map_or_else(cancelled, selected)
}

/// The answer of a prompt that was cancelled.
pub(super) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

fn selected(option: &Choice) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option.option_id}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(call: &Value, expected: &[Action]) {
        assert_eq!(actions(&RawJson::of(call), "acme"), expected, "{call}");
    }

    #[test]
    fn a_call_is_judged_by_what_it_touches() {
        let shell = |command: &str| Action::Shell { command: command.to_owned(), cwd: None };
        check(&json!({"kind": "execute", "rawInput": {"command": "rm -rf x"}}), &[shell("rm -rf x")]);
        check(&json!({"kind": "execute", "rawInput": {"command": ["ls", "a b"]}}), &[shell("ls 'a b'")]);
        check(&json!({"kind": "execute", "title": "`git push`"}), &[shell("git push")]);
        let edit = json!({
            "kind": "edit", "title": "Edit", "locations": [{"path": "/w/a"}],
            "content": [{"type": "diff", "path": "/w/b", "newText": "x"}], "rawInput": {"filePath": "/w/a"},
        });
        check(&edit, &[Action::Write("/w/a".into()), Action::Write("/w/b".into())]);
        check(&json!({"kind": "read", "rawInput": {"path": "a"}}), &[Action::Read("a".into())]);
        check(
            &json!({"kind": "fetch", "rawInput": {"url": "https://x"}}),
            &[Action::Fetch("https://x".to_owned())],
        );
        let unknown = Action::Mcp { server: "acme".to_owned(), tool: "Launch".to_owned(), explicit: false };
        check(&json!({"kind": "other", "title": "Launch"}), std::slice::from_ref(&unknown));
        check(&json!({"kind": "edit", "title": "Launch"}), std::slice::from_ref(&unknown));
    }

    #[test]
    fn no_more_is_allowed_than_was_asked() {
        let options = |kinds: &[&str]| -> Vec<Choice> {
            kinds
                .iter()
                .map(|kind| Choice { option_id: format!("id-{kind}"), kind: (*kind).to_owned() })
                .collect()
        };
        let all = options(&["allow_always", "allow_once", "reject_always", "reject_once"]);
        assert_eq!(allow(&all).unwrap()["outcome"]["optionId"], "id-allow_once");
        assert_eq!(refuse(&all)["outcome"]["optionId"], "id-reject_once");
        let odd = options(&["allow_always"]);
        assert_eq!((allow(&odd), refuse(&odd)), (None, cancelled()));
    }
}
