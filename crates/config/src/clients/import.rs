//! Owns what is added to a file of Toolway's own for the servers that were found, and what becomes of each of them.
//! Pure; renames nothing silently.

use serde_json::Value as Json;

use crate::definition::name_fault;
use crate::edit::Change;
use crate::lines::starts_gateway;
use crate::origin::ORIGIN;
use crate::tree::Node;

use super::export::canonical;
use super::notes::{self, Remembered};
use super::reading::Members;
use super::same::meaning;
use super::{Found, Home};

/// What is to be done.
#[derive(Debug, Default)]
pub struct ImportPlan {
    /// The changes of Toolway's own file.
    pub changes: Vec<Change>,
    /// What becomes of each server, in the order in which they were found.
    pub lines: Vec<ImportLine>,
    /// Inputs that could not be added, by id: another one of that id is there.
    pub input_conflicts: Vec<String>,
}

/// What becomes of a server.
#[derive(Debug)]
pub struct ImportLine {
    /// The server.
    pub found: Found,
    /// What becomes of it.
    pub outcome: ImportOutcome,
}

/// What becomes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is added under that name.
    Added {
        /// The name.
        name: String,
    },
    /// It is there, under that name.
    Present {
        /// The name.
        name: String,
    },
    /// It is Toolway's own gateway, which is not put behind itself.
    Itself,
    /// Another server of that name is there: nothing is added.
    Conflict {
        /// The name.
        name: String,
        /// Where the other one was found, if it is not in Toolway's file.
        with: Option<String>,
    },
}

/// An entry that is in Toolway's file, or will be.
struct Known {
    name: String,
    own: Members,
    from: Option<String>,
}

/// Plans what is added to a file of Toolway's own.
pub fn plan_import(own_file: Option<&Node>, found: Vec<Found>, inputs: &[Json]) -> ImportPlan {
    let there = own_file.and_then(|root| root.get("mcpServers")).and_then(Node::members).unwrap_or_default();
    let mut known: Vec<Known> = there
        .iter()
        .filter_map(|(key, node)| match node.to_json() {
            Json::Object(own) => Some(Known { name: key.name.clone(), own, from: None }),
            _ => None,
        })
        .collect();
    let mut plan = ImportPlan::default();
    for found in found {
        let outcome = place(&found, &mut known, &mut plan.changes);
        plan.lines.push(ImportLine { found, outcome });
    }
    plan_inputs(own_file, inputs, &mut plan);
    plan
}

fn place(found: &Found, known: &mut Vec<Known>, changes: &mut Vec<Change>) -> ImportOutcome {
    if is_toolway(&found.own) {
        return ImportOutcome::Itself;
    }
    let name = own_name(&found.name);
    let means = meaning(&found.own, found.dialect);
    let is_same = |known: &Known| meaning(&known.own, notes::dialect_of(&known.own)) == means;
    let named = known.iter().position(|other| other.name.to_lowercase() == name.to_lowercase());
    let same = named.filter(|index| known.get(*index).is_some_and(is_same));
    // The same server under another name counts only while its own name is free.
    let same = same.or_else(|| if named.is_none() { known.iter().position(is_same) } else { None });
    if let Some(known) = same.and_then(|index| known.get_mut(index)) {
        if let Some(change) = remember_too(found, known) {
            changes.push(change);
        }
        return ImportOutcome::Present { name: known.name.clone() };
    }
    if let Some(other) = named.and_then(|index| known.get(index)) {
        return ImportOutcome::Conflict { name: other.name.clone(), with: other.from.clone() };
    }
    let mut own = found.own.clone();
    let remembered = remembered(found, &name, &own, found.dialect).unwrap_or_default();
    own.insert(ORIGIN.to_owned(), notes::origin(found.dialect, found.client, &remembered));
    changes.push(Change::set(&["mcpServers", &name], Json::Object(own.clone())));
    known.push(Known {
        name: name.clone(),
        own,
        from: Some(format!("{}:{}", found.file.display(), found.at.line)),
    });
    ImportOutcome::Added { name }
}

/// Whether an entry starts Toolway's gateway.
fn is_toolway(own: &Members) -> bool {
    let command = own.get("command").and_then(Json::as_str).unwrap_or_default();
    let Some(args) = own.get("args").and_then(Json::as_array) else {
        return starts_gateway(&shlex::split(command).unwrap_or_default());
    };
    let words: Vec<&str> = std::iter::once(command).chain(args.iter().filter_map(Json::as_str)).collect();
    starts_gateway(&words)
}

/// What is remembered of the client for an entry of Toolway's own; `None` if the client could not have that entry.
fn remembered(
    found: &Found,
    name: &str,
    own: &Members,
    dialect: crate::dialect::Dialect,
) -> Option<Remembered> {
    let ours = canonical(&found.name, own, dialect, found.client).ok()?;
    Some(Remembered {
        name: (found.name != name).then(|| found.name.clone()),
        project: match &found.home {
            Home::File => None,
            Home::Project(key) => Some(key.clone()),
        },
        notes: notes::differences(&ours, &found.theirs),
    })
}

/// A server that is there already remembers this client as well.
fn remember_too(found: &Found, known: &mut Known) -> Option<Change> {
    let id = found.client.id;
    if notes::remembered(&known.own, found.client).is_some() {
        return None;
    }
    let remembered = remembered(found, &known.name, &known.own, notes::dialect_of(&known.own))?;
    let value = notes::remember(&remembered);
    let origin = known.own.entry(ORIGIN).or_insert_with(|| Json::Object(Members::new()));
    let clients = origin.as_object_mut()?.entry("clients").or_insert_with(|| Json::Object(Members::new()));
    clients.as_object_mut()?.insert(id.to_owned(), value.clone());
    Some(Change::set(&["mcpServers", &known.name, ORIGIN, "clients", id], value))
}

/// A name that Toolway's own files can have: `[A-Za-z0-9._-]{1,64}`.
fn own_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let mut own = String::new();
    for c in name.chars() {
        if fits(c) {
            own.push(c);
        } else if !own.ends_with('-') {
            own.push('-');
        }
    }
    let trimmed = if own == name { own.as_str() } else { own.trim_matches('-') };
    let cut: String = trimmed.chars().take(64).collect();
    match cut.as_str() {
        "" => "server".to_owned(),
        // What is left to find fault with is a name that is reserved.
        _ if name_fault(&cut).is_some() => format!("{cut}-1"),
        _ => cut,
    }
}

fn plan_inputs(own_file: Option<&Node>, inputs: &[Json], plan: &mut ImportPlan) {
    let there = own_file.and_then(|root| root.get("inputs")).and_then(Node::items).unwrap_or_default();
    let mut all: Vec<Json> = there.iter().map(Node::to_json).collect();
    let before = all.len();
    for input in inputs {
        let Some(id) = input.get("id").and_then(Json::as_str) else { continue };
        match all.iter().find(|other| other.get("id").and_then(Json::as_str) == Some(id)) {
            None => all.push(input.clone()),
            Some(other) if other == input => {}
            Some(_) => plan.input_conflicts.push(id.to_owned()),
        }
    }
    if all.len() > before {
        plan.changes.push(Change::set(&["inputs"], all.into()));
    }
}
