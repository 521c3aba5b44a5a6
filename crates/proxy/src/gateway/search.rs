//! Owns the two tools that stand for all others: `toolway_search`, which shows definitions that fit a question, and
//! `toolway_call`, which calls one. Pure; the hub makes the calls.

mod answer;

use bytes::Bytes;
use serde_json::json;
use toolway_wire::find::{self, Step};

pub use answer::{no_such_tool, search_result};

use super::catalogue::{Catalogue, Route};
use super::lists::ListKind;

/// The tool that finds tools.
pub const SEARCH_TOOL: &str = "toolway_search";
/// The tool that calls them.
pub const CALL_TOOL: &str = "toolway_call";
/// Tools that a search shows unless it says otherwise.
const DEFAULT_LIMIT: usize = 8;
const MAX_LIMIT: usize = 50;
/// Characters of server names in the description.
const NAMES: usize = 800;

/// The definition of [`SEARCH_TOOL`], JSON. It names the servers, and changes only when these do, so that clients can
/// cache what they made of it.
pub fn search_definition(servers: &[&str]) -> String {
    let mut names = String::new();
    let mut left = servers.len();
    for server in servers {
        if names.len() + server.len() > NAMES {
            break;
        }
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(server);
        left -= 1;
    }
    let more = if left > 0 { format!(" and {left} more") } else { String::new() };
    let of = if names.is_empty() { String::new() } else { format!(" of these servers: {names}{more}") };
    json!({
        "name": SEARCH_TOOL,
        "title": "Find tools",
        "description": format!(
            "Finds tools{of}. Say in a few words what is to be done; the answer has the names, descriptions and input schemas of the tools that fit. Then call one with {CALL_TOOL}. Without a query: an overview of what there is."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What is to be done, or a tool's name"},
                "server": {"type": "string", "description": "Only tools of this server"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": format!("Tools to show (default {DEFAULT_LIMIT})")}
            },
            "additionalProperties": false
        },
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}
    })
    .to_string()
}

/// The definition of [`CALL_TOOL`], JSON.
pub fn call_definition() -> String {
    json!({
        "name": CALL_TOOL,
        "title": "Call a tool",
        "description": format!("Calls a tool that {SEARCH_TOOL} has shown, and gives its result."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": format!("The tool's name, as {SEARCH_TOOL} shows it")},
                "arguments": {"type": "object", "description": "What the tool's inputSchema asks for"}
            },
            "required": ["name"],
            "additionalProperties": false
        }
    })
    .to_string()
}

/// The arguments of [`SEARCH_TOOL`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchRequest {
    /// What is sought; empty: an overview.
    pub query: String,
    /// Only this server.
    pub server: Option<String>,
    /// The most tools to show.
    pub limit: usize,
}

impl SearchRequest {
    /// From `params.arguments`, raw JSON. The error is for the model that made them.
    pub fn parse(arguments: &[u8]) -> Result<Self, String> {
        known(arguments, &["query", "server", "limit"])?;
        let query = text(arguments, "query")?.unwrap_or_default();
        let server = text(arguments, "server")?.filter(|server| !server.is_empty());
        let limit = match find::find(arguments, &[Step::Key("limit")]).and_then(|at| arguments.get(at)) {
            None | Some(b"null") => DEFAULT_LIMIT,
            Some(raw) => {
                let number =
                    std::str::from_utf8(raw).ok().and_then(|raw| raw.trim_matches('"').parse::<usize>().ok());
                number.ok_or_else(|| format!("limit is a number from 1 to {MAX_LIMIT}"))?.clamp(1, MAX_LIMIT)
            }
        };
        Ok(Self { query, server, limit })
    }
}

/// The arguments of [`CALL_TOOL`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRequest {
    /// The exposed name; with a server also its own name for the tool.
    pub name: String,
    /// Only this server's tool.
    pub server: Option<String>,
    /// The arguments for the tool, a raw JSON object.
    pub arguments: Bytes,
}

impl CallRequest {
    /// From `params.arguments`, raw JSON. The error is for the model that made them.
    pub fn parse(raw: &Bytes) -> Result<Self, String> {
        known(raw, &["name", "server", "arguments"])?;
        let name =
            text(raw, "name")?.ok_or_else(|| format!("name is missing: {SEARCH_TOOL} shows the names"))?;
        let server = text(raw, "server")?;
        let arguments = match find::find(raw, &[Step::Key("arguments")]).map(|at| raw.slice(at)) {
            None => Bytes::from_static(b"{}"),
            Some(value) if value.as_ref() == b"null" => Bytes::from_static(b"{}"),
            Some(value) if value.first() == Some(&b'{') => value,
            Some(value) => {
                decoded(&value).ok_or("arguments is an object, as the tool's inputSchema describes it")?
            }
        };
        Ok(Self { name, server, arguments })
    }

    /// The tool that is meant; `None`: there is none of that name.
    pub fn resolve<'a>(&self, catalogue: &'a mut Catalogue) -> Option<Route<'a>> {
        let exposed = match &self.server {
            None => self.name.clone(),
            Some(server) => {
                let (_, its) = catalogue.servers().find(|(_, one)| one.server() == server)?;
                let mut definitions = its.definitions(ListKind::Tools).iter();
                definitions.find(|one| one.own == self.name || one.exposed == self.name)?.exposed.clone()
            }
        };
        catalogue.route(ListKind::Tools, &exposed)
    }
}

/// Some models write the object as a string.
fn decoded(value: &Bytes) -> Option<Bytes> {
    let text = find::string(value, 0..value.len())?;
    let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
    is_object.then(|| Bytes::from(text.trim().replace(['\n', '\r'], " ")))
}

fn text(arguments: &[u8], name: &str) -> Result<Option<String>, String> {
    let Some(at) = find::find(arguments, &[Step::Key(name)]) else { return Ok(None) };
    match arguments.get(at.clone()) {
        None | Some(b"null") => Ok(None),
        Some(_) => find::string(arguments, at).map(Some).ok_or_else(|| format!("{name} is a string")),
    }
}

/// A slip in a name must not look like a question that finds nothing.
fn known(arguments: &[u8], names: &[&str]) -> Result<(), String> {
    let at = find::find(arguments, &[]).unwrap_or(0..0);
    if !arguments.is_empty() && arguments.get(at.start) != Some(&b'{') {
        return Err("arguments are an object".to_owned());
    }
    for member in find::members(arguments, at) {
        if !names.iter().any(|name| find::is_named(arguments, &member, name)) {
            let name = find::string(arguments, member.name).unwrap_or_default();
            return Err(format!("there is no argument {name:?}, only {}", names.join(", ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
