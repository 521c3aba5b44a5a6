//! Owns how the answers to a search look: JSON in one text, bounded, each tool with its whole input schema.

use serde_json::Value;
use toolway_wire::push_string;

use super::{CALL_TOOL, SEARCH_TOOL, SearchRequest};
use crate::gateway::catalogue::{Catalogue, Definition, Hit};
use crate::gateway::lists::ListKind;
use crate::gateway::state::ServerState;

/// Further tools that are only named.
const NAMED: usize = 20;
/// Characters of a description where many tools are named.
const BRIEF: usize = 100;
/// Characters of an answer, however many a client may take: it is there to choose from.
const MOST: usize = 24_000;
/// Servers that are not up and are named.
const STATES: usize = 20;

/// The result of a search, a whole `CallToolResult`. Its text has at most `max_chars` characters, unless the first
/// tool alone has more. `states` are those of all servers.
pub fn search_result(
    catalogue: &mut Catalogue,
    request: &SearchRequest,
    states: &[(&str, &ServerState)],
    max_chars: usize,
) -> Vec<u8> {
    if let Some(wanted) = &request.server
        && !states.iter().any(|(name, _)| name == wanted)
    {
        let names: Vec<&str> = states.iter().map(|(name, _)| *name).take(STATES).collect();
        return text_result(&format!("there is no server {wanted:?}; there are {}", names.join(", ")), true);
    }
    let (mut out, max_chars) = (Text::default(), max_chars.min(MOST));
    if request.query.trim().is_empty() {
        overview(catalogue, request, max_chars, &mut out);
    } else {
        found(catalogue, request, max_chars, &mut out);
    }
    out.states(request.server.as_deref(), states);
    out.json.push('}');
    text_result(&out.json, false)
}

/// What is said to a call of a tool that does not exist: what may have been meant, and what is not up.
pub fn no_such_tool(catalogue: &mut Catalogue, name: &str, states: &[(&str, &ServerState)]) -> String {
    let owner = states.iter().filter(|(server, _)| name.starts_with(&format!("{server}__")));
    if let Some((server, state)) = owner.max_by_key(|(server, _)| server.len())
        && **state != ServerState::Connected
    {
        return format!("no tool is called {name:?} now: the server {server:?} is {state}");
    }
    let hits = catalogue.find_tools(name, None);
    let near: Vec<String> = hits
        .iter()
        .filter_map(|hit| definition(catalogue, hit))
        .map(|tool| format!("{:?}", tool.exposed))
        .take(3)
        .collect();
    if near.is_empty() {
        return format!("no tool is called {name:?}");
    }
    format!("no tool is called {name:?}; like it are {}", near.join(", "))
}

/// A `CallToolResult` with one text.
fn text_result(text: &str, is_error: bool) -> Vec<u8> {
    let mut out = b"{\"content\":[{\"type\":\"text\",\"text\":".to_vec();
    push_string(text, &mut out);
    out.extend_from_slice(format!("}}],\"isError\":{is_error}}}").as_bytes());
    out
}

fn found(catalogue: &mut Catalogue, request: &SearchRequest, max_chars: usize, out: &mut Text) {
    let hits = catalogue.find_tools(&request.query, request.server.as_deref());
    let mut shown = 0;
    for hit in hits.iter().take(request.limit) {
        let Some(tool) = definition(catalogue, hit) else { continue };
        let json = whole(tool, server_of(catalogue, hit));
        if shown > 0 && out.chars() + json.chars().count() > max_chars {
            break;
        }
        out.item(&json);
        shown += 1;
    }
    out.end_list();
    let rest = hits.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let names =
            rest.iter().take(NAMED).filter_map(|hit| definition(catalogue, hit)).map(|tool| &*tool.exposed);
        let names: Vec<&str> = names.collect();
        out.member("alsoFound", &Value::from(names).to_string());
        if rest.len() > NAMED {
            out.member("notNamed", &(rest.len() - NAMED).to_string());
        }
    }
    let next = if shown == 0 {
        format!("Nothing fits. Try other words, or {SEARCH_TOOL} without a query for an overview.")
    } else {
        format!("Call one with {CALL_TOOL}: {{\"name\": ..., \"arguments\": {{...}}}}.")
    };
    out.member("next", &Value::from(next).to_string());
}

