//! Owns what the bytes of a file say: in Toolway's own way, or in that of another client. Reads no file.

use crate::clients::{Client, ClientFile, Scope, find};
use crate::definition::Definition;
use crate::locate::Candidate;
use crate::policy::Policy;
use crate::problem::Problem;
use crate::servers::{NamedEntry, Rules, ServerMap, node_at, read_file};
use crate::source::Source;
use crate::tree::{Format, read_tolerant};

/// What a file says.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    pub(super) map: ServerMap,
    pub(super) policy: Option<Policy>,
}

/// What the bytes of a file say. An error is one of the whole file.
pub(super) fn understand(bytes: &[u8], candidate: &Candidate) -> Result<Content, Problem> {
    let Candidate { path, source, dialect, own, client } = candidate;
    if let Some(client) = client.and_then(Client::by_id) {
        return foreign(bytes, client, candidate);
    }
    let format = Format::of_path(path).unwrap_or(Format::Jsonc);
    let first = |problems: Vec<Problem>| {
        problems.into_iter().next().unwrap_or_else(|| Problem::error("cannot be read"))
    };
    let (root, doubled) = read_tolerant(bytes, format).map_err(|problems| first(problems).file(path))?;
    let is_managed = *source == Source::Mdm;
    if is_managed {
        // What stands twice, or is spelled wrong, might have forbidden something.
        Policy::is_whole(&root, &doubled).map_err(|problem| problem.file(path))?;
    }
    let policy =
        root.get("policy").filter(|_| is_managed).map(|node| Policy::read(node, path)).transpose()?;
    let only_policy = is_managed && root.get("mcpServers").is_none() && root.members().is_some();
    if only_policy {
        return Ok(Content { map: ServerMap::default(), policy });
    }
    let rules = Rules { dialect: *dialect, strict_names: *own, bare: *source == Source::Config };
    let map = read_file(&root, &doubled, rules).map_err(|problem| problem.file(path))?;
    Ok(Content { map, policy })
}

/// The file of another client, in Toolway's own form.
fn foreign(bytes: &[u8], client: &'static Client, candidate: &Candidate) -> Result<Content, Problem> {
    let path = &candidate.path;
    let format = Format::of_path(path).unwrap_or(Format::Jsonc);
    let file = ClientFile { path: path.clone(), scope: Scope::User, format, is_written: false };
    let first = |problems: Vec<Problem>| {
        problems.into_iter().next().unwrap_or_else(|| Problem::error("cannot be read"))
    };
    let project = path.parent().unwrap_or(path);
    let mut read = find(client, &file, bytes, project).map_err(first)?;
    let mut entries = Vec::new();
    for found in read.found {
        let node = node_at(&serde_json::Value::Object(found.own), found.at);
        let mut entry = Definition::read(&found.name, found.at, &node, found.dialect);
        let mut own = Vec::new();
        // What the client's own reading found is told with the entry it is about.
        read.problems.retain(|problem| {
            let is_own = problem.server.as_ref() == Some(&found.name);
            own.extend(is_own.then(|| problem.clone()));
            !is_own
        });
        entry.problems.retain(|problem| !own.iter().any(|told| told.field == problem.field));
        entry.problems.extend(own);
        entries.push(NamedEntry { name: found.name, at: Some(found.at), read: entry });
    }
    let map = ServerMap { entries, problems: read.problems };
    Ok(Content { map, policy: None })
}
