//! Owns what removes a server from a client's file, and what switches it on and off there. Pure.

use serde_json::Value as Json;

use crate::edit::Change;
use crate::problem::Problem;
use crate::tree::Node;

use super::Client;
use super::find::root_in;
use super::shape::{Quirk, Switch};

/// What removes a server from a client's file.
pub fn plan_removal(client: &Client, file: &Node, name: &str) -> Result<Vec<Change>, Problem> {
    let path = path_to(client, file, name)?;
    let Place::InList { root, others } = path else {
        return Ok(vec![Change::remove(&path.names())]);
    };
    Ok(vec![Change::set(&root, others.into())])
}

/// What switches a server on or off in a client's file. An error says that its files have no switch.
pub fn plan_switch(client: &Client, file: &Node, name: &str, on: bool) -> Result<Vec<Change>, Problem> {
    let place = path_to(client, file, name)?;
    let word = match client.shape.switch {
        Switch::Disabled => "disabled",
        Switch::Enabled => "enabled",
        Switch::Lists => {
            let mut changes = switch_lists(file, name, on);
            if let (Place::Member(path), true) = (&place, on) {
                changes.extend(stale_switches(file, path));
            }
            return Ok(changes);
        }
        Switch::No => {
            let problem = Problem::error(format!("{} has no switch in its files", client.title));
            return Err(problem.server(name).hint("toolway remove --in takes the server out"));
        }
    };
    let Place::Member(path) = place else {
        return Err(Problem::error("a list of servers has no switches").server(name));
    };
    let entry = file.at_path(&path);
    let with = |word: &str| [path.as_slice(), &[word.to_owned()]].concat();
    let given = |word: &str| entry.is_some_and(|entry| entry.get(word).is_some());
    // The other word, if it stands there, would contradict.
    let other = if word == "disabled" { "enabled" } else { "disabled" };
    let mut changes: Vec<Change> = if given(other) { vec![Change::remove(&with(other))] } else { Vec::new() };
    let is_needed = !on || given(word) || client.shape.quirk == Quirk::Goose;
    if is_needed {
        changes.push(Change::set(&with(word), Json::Bool(on == (word == "enabled"))));
    }
    Ok(changes)
}

/// Removes what says in the entry that a server is off, where the client itself hears only its lists.
fn stale_switches(file: &Node, path: &[String]) -> Vec<Change> {
    let words = [("enabled", false), ("disabled", true)].into_iter();
    let stale = words.filter_map(|(word, off)| {
        let said = file.at_path(path)?.get(word)?.to_json();
        (said == Json::Bool(off)).then(|| Change::remove(&[path, &[word.to_owned()]].concat()))
    });
    stale.collect()
}

fn switch_lists(file: &Node, name: &str, on: bool) -> Vec<Change> {
    let list = |list: &str| -> Option<Vec<Json>> {
        Some(file.at_path(&["mcp", list])?.items()?.iter().map(Node::to_json).collect())
    };
    let name = Json::from(name);
    let mut changes = Vec::new();
    let mut set = |which: &str, list: Vec<Json>| changes.push(Change::set(&["mcp", which], list.into()));
    let excluded = list("excluded");
    let is_excluded = excluded.as_ref().is_some_and(|list| list.contains(&name));
    let mut excluded = excluded.unwrap_or_default();
    if on {
        if is_excluded {
            excluded.retain(|other| *other != name);
            set("excluded", excluded);
        }
        if let Some(mut allowed) = list("allowed").filter(|allowed| !allowed.contains(&name)) {
            allowed.push(name);
            set("allowed", allowed);
        }
    } else if !is_excluded {
        excluded.push(name);
        set("excluded", excluded);
    }
    changes
}

/// Where a server stands.
enum Place {
    Member(Vec<String>),
    /// In a list, with the rest of that list.
    InList {
        root: Vec<String>,
        others: Vec<Json>,
    },
}

impl Place {
    fn names(self) -> Vec<String> {
        match self {
            Self::Member(names) | Self::InList { root: names, .. } => names,
        }
    }
}

fn path_to(client: &Client, file: &Node, name: &str) -> Result<Place, Problem> {
    let root = root_in(client, Some(file));
    let servers = file.at_path(&root);
    if let Some(items) = servers.and_then(Node::items) {
        let is_it = |item: &&Node| item.get("name").and_then(Node::as_str) == Some(name);
        if items.iter().any(|item| is_it(&item)) {
            let others = items.iter().filter(|item| !is_it(item)).map(Node::to_json).collect();
            return Ok(Place::InList { root, others });
        }
    }
    if servers.is_some_and(|servers| servers.get(name).is_some()) {
        return Ok(Place::Member([root, vec![name.to_owned()]].concat()));
    }
    let names: Vec<&str> = match servers {
        Some(servers) => {
            servers.members().unwrap_or_default().iter().map(|(key, _)| key.name.as_str()).collect()
        }
        None => Vec::new(),
    };
    let problem = Problem::error("is not in this file").server(name);
    Err(if names.is_empty() { problem } else { problem.hint(format!("in it are {}", names.join(", "))) })
}