/// Every tool by name, as far as there is room.
fn overview(catalogue: &mut Catalogue, request: &SearchRequest, max_chars: usize, out: &mut Text) {
    let refused = catalogue.unreachable();
    let mut left = 0;
    for (server, one) in catalogue.servers() {
        if request.server.as_deref().is_some_and(|wanted| wanted != one.server()) {
            continue;
        }
        for (at, tool) in one.definitions(ListKind::Tools).iter().enumerate() {
            if refused.contains(&(server, at)) {
                continue;
            }
            let json = brief(tool);
            if left > 0 || out.chars() + json.chars().count() > max_chars {
                left += 1;
                continue;
            }
            out.item(&json);
        }
    }
    out.end_list();
    if left > 0 {
        out.member("notShown", &left.to_string());
    }
    let next =
        format!("Input schemas: {SEARCH_TOOL} with a query or a tool's name, and with a server if need be.");
    out.member("next", &Value::from(next).to_string());
}

fn definition<'a>(catalogue: &'a Catalogue, hit: &Hit) -> Option<&'a Definition> {
    catalogue.get(hit.server)?.definitions(ListKind::Tools).get(hit.at)
}

fn server_of<'a>(catalogue: &'a Catalogue, hit: &Hit) -> &'a str {
    catalogue.get(hit.server).map_or("", |one| one.server())
}

/// Name, server, description and input schema, the last one as the server wrote it.
fn whole(tool: &Definition, server: &str) -> String {
    let mut out = format!("{{\"name\":{},\"server\":{}", Value::from(&*tool.exposed), Value::from(server));
    if let Some(description) = tool.text("description").or_else(|| tool.text("title")) {
        out.push_str(",\"description\":");
        out.push_str(&Value::from(description).to_string());
    }
    if let Some(schema) = tool.member("inputSchema") {
        out.push_str(",\"inputSchema\":");
        out.push_str(&String::from_utf8_lossy(&schema));
    }
    out.push('}');
    out
}

fn brief(tool: &Definition) -> String {
    let description = tool.text("description").or_else(|| tool.text("title")).unwrap_or_default();
    let line = description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let mut short: String = line.chars().take(BRIEF).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    let mut out = format!("{{\"name\":{}", Value::from(&*tool.exposed));
    if !short.is_empty() {
        out.push_str(",\"description\":");
        out.push_str(&Value::from(short).to_string());
    }
    out.push('}');
    out
}

/// The text on its way: an object that begins with a list of tools.
#[derive(Debug)]
struct Text {
    json: String,
    chars: usize,
    empty: bool,
}

impl Default for Text {
    fn default() -> Self {
        let json = "{\"tools\":[".to_owned();
        Self { chars: json.len(), json, empty: true }
    }
}

impl Text {
    fn chars(&self) -> usize {
        self.chars
    }

    fn push(&mut self, text: &str) {
        self.chars += text.chars().count();
        self.json.push_str(text);
    }

    fn item(&mut self, json: &str) {
        // One a line: those who read are people and models.
        self.push(if self.empty { "\n" } else { ",\n" });
        self.push(json);
        self.empty = false;
    }

    fn end_list(&mut self) {
        self.push("]");
    }

    fn member(&mut self, name: &str, json: &str) {
        self.push(&format!(",\n\"{name}\":{json}"));
    }

    /// Servers whose tools may be missing, and why. Those that are switched off are no news.
    fn states(&mut self, server: Option<&str>, states: &[(&str, &ServerState)]) {
        let down: Vec<Value> = states
            .iter()
            .filter(|(name, _)| server.is_none_or(|wanted| wanted == *name))
            .filter(|(_, state)| {
                !matches!(
                    state,
                    ServerState::Connected | ServerState::Disabled { .. } | ServerState::Shadowed { .. }
                )
            })
            .map(|(name, state)| {
                let state: String = state.to_string().chars().take(300).collect();
                serde_json::json!({"server": name, "state": state})
            })
            .collect();
        if !down.is_empty() {
            let more = down.len().saturating_sub(STATES);
            let shown = Value::from(down.into_iter().take(STATES).collect::<Vec<_>>());
            self.member("serversNotUp", &shown.to_string());
            if more > 0 {
                self.member("serversNotNamed", &more.to_string());
            }
        }
    }
}
