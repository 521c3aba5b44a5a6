//! Owns what is remembered of a client's own way with an entry, so that it goes back there as it came: members that
//! Toolway has no word for, other spellings, other names. Pure.

use serde_json::{Map, Value as Json};

use crate::dialect::Dialect;
use crate::origin::{ORIGIN, dialect_named};
use crate::tree::pointer;

use super::Client;
use super::reading::Members;

/// What one client's file said beside the definition.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Remembered {
    /// The name there, where it is another one.
    pub(super) name: Option<String>,
    /// The key of the project below which it stands (Claude Code).
    pub(super) project: Option<String>,
    /// Pointer to what is written and what stood there.
    pub(super) notes: Members,
}

/// Where the two entries differ.
pub(super) fn differences(ours: &Members, theirs: &Members) -> Members {
    let mut notes = Members::new();
    compare(&mut Vec::new(), ours, theirs, &mut notes);
    notes
}

fn compare(path: &mut Vec<String>, ours: &Members, theirs: &Members, notes: &mut Members) {
    let names = theirs.keys().chain(ours.keys().filter(|name| !theirs.contains_key(*name)));
    for name in names {
        path.push(name.clone());
        match (ours.get(name), theirs.get(name)) {
            (ours, theirs) if ours == theirs => {}
            (Some(Json::Object(ours)), Some(Json::Object(theirs))) => compare(path, ours, theirs, notes),
            (ours, theirs) => {
                let mut note = Members::new();
                for (word, value) in [("ours", ours), ("theirs", theirs)] {
                    if let Some(value) = value {
                        note.insert(word.to_owned(), value.clone());
                    }
                }
                notes.insert(pointer(path), note.into());
            }
        }
        path.pop();
    }
}

/// Members that say together where a server runs: what is remembered of them goes back together or not at all.
const TARGET: [&str; 14] = [
    "command",
    "cmd",
    "args",
    "env",
    "environment",
    "envs",
    "env_keys",
    "env_vars",
    "url",
    "serverUrl",
    "httpUrl",
    "uri",
    "auth",
    "oauth",
];

/// Members that switch a server on and off: one of them alone would contradict what the other says.
const SWITCH: [&str; 2] = ["enabled", "disabled"];

/// Members of which all go back, or none.
enum Group {
    Target,
    Switch,
}

/// Puts back what the notes remember, wherever Toolway's own part still is what it was. A server that is on by now
/// (`is_on`) is not switched off again by what stood there.
pub(super) fn put_back(entry: &mut Members, notes: &Members, is_on: bool) {
    let group = |place: &str| {
        let name = place.split('/').nth(1)?;
        let is_in = |(group, names): (Group, &[&str])| names.contains(&name).then_some(group);
        [(Group::Target, TARGET.as_slice()), (Group::Switch, &SWITCH)].into_iter().find_map(is_in)
    };
    let fits = |place: &str, note: &Json| {
        let members = members_at(entry, place);
        let is_as_it_was = members.is_some_and(|(members, last)| members.get(&last) == note.get("ours"));
        is_as_it_was && !(is_on && switches_off(place, note))
    };
    let (mut whole_target, mut whole_switch) = (true, true);
    for (place, note) in notes {
        match group(place) {
            Some(Group::Target) => whole_target &= fits(place, note),
            Some(Group::Switch) => whole_switch &= fits(place, note),
            None => {}
        }
    }
    let fitting: Vec<&String> = notes
        .iter()
        .filter(|(place, note)| match group(place) {
            Some(Group::Target) => whole_target,
            Some(Group::Switch) => whole_switch,
            None => fits(place, note),
        })
        .map(|(place, _)| place)
        .collect();
    for place in fitting {
        let theirs = notes.get(place).and_then(|note| note.get("theirs")).cloned();
        let Some((members, last)) = members_at_mut(entry, place) else { continue };
        match theirs {
            Some(theirs) => members.insert(last, theirs),
            None => members.shift_remove(&last),
        };
    }
}

fn switches_off(place: &str, note: &Json) -> bool {
    let word = match place {
        "/enabled" => false,
        "/disabled" => true,
        _ => return false,
    };
    note.get("theirs") == Some(&Json::Bool(word))
}

/// The members that a pointer leads into, and the last name of it.
fn members_at<'a>(entry: &'a Members, place: &str) -> Option<(&'a Members, String)> {
    let (above, last) = names_of(place)?;
    let members = above.iter().try_fold(entry, |members, name| members.get(name)?.as_object());
    Some((members?, last))
}

fn members_at_mut<'a>(entry: &'a mut Members, place: &str) -> Option<(&'a mut Members, String)> {
    let (above, last) = names_of(place)?;
    let members = above.iter().try_fold(entry, |members, name| members.get_mut(name)?.as_object_mut());
    Some((members?, last))
}

fn names_of(place: &str) -> Option<(Vec<String>, String)> {
    let mut names: Vec<String> =
        place.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
    let last = names.pop()?;
    Some((names, last))
}

/// Whose placeholders an entry of Toolway's own files holds.
pub(super) fn dialect_of(entry: &Members) -> Dialect {
    let name = entry.get(ORIGIN).and_then(|origin| origin.get("dialect")).and_then(Json::as_str);
    dialect_named(name)
}

/// What an entry of Toolway's own files remembers of a client.
pub(super) fn remembered(entry: &Members, client: &Client) -> Option<Remembered> {
    let found = entry.get(ORIGIN)?.get("clients")?.get(client.id)?;
    let text = |name: &str| found.get(name).and_then(Json::as_str).map(str::to_owned);
    let notes = found.get("notes").and_then(Json::as_object).cloned().unwrap_or_default();
    Some(Remembered { name: text("name"), project: text("project"), notes })
}

/// The value below [`ORIGIN`] for one client.
pub(super) fn remember(remembered: &Remembered) -> Json {
    let mut out = Members::new();
    for (word, value) in [("name", &remembered.name), ("project", &remembered.project)] {
        if let Some(value) = value {
            out.insert(word.to_owned(), value.as_str().into());
        }
    }
    if !remembered.notes.is_empty() {
        out.insert("notes".to_owned(), remembered.notes.clone().into());
    }
    out.into()
}

/// The whole of [`ORIGIN`] for an entry that comes from one client.
pub(super) fn origin(dialect: Dialect, client: &Client, of_client: &Remembered) -> Json {
    let mut out = Members::new();
    if dialect != Dialect::Toolway {
        out.insert("dialect".to_owned(), dialect.name().into());
    }
    let clients = Map::from_iter([(client.id.to_owned(), remember(of_client))]);
    out.insert("clients".to_owned(), clients.into());
    out.into()
}
