//! Owns what is written to a client's file for entries of Toolway's own, and what cannot be said there. Pure. Nothing
//! but the place of the entries is touched, and no entry is removed.

use serde_json::Value as Json;

use crate::dialect::{Dialect, Field};
use crate::edit::Change;
use crate::origin::ORIGIN;
use crate::tree::Node;

use super::Client;
use super::find::root_in;
use super::notes;
use super::placeholders::translate_entry;
use super::reading::{Members, read};
use super::same::{in_one_spelling, is_empty, meaning, normal};
use super::shape::{Quirk, Switch};
use super::writing::write;

/// What is to be done.
#[derive(Debug, Default)]
pub struct ExportPlan {
    /// The changes of the client's file.
    pub changes: Vec<Change>,
    /// What becomes of each entry, in their order.
    pub lines: Vec<ExportLine>,
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLine {
    /// Its name in Toolway's file.
    pub name: String,
    /// Its name in the client's.
    pub theirs: String,
    /// What becomes of it.
    pub outcome: ExportOutcome,
    /// What the client has no word for and is left out: dotted names.
    pub left_out: Vec<String>,
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportOutcome {
    /// It is new there.
    Added,
    /// It replaces an older version of itself.
    Changed,
    /// It is there as it is.
    Same,
    /// Another server of that name is there, and stays.
    Conflict,
    /// The client cannot have it, and why.
    Refused(String),
}

/// Plans what is written to a client's file. `entries` are those of a file of Toolway's own; `inputs` its inputs.
/// `replace`: entries that are other servers of the same name are replaced, too.
pub fn plan_export(
    client: &'static Client,
    file: Option<&Node>,
    entries: &[(String, Members)],
    inputs: &[Json],
    replace: bool,
) -> ExportPlan {
    let mut export =
        Export { client, file, replace, plan: ExportPlan::default(), written: Vec::new(), list: None };
    let root = root_in(client, file);
    export.list = file
        .and_then(|file| file.at_path(&root))
        .and_then(Node::items)
        .map(|items| items.iter().map(Node::to_json).collect());
    let is_there = file.is_some_and(|file| file.at_path(&root).is_some());
    let writes_list = client.dialect == Dialect::Continue && !is_there;
    if writes_list {
        export.list = Some(Vec::new());
    }
    let before = export.list.clone();
    for (name, own) in entries {
        export.entry(name, own, &root);
    }
    if export.list != before {
        export.head();
        let list = export.list.take().unwrap_or_default();
        export.plan.changes.push(Change::set(&root, list.into()));
    }
    export.switches();
    export.inputs(inputs);
    export.plan
}

/// A client's own form of an entry. An error names the field that the client cannot have, and why.
pub(super) fn canonical(
    name: &str,
    own: &Members,
    dialect: Dialect,
    client: &Client,
) -> Result<Members, (String, String)> {
    prepared(own, dialect, client).map(|own| write(name, &own, client.shape))
}

/// The entry in one spelling, with its texts in the client's dialect.
fn prepared(own: &Members, dialect: Dialect, client: &Client) -> Result<Members, (String, String)> {
    let mut own = normal(own);
    own.shift_remove(ORIGIN);
    if client.shape.forward.is_some() {
        forward(&mut own, dialect);
    }
    split(&mut own, client);
    let is_codex = client.shape.quirk == Quirk::Codex;
    let to = |field| if is_codex && field == Field::Headers { Dialect::Toolway } else { client.dialect };
    translate_entry(&own, dialect, to)
}

/// A command that Toolway would split is split for a client that would not.
fn split(own: &mut Members, client: &Client) {
    let Some(command) = own.get("command").and_then(Json::as_str) else { return };
    if client.shape.splits || own.contains_key("args") || !command.contains([' ', '\t', '"', '\'', '\\']) {
        return;
    }
    let Some(mut words) = shlex::split(command).filter(|words| words.len() > 1) else { return };
    let command = words.remove(0);
    own.insert("command".to_owned(), command.into());
    own.insert("args".to_owned(), words.into());
}

/// Variables that only hand on one of the same name become names.
fn forward(own: &mut Members, dialect: Dialect) {
    use crate::template::{Piece, parse};
    let Some(Json::Object(env)) = own.get_mut("env") else { return };
    let handed_on = |name: &String, value: &Json| {
        let pieces = parse(value.as_str().unwrap_or_default(), dialect, Field::Env);
        matches!(pieces.as_deref(), Ok([Piece::Variable { name: other, default: None }]) if other == name)
    };
    let names: Vec<String> =
        env.iter().filter(|(name, value)| handed_on(name, value)).map(|(name, _)| name.clone()).collect();
    env.retain(|name, _| !names.contains(name));
    if env.is_empty() && !names.is_empty() {
        own.shift_remove("env");
    }
    if names.is_empty() || own.get("inheritEnv").is_some_and(Json::is_boolean) {
        return;
    }
    let list = own.entry("inheritEnv").or_insert_with(|| Json::Array(Vec::new()));
    if let Json::Array(list) = list {
        list.extend(names.into_iter().map(Json::from));
    }
}

struct Export<'a> {
    client: &'static Client,
    file: Option<&'a Node>,
    replace: bool,
    plan: ExportPlan,
    /// What is in the client's file afterwards.
    written: Vec<Written>,
    /// The entries, where they are a list.
    list: Option<Vec<Json>>,
}

/// An entry that is in the client's file afterwards.
struct Written {
    /// Its name there.
    name: String,
    own: Members,
    /// Whether it was there before, and says by itself that it is off.
    says_off: bool,
}

impl Export<'_> {
    fn entry(&mut self, name: &str, own: &Members, root: &[String]) {
        let remembered = notes::remembered(own, self.client);
        let theirs = remembered.as_ref().and_then(|remembered| remembered.name.clone());
        let theirs = theirs.unwrap_or_else(|| name.to_owned());
        let mut line = |outcome, left_out| {
            self.plan.lines.push(ExportLine {
                name: name.to_owned(),
                theirs: theirs.clone(),
                outcome,
                left_out,
            });
        };
        let own_dialect = notes::dialect_of(own);
        let prepared = match prepared(own, own_dialect, self.client) {
            Ok(prepared) => prepared,
            Err((field, reason)) => {
                return line(ExportOutcome::Refused(format!("{field}: {reason}")), Vec::new());
            }
        };
        let is_server = prepared.contains_key("command") || prepared.contains_key("url");
        if !is_server && remembered.is_none() {
            return line(
                ExportOutcome::Refused("it only switches a server on or off".to_owned()),
                Vec::new(),
            );
        }
        let mut entry = write(&theirs, &prepared, self.client.shape);
        if let Some(remembered) = &remembered {
            notes::put_back(&mut entry, &remembered.notes, is_on(&prepared));
        }
        let left_out = match left_out(&theirs, &prepared, &entry, self.client) {
            Ok(left_out) => left_out,
            Err(reason) => return line(ExportOutcome::Refused(reason), Vec::new()),
        };
        let path = self.path(root, &theirs, remembered.and_then(|remembered| remembered.project));
        let (there, is_ours) = (self.there(&path, &theirs), notes::remembered(own, self.client).is_some());
        let outcome = match there {
            None => ExportOutcome::Added,
            Some(there) if there == Json::Object(entry.clone()) => ExportOutcome::Same,
            Some(there) if self.replace || is_ours || self.is_same(&theirs, &there, own) => {
                ExportOutcome::Changed
            }
            Some(_) => ExportOutcome::Conflict,
        };
        if matches!(outcome, ExportOutcome::Added | ExportOutcome::Changed) {
            self.put(&path, &theirs, &entry);
        }
        if outcome != ExportOutcome::Conflict {
            let says_off = outcome == ExportOutcome::Same && says_off(&theirs, &entry, self.client);
            self.written.push(Written { name: theirs.clone(), own: prepared, says_off });
        }
        self.plan.lines.push(ExportLine { name: name.to_owned(), theirs, outcome, left_out });
    }

