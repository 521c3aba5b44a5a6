//! Owns what servers a client's file holds: where the entries stand, what each is in Toolway's own form, and which
//! cannot be one. Reads no file but a package's manifest.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::dialect::Dialect;
use crate::problem::{Position, Problem, Severity};
use crate::tree::{Format, Node, pointer, read, read_bytes, read_tolerant};

use super::placeholders::{each_text, translate};
use super::reading::{Members, NO_SERVER, read as read_entry};
use super::shape::{Quirk, Switch};
use super::{Client, ClientFile};

/// A server in a client's file.
#[derive(Debug, Clone)]
pub struct Found {
    /// Whose file it is.
    pub client: &'static Client,
    /// The file.
    pub file: PathBuf,
    /// Where its name stands.
    pub at: Position,
    /// Its name there.
    pub name: String,
    /// The entry in Toolway's own form, texts as they stand.
    pub own: Members,
    /// Whose placeholders the texts hold: Toolway's own where that is the same.
    pub dialect: Dialect,
    /// Members that Toolway has no word for.
    pub unknown: Vec<String>,
    /// Where in the file it stands.
    pub home: Home,
    /// The entry as it stands there, without a name of its own.
    pub(super) theirs: Members,
}

/// Where in a file an entry stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// Where all do.
    File,
    /// Below the project of that key, for one user only (Claude Code).
    Project(String),
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct InFile {
    /// The servers.
    pub found: Vec<Found>,
    /// Descriptions of the inputs that the servers ask for.
    pub inputs: Vec<Json>,
    /// What cannot be used, and what is odd.
    pub problems: Vec<Problem>,
}

/// Where entries may stand in a file that somebody wrote for another client.
const ELSEWHERE: [&[&str]; 7] = [
    &["mcpServers"],
    &["servers"],
    &["mcp", "servers"],
    &["mcp"],
    &["context_servers"],
    &["extensions"],
    &["mcp_servers"],
];

/// Reads a client's file. `project`: the project whose private servers are wanted. An error is one of the whole file.
pub fn find(
    client: &'static Client,
    file: &ClientFile,
    bytes: &[u8],
    project: &Path,
) -> Result<InFile, Vec<Problem>> {
    let named =
        |problems: Vec<Problem>| problems.into_iter().map(|problem| problem.file(&file.path)).collect();
    let format = if file.format == Format::Json { Format::Jsonc } else { file.format };
    let (root, doubled) = read_tolerant(bytes, format).map_err(named)?;
    let mut all = InFile::default();
    if client.strict_json
        && format == Format::Jsonc
        && let Some(problem) = read(bytes, Format::Json).err().and_then(|found| found.into_iter().next())
    {
        let message = format!("{} reads strict JSON: {}", client.title, problem.message);
        all.problems.push(Problem { severity: Severity::Warning, message, hint: None, ..problem });
    }
    let search = Search { client, file, root: &root, doubled: &doubled };
    if let Some((path, servers)) = search.root(&mut all) {
        search.entries(&path, servers, &Home::File, &mut all);
    }
    if client.shape.quirk == Quirk::Projects {
        search.projects(project, &mut all);
    }
    if let Some(inputs) = root.get("inputs").and_then(Node::items) {
        all.inputs = inputs.iter().map(Node::to_json).collect();
    }
    all.problems = named(all.problems);
    Ok(all)
}

/// Where the entries of a client stand in a file, or would stand.
pub(super) fn root_in(client: &Client, root: Option<&Node>) -> Vec<String> {
    let owned = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect();
    let there = root.and_then(|root| client.shape.roots.iter().find(|path| is_root(root, path)));
    owned(there.or(client.shape.roots.first()).copied().unwrap_or(&["mcpServers"]))
}

fn is_root(root: &Node, path: &[&str]) -> bool {
    let Some(node) = root.at_path(path) else { return false };
    // `mcp` of OpenCode and VS Code's settings: either the servers, or an object with `servers` in it.
    let holds = |name: &str| node.get("servers").is_some_and(|inner| inner.get(name).is_some());
    let has_inner = path == ["mcp"]
        && node.get("servers").is_some_and(|inner| inner.members().is_some())
        && !["command", "type", "url"].into_iter().any(holds);
    !has_inner && (node.members().is_some() || node.items().is_some())
}

struct Search<'a> {
    client: &'static Client,
    file: &'a ClientFile,
    root: &'a Node,
    doubled: &'a [Problem],
}

impl<'a> Search<'a> {
    fn root(&self, all: &mut InFile) -> Option<(Vec<String>, &'a Node)> {
        let own = self.client.shape.roots;
        let path = own.iter().chain(&ELSEWHERE).find(|path| is_root(self.root, path))?;
        let node = self.root.at_path(path)?;
        let is_portable = self.file.path.file_name().is_some_and(|name| name == ".mcp.json");
        let is_usual = own.first() == Some(path) || (own.contains(path) && *path != ["mcpServers"]);
        if !is_usual && !is_portable {
            let usual = own.first().map(|path| path.join(".")).unwrap_or_default();
            let message = format!(
                "the servers stand under {:?}, where {} has {usual:?}",
                path.join("."),
                self.client.title
            );
            all.problems.push(Problem::warning(message).at(node.at));
        }
        Some((path.iter().map(|name| (*name).to_owned()).collect(), node))
    }

