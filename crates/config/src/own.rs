//! Owns changes of Toolway's own files: where they are, what adds, removes and switches a server there, and whether an
//! entry may be in them. Reads and writes nothing.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use crate::definition::{Definition, name_fault};
use crate::dialect::Dialect;
use crate::edit::Change;
use crate::environment::Environment;
use crate::problem::Problem;
use crate::servers::node_of;
use crate::tree::Node;

/// The one place of servers in Toolway's own files.
const SERVERS: &str = "mcpServers";

/// The user's file.
pub fn own_user_file(env: &Environment) -> PathBuf {
    env.config_dir.join("mcp.json")
}

/// The project's file: `.toolway/mcp.json`, or `toolway.json` where only that is there.
pub fn own_project_file(root: &Path) -> PathBuf {
    let (usual, plain) = (root.join(".toolway/mcp.json"), root.join("toolway.json"));
    if !usual.exists() && plain.exists() { plain } else { usual }
}

/// The servers of an own file, by name.
pub fn own_servers(file: Option<&Node>) -> Vec<(String, Map<String, Json>)> {
    let servers = file.and_then(|file| file.get(SERVERS)).and_then(Node::members).unwrap_or_default();
    let entry = |node: &Node| if let Json::Object(entry) = node.to_json() { Some(entry) } else { None };
    servers.iter().filter_map(|(key, node)| Some((key.name.clone(), entry(node)?))).collect()
}

/// What is wrong with an entry for an own file: errors and warnings, without a place.
pub fn check_own(name: &str, entry: &Map<String, Json>) -> Vec<Problem> {
    let mut problems: Vec<Problem> =
        name_fault(name).map(|fault| Problem::error(fault).server(name)).into_iter().collect();
    let node = node_of(&Json::Object(entry.clone()));
    problems.extend(Definition::read(name, node.at, &node, Dialect::Toolway).problems);
    for problem in &mut problems {
        problem.at = None;
    }
    problems
}

/// What adds a server to an own file. An error says that there is one of that name, in whatever case.
pub fn plan_own_addition(
    file: Option<&Node>,
    name: &str,
    entry: Map<String, Json>,
    replace: bool,
) -> Result<Vec<Change>, Problem> {
    let there = file.and_then(|file| file.get(SERVERS)).and_then(Node::members).unwrap_or_default();
    let other = there.iter().find(|(key, _)| key.name.to_lowercase() == name.to_lowercase());
    match other {
        Some((key, _)) if !replace || key.name != name => {
            let problem = Problem::error("is there already").server(&key.name).at(key.at);
            Err(if key.name == name { problem.hint("--replace replaces it") } else { problem })
        }
        _ => Ok(vec![Change::set(&[SERVERS, name], entry.into())]),
    }
}

/// What removes a server from an own file; `None` if it is not in it.
pub fn plan_own_removal(file: &Node, name: &str) -> Option<Vec<Change>> {
    file.get(SERVERS)?.get(name)?;
    Some(vec![Change::remove(&[SERVERS, name])])
}

/// What switches a server in an own file. One that is defined elsewhere is switched off by an entry that says nothing
/// else, and on by the removal of that entry. No changes: it is so already.
pub fn plan_own_switch(file: Option<&Node>, name: &str, on: bool) -> Vec<Change> {
    let path = |word: &str| [SERVERS.to_owned(), name.to_owned(), word.to_owned()];
    let entry = file.and_then(|file| file.get(SERVERS)).and_then(|servers| servers.get(name));
    let Some(entry) = entry else {
        return if on { Vec::new() } else { vec![Change::set(&path("enabled"), false.into())] };
    };
    let members = entry.members().unwrap_or_default();
    let only_switches = members.iter().all(|(key, _)| matches!(key.name.as_str(), "enabled" | "disabled"));
    if only_switches && on {
        return vec![Change::remove(&[SERVERS, name])];
    }
    let said = |word: &str| entry.get(word).and_then(Node::as_bool);
    let mut changes = Vec::new();
    if said("disabled").is_some() {
        // The word that is there is used.
        if said("disabled") != Some(!on) {
            changes.push(Change::set(&path("disabled"), (!on).into()));
        }
        if said("enabled").is_some_and(|enabled| enabled != on) {
            changes.push(Change::remove(&path("enabled")));
        }
    } else if said("enabled").unwrap_or(true) != on {
        changes.push(Change::set(&path("enabled"), on.into()));
    }
    changes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::edit::edit;
    use crate::tree::{Format, read};

    fn switched(file: &str, name: &str, on: bool) -> String {
        let root = read(file.as_bytes(), Format::Jsonc).unwrap();
        let changes = plan_own_switch(Some(&root), name, on);
        String::from_utf8(edit(file.as_bytes(), Format::Jsonc, &changes).unwrap().bytes).unwrap()
    }

    #[test]
    fn a_server_is_switched_where_it_is_said() {
        let file = r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "disabled": true}, "c": {"enabled": false}}}"#;
        let data = |text: &str| read(text.as_bytes(), Format::Jsonc).unwrap().to_json()["mcpServers"].clone();
        assert_eq!(data(&switched(file, "a", false))["a"], json!({"command": "x", "enabled": false}));
        assert_eq!(data(&switched(file, "b", true))["b"], json!({"command": "x", "disabled": false}));
        assert_eq!(data(&switched(file, "c", true)).get("c"), None);
        assert_eq!(data(&switched(file, "elsewhere", false))["elsewhere"], json!({"enabled": false}));
        for (name, on) in [("a", true), ("b", false), ("c", false), ("elsewhere", true)] {
            assert_eq!(switched(file, name, on), file, "{name}");
        }
    }

    #[test]
    fn a_name_is_there_once_in_whatever_case() {
        let root = read(br#"{"mcpServers": {"Git": {"command": "x"}}}"#, Format::Jsonc).unwrap();
        let add = |name: &str, replace| {
            let planned = plan_own_addition(Some(&root), name, Map::new(), replace);
            planned.map(|changes| changes.len()).map_err(|problem| problem.to_string())
        };
        assert_eq!(add("new", false), Ok(1));
        assert_eq!(add("Git", true), Ok(1));
        let there = |hint: &str| Err(format!("line 1, column 17: server \"Git\": is there already{hint}"));
        assert_eq!(add("Git", false), there(" (--replace replaces it)"));
        assert_eq!(add("git", true), there(""));
    }

    #[test]
    fn an_entry_is_checked_before_it_is_written() {
        let entry = json!({"command": "x", "args": "y"});
        let problems = check_own("a b", entry.as_object().unwrap());
        assert!(problems.len() >= 2 && problems.iter().all(Problem::is_error), "{problems:?}");
        assert!(check_own("ab", json!({"command": "x"}).as_object().unwrap()).is_empty());
    }
}