    fn path(&self, root: &[String], theirs: &str, project: Option<String>) -> Vec<String> {
        let mut path = match project {
            Some(project) if self.client.shape.quirk == Quirk::Projects => {
                vec!["projects".to_owned(), project, "mcpServers".to_owned()]
            }
            _ => root.to_vec(),
        };
        // In its package's file a server has its own name only.
        let is_package = self.client.shape.quirk == Quirk::Package;
        let own_name = theirs.split_once("__").map(|(_, name)| name).filter(|_| is_package);
        path.push(own_name.unwrap_or(theirs).to_owned());
        path
    }

    /// The entry of that name as it stands in the file, without a name of its own.
    fn there(&self, path: &[String], theirs: &str) -> Option<Json> {
        let Some(list) = &self.list else { return self.file?.at_path(path).map(Node::to_json) };
        let mut item = list.iter().find(|item| is_named(item, theirs)).cloned()?;
        if let Json::Object(members) = &mut item {
            members.shift_remove("name");
        }
        Some(item)
    }

    /// Whether what stands there is the same server.
    fn is_same(&self, name: &str, there: &Json, own: &Members) -> bool {
        let reading = there.as_object().and_then(|there| read(name, there, self.client.shape).ok());
        let theirs = reading.map(|reading| meaning(&reading.own, self.client.dialect));
        theirs == Some(meaning(own, notes::dialect_of(own)))
    }

    fn put(&mut self, path: &[String], theirs: &str, entry: &Members) {
        let Some(list) = &mut self.list else {
            self.plan.changes.push(Change::set(path, Json::Object(entry.clone())));
            return;
        };
        let mut item = Members::from_iter([("name".to_owned(), Json::from(theirs))]);
        item.extend(entry.clone());
        match list.iter_mut().find(|item| is_named(item, theirs)) {
            Some(there) => *there = item.into(),
            None => list.push(item.into()),
        }
    }