    fn entries(&self, path: &[String], servers: &Node, home: &Home, all: &mut InFile) {
        let prefix = self.package(all);
        if let Some(items) = servers.items() {
            for item in items {
                match item.get("name").and_then(Node::as_str) {
                    Some(name) => self.entry(name, item, None, home, all),
                    None => all.problems.push(Problem::error("a server in the list has no name").at(item.at)),
                }
            }
        }
        for (key, node) in servers.members().unwrap_or_default() {
            if let Some(problem) = self.spoiled(path, &key.name) {
                let told = all.problems.iter().any(|other| other.at == problem.at);
                if !told {
                    all.problems.push(Problem { field: None, ..problem.clone() }.server(&key.name));
                }
                continue;
            }
            let name = prefix.as_ref().map_or(key.name.clone(), |prefix| format!("{prefix}__{}", key.name));
            self.entry(&name, node, Some(key.at), home, all);
        }
    }

    /// What is wrong with a server by a doubled key.
    fn spoiled(&self, path: &[String], name: &str) -> Option<&'a Problem> {
        let place = format!("{}{}", pointer(path), pointer(&[name]));
        self.doubled.iter().find(|problem| {
            let field = problem.field.as_deref().unwrap_or_default();
            field == place || field.starts_with(&format!("{place}/"))
        })
    }

    /// The name of the package that the file belongs to.
    fn package(&self, all: &mut InFile) -> Option<String> {
        if self.client.shape.quirk != Quirk::Package {
            return None;
        }
        let manifest = self.file.path.parent()?.join("plugin.json");
        let name = read_bytes(&manifest)
            .map_err(|problem| vec![problem])
            .and_then(|bytes| read(&bytes, Format::Jsonc))
            .map(|root| root.get("name").and_then(Node::as_str).map(str::to_owned));
        if !matches!(name, Ok(Some(_))) {
            let problem = Problem::warning("there is no plugin.json beside it that names the package");
            all.problems.push(problem.at(self.root.at));
        }
        name.ok().flatten()
    }

    /// `key`: where its name stands; `None` for an item of a list, which has its name in itself.
    fn entry(&self, name: &str, node: &Node, key: Option<Position>, home: &Home, all: &mut InFile) {
        let at = key.unwrap_or(node.at);
        let problem = |message: String| Problem::error(message).at(at).server(name);
        let Json::Object(mut theirs) = node.to_json() else {
            all.problems.push(problem(format!("must be an object, and is {}", node.kind())));
            return;
        };
        if key.is_none() {
            theirs.shift_remove("name");
        }
        let reading = match read_entry(name, &theirs, self.client.shape) {
            Ok(reading) => reading,
            Err(reason) => {
                let is_fault = !reason.starts_with(NO_SERVER);
                let problem = problem(reason);
                let severity = if is_fault { Severity::Error } else { Severity::Warning };
                all.problems.push(Problem { severity, ..problem });
                return;
            }
        };
        let mut own = reading.own;
        // The client itself hears only the lists.
        if self.client.shape.switch == Switch::Lists && self.is_listed_off(name) {
            own.insert("enabled".to_owned(), false.into());
        }
        let (own, dialect) = settle(own, self.client);
        all.found.push(Found {
            client: self.client,
            file: self.file.path.clone(),
            at,
            name: name.to_owned(),
            own,
            dialect,
            unknown: reading.unknown,
            home: home.clone(),
            theirs,
        });
    }

    fn is_listed_off(&self, name: &str) -> bool {
        let lists = |list: &str| {
            let items = self.root.at_path(&["mcp", list]).and_then(Node::items)?;
            Some(items.iter().any(|item| item.as_str() == Some(name)))
        };
        lists("excluded") == Some(true) || lists("allowed") == Some(false)
    }

    fn projects(&self, project: &Path, all: &mut InFile) {
        let mut others = 0;
        for (key, node) in self.root.get("projects").and_then(Node::members).unwrap_or_default() {
            let Some(servers) = node.get("mcpServers") else { continue };
            if is_path(&key.name, project) {
                let path = ["projects".to_owned(), key.name.clone(), "mcpServers".to_owned()];
                self.entries(&path, servers, &Home::Project(key.name.clone()), all);
            } else {
                others += servers.members().unwrap_or_default().len();
            }
        }
        if others > 0 {
            let message = format!("{others} servers of other projects are left alone");
            all.problems.push(Problem::warning(message).hint("run this in those projects"));
        }
    }
}

/// Whether a key names that directory. Windows has several spellings of one path.
fn is_path(key: &str, project: &Path) -> bool {
    let plain = |path: &str| {
        let path = path.replace('\\', "/");
        let is_drive = path.get(1..2) == Some(":");
        let path = if is_drive { path.to_lowercase() } else { path };
        path.trim_end_matches('/').to_owned()
    };
    let real = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_path_buf());
    [project, &real].into_iter().any(|path| plain(&path.to_string_lossy()) == plain(key))
}

/// Texts that mean the same in Toolway's own dialect are in it; others stay as they are, in the client's.
fn settle(own: Members, client: &Client) -> (Members, Dialect) {
    let from = client.dialect;
    let mut translated = own.clone();
    let mut is_same = true;
    let done: Result<(), String> = each_text(&mut translated, &mut |name, field, text| {
        // Headers of Codex already are.
        if client.shape.quirk == Quirk::Codex && name.starts_with("headers") {
            return Ok(());
        }
        let new = translate(text, from, Dialect::Toolway, field)?;
        // It must find its way back, too.
        translate(&new, Dialect::Toolway, from, field)?;
        is_same &= new == *text;
        *text = new;
        Ok(())
    });
    if done.is_ok() && (is_same || from.syntaxes().is_empty()) {
        (translated, Dialect::Toolway)
    } else {
        (own, from)
    }
}
