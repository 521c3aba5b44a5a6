//! Owns the map of servers in a file: where it stands, its names, and which entries a doubled key spoils. Reads no
//! file.

use std::collections::{BTreeMap, HashMap};

use crate::definition::{Content, Definition, ReadEntry, name_fault};
use crate::dialect::Dialect;
use crate::problem::{Position, Problem};
use crate::tree::{Key, Node, Value};

/// One server of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedEntry {
    pub(crate) name: String,
    /// Where the name stands.
    pub(crate) at: Option<Position>,
    pub(crate) read: ReadEntry,
}

/// The servers of a file, and what is wrong with the file, without its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServerMap {
    pub(crate) entries: Vec<NamedEntry>,
    pub(crate) problems: Vec<Problem>,
}

/// How a file's names and wrapper are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) dialect: Dialect,
    /// Names follow Toolway's own rule.
    pub(crate) strict_names: bool,
    /// The map may stand there without `mcpServers` around it.
    pub(crate) bare: bool,
}

/// Where other clients put what is `mcpServers` here.
const OTHER_KEYS: [&str; 4] = ["servers", "mcp/servers", "mcp", "context_servers"];

/// The servers below the root of a file. An error is one of the whole file.
pub(crate) fn read_file(root: &Node, doubled: &[Problem], rules: Rules) -> Result<ServerMap, Problem> {
    let Some(members) = root.members() else {
        return Err(Problem::error(format!("must hold an object, and holds {}", root.kind())).at(root.at));
    };
    let mut problems = Vec::new();
    let (pointer, map) = if let Some(map) = root.get("mcpServers") {
        ("/mcpServers".to_owned(), map)
    } else if let Some(key) =
        OTHER_KEYS.into_iter().find(|key| root.pointer(&format!("/{key}")).is_some_and(holds_servers))
    {
        let dotted = key.replace('/', ".");
        let map = root.pointer(&format!("/{key}")).unwrap_or(root);
        let problem =
            Problem::warning(format!("the servers stand under {dotted:?}, as another client has them"));
        problems.push(problem.at(map.at).hint("write \"mcpServers\""));
        (format!("/{key}"), map)
    } else if rules.bare && holds_objects(root) && !members.iter().any(means_servers) {
        (String::new(), root)
    } else {
        let near = members.iter().find(|(key, _)| key.name.to_ascii_lowercase().contains("server"));
        let problem = Problem::warning("has no \"mcpServers\", so it names no server");
        problems.push(match near {
            Some((key, _)) => {
                problem.at(key.at).hint(format!("did you mean mcpServers instead of {:?}?", key.name))
            }
            None => problem,
        });
        return Ok(ServerMap { entries: Vec::new(), problems });
    };
    match &map.value {
        Value::Object(_) | Value::Null => {}
        _ => {
            let message = format!("must be an object of servers, and is {}", map.kind());
            return Err(Problem::error(message).at(map.at).field(pointer.trim_start_matches('/')));
        }
    }
    let doubled = Doubled::sort(doubled, &pointer)?;
    problems.extend(doubled.elsewhere.iter().cloned());
    let mut read = read_map(map, rules, &doubled);
    problems.append(&mut read.problems);
    Ok(ServerMap { entries: read.entries, problems })
}

/// Whether every member looks like a server.
fn holds_servers(node: &Node) -> bool {
    let is_server = |value: &Node| ["command", "url"].iter().any(|name| value.get(name).is_some());
    node.members().is_some_and(|members| {
        !members.is_empty()
            && members.iter().all(|(_, value)| value.members().is_some())
            && members.iter().any(|(_, value)| is_server(value))
    })
}

/// Whether a member is `mcpServers`, misspelled.
fn means_servers((key, node): &(Key, Node)) -> bool {
    let name = key.name.to_ascii_lowercase().replace(['_', '-'], "");
    strsim::damerau_levenshtein(&name, "mcpservers") <= 2 && holds_servers(node)
}

fn holds_objects(node: &Node) -> bool {
    node.members().is_some_and(|members| {
        !members.is_empty() && members.iter().all(|(_, value)| value.members().is_some())
    })
}