    /// What a new file of Continue begins with.
    fn head(&mut self) {
        if self.file.is_none() {
            for (name, value) in [("name", "Local Config"), ("version", "1.0.0"), ("schema", "v1")] {
                self.plan.changes.push(Change::set(&[name], value.into()));
            }
        }
    }

    /// Gemini's lists of servers that are off, and of those that are on.
    fn switches(&mut self) {
        if self.client.shape.switch != Switch::Lists {
            return;
        }
        let list = |name: &str| {
            let items = self.file?.at_path(&["mcp", name])?.items()?;
            Some(items.iter().map(Node::to_json).collect::<Vec<_>>())
        };
        let (mut excluded, mut allowed) = (list("excluded"), list("allowed"));
        let before = (excluded.clone(), allowed.clone());
        for Written { name, own, says_off } in &self.written {
            let is_allowed = allowed.as_ref().is_none_or(|list| list.contains(&name.as_str().into()));
            let name: Json = name.as_str().into();
            if is_on(own) {
                if let Some(list) = &mut excluded {
                    list.retain(|other| *other != name);
                }
                if let Some(list) = allowed.as_mut().filter(|_| !is_allowed) {
                    list.push(name);
                }
            } else if !says_off && is_allowed && !excluded.as_ref().is_some_and(|list| list.contains(&name)) {
                excluded.get_or_insert_default().push(name);
            }
        }
        for (name, before, after) in [("excluded", before.0, excluded), ("allowed", before.1, allowed)] {
            if let Some(after) = after.filter(|after| before.as_ref() != Some(after)) {
                self.plan.changes.push(Change::set(&["mcp", name], after.into()));
            }
        }
    }

    /// Inputs that the written entries ask for and the file does not have.
    fn inputs(&mut self, inputs: &[Json]) {
        if self.client.shape.quirk != Quirk::Inputs {
            return;
        }
        let there = self.file.and_then(|file| file.get("inputs")).and_then(Node::items).unwrap_or_default();
        let mut all: Vec<Json> = there.iter().map(Node::to_json).collect();
        let before = all.len();
        let texts: String =
            self.written.iter().map(|written| Json::Object(written.own.clone()).to_string()).collect();
        for input in inputs {
            let Some(id) = input.get("id").and_then(Json::as_str) else { continue };
            let is_there = all.iter().any(|other| other.get("id").and_then(Json::as_str) == Some(id));
            if !is_there && texts.contains(&format!("${{input:{id}}}")) {
                all.push(input.clone());
            }
        }
        if all.len() > before {
            self.plan.changes.push(Change::set(&["inputs"], all.into()));
        }
    }
}

fn is_on(own: &Members) -> bool {
    own.get("enabled").and_then(Json::as_bool) != Some(false)
}

/// Whether a client's entry says by itself that it is off, in whichever word.
fn says_off(name: &str, entry: &Members, client: &Client) -> bool {
    read(name, entry, client.shape).is_ok_and(|reading| !is_on(&reading.own))
}

fn is_named(item: &Json, name: &str) -> bool {
    item.get("name").and_then(Json::as_str) == Some(name)
}

/// What the client does not say: found by reading its entry again. An error where that would be another server, or one
/// that is on instead of off.
fn left_out(name: &str, own: &Members, entry: &Members, client: &Client) -> Result<Vec<String>, String> {
    let mut again = read(name, entry, client.shape).map_err(|reason| format!("it {reason}"))?.own;
    let mut own = own.clone();
    in_one_spelling(&mut again, client.dialect);
    in_one_spelling(&mut own, client.dialect);
    let mut left_out = Vec::new();
    for (member, value) in &own {
        let read = again.get(member);
        if read == Some(value) || (read.is_none() && is_empty(value)) {
            continue;
        }
        match member.as_str() {
            "enabled" if value == &Json::Bool(false) && client.shape.switch != Switch::Lists => {
                return Err("it is switched off, and there is no switch for that there".to_owned());
            }
            "enabled" => {}
            "type" if value == "http" && read.is_none() => {}
            "command" | "url" | "args" | "type" => return Err(format!("{member}: cannot be said there")),
            _ => match (value, read) {
                (Json::Object(value), read) => {
                    let inner = |name: &String| read.and_then(|read| read.get(name));
                    // A list of the tools that are shown says something when it is empty, too.
                    let says = |name: &String, value: &Json| !is_empty(value) || name == "allow";
                    left_out.extend(
                        value
                            .iter()
                            .filter(|(name, value)| inner(name) != Some(*value) && says(name, value))
                            .map(|(name, _)| format!("{member}.{name}")),
                    );
                }
                _ => left_out.push(member.clone()),
            },
        }
    }
    Ok(left_out)
}