/// Servers given by a program.
pub(crate) fn read_inline(map: &serde_json::Map<String, serde_json::Value>) -> ServerMap {
    let root = node_of(&serde_json::Value::Object(map.clone()));
    let rules = Rules { dialect: Dialect::Inline, strict_names: true, bare: true };
    read_map(&root, rules, &Doubled::default())
}

/// A tree without places.
pub(crate) fn node_of(value: &serde_json::Value) -> Node {
    node_at(value, NOWHERE)
}

/// A tree that stands in one place as a whole.
pub(crate) fn node_at(value: &serde_json::Value, at: Position) -> Node {
    let value = match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Number(number.clone()),
        serde_json::Value::String(text) => Value::String(text.clone()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(|item| node_at(item, at)).collect()),
        serde_json::Value::Object(members) => {
            let member = |(name, value): (&String, &serde_json::Value)| {
                (Key { name: name.clone(), at }, node_at(value, at))
            };
            Value::Object(members.iter().map(member).collect())
        }
    };
    Node { at, end: 0, value }
}

const NOWHERE: Position = Position { line: 1, column: 1, offset: 0 };

/// Doubled keys, by what they spoil.
#[derive(Debug, Default)]
struct Doubled {
    /// Server to what is wrong.
    by_server: BTreeMap<String, Vec<Problem>>,
    elsewhere: Vec<Problem>,
}

impl Doubled {
    /// An error if the map itself stands twice.
    fn sort(doubled: &[Problem], map: &str) -> Result<Self, Problem> {
        let mut this = Self::default();
        for problem in doubled {
            let pointer = problem.field.clone().unwrap_or_default();
            let inside = pointer.strip_prefix(map).and_then(|rest| rest.strip_prefix('/'));
            if let Some(inside) = inside {
                let (server, rest) = inside.split_once('/').unwrap_or((inside, ""));
                let name = server.replace("~1", "/").replace("~0", "~");
                let problem = Problem {
                    field: (!rest.is_empty()).then(|| rest.replace('/', ".")),
                    server: Some(name.clone()),
                    ..problem.clone()
                };
                this.by_server.entry(name).or_default().push(problem);
            } else if map == pointer || map.starts_with(&format!("{pointer}/")) {
                return Err(problem.clone());
            } else {
                this.elsewhere
                    .push(Problem { severity: crate::problem::Severity::Warning, ..problem.clone() });
            }
        }
        Ok(this)
    }
}

fn read_map(map: &Node, rules: Rules, doubled: &Doubled) -> ServerMap {
    let mut read = ServerMap::default();
    let place = |at: Position| (rules.dialect != Dialect::Inline).then_some(at);
    // Names in lower case, and the names that were first to be written so.
    let mut seen: HashMap<String, Vec<String>> = HashMap::new();
    for (key, value) in map.members().unwrap_or_default() {
        let same = seen.entry(key.name.to_lowercase()).or_default();
        if same.contains(&key.name) {
            // A doubled name: the first stands for both, and is spoiled below.
            continue;
        }
        let other = same.first().cloned();
        same.push(key.name.clone());
        let mut entry = Definition::read(&key.name, key.at, value, rules.dialect);
        let mut faults = doubled.by_server.get(&key.name).cloned().unwrap_or_default();
        let named = |problem: Problem| problem.at(place(key.at)).server(&key.name);
        if let Some(fault) = name_fault(&key.name) {
            if rules.strict_names {
                faults.push(named(Problem::error(fault)));
            } else if key.name.is_empty() {
                faults.push(named(Problem::error(fault).hint("give it a name")));
            }
        }
        if let Some(other) = other {
            let message = format!("its name differs from {other:?} in case only");
            if rules.strict_names {
                faults.push(named(Problem::error(message).hint("give it another name")));
            } else {
                entry.problems.push(named(Problem::warning(message)));
            }
        }
        if !faults.is_empty() {
            entry.content = Content::Invalid;
            faults.append(&mut entry.problems);
            entry.problems = faults;
        }
        read.entries.push(NamedEntry { name: key.name.clone(), at: place(key.at), read: entry });
    }
    read
}
