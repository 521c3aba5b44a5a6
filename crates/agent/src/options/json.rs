//! Owns options as JSON: names as other programs write them, and what to do about a member that stands where it means
//! nothing. It starts nothing.

mod cloud;
mod local;
mod reader;

use std::time::Duration;

use reader::{Object, Reader};
use serde_json::Value as Json;
use toolway_config::{Node, Value};
use toolway_secret::Secret;

use super::{
    AgentDefinition, AgentOptions, Limits, LocalOptions, LocalSend, Machine, Mode, ModelChoice, Place,
    Prompt, PromptImage, SendOptions, SendPlace, ServerChange, SubagentServers,
};
use crate::error::AgentError;
use crate::id::AgentId;
use crate::inline::{McpServer, McpServers};

/// Members of `local`, for who writes them beside it.
const OF_LOCAL: [&str; 18] = [
    "cwd",
    "dirs",
    "settingSources",
    "trust",
    "sandboxOptions",
    "autoReview",
    "permissions",
    "enableAgentRetries",
    "store",
    "guard",
    "timeouts",
    "requireServers",
    "serverPatienceMs",
    "searchAbove",
    "planReadsOnly",
    "customTools",
    "directServers",
    "force",
];
/// Members of `cloud`, for who writes them beside it.
const OF_CLOUD: [&str; 8] = [
    "env",
    "repos",
    "workOnCurrentBranch",
    "autoCreatePR",
    "openAsCursorGithubApp",
    "skipReviewerRequest",
    "envVars",
    "metadata",
];

impl AgentOptions {
    /// Reads options from JSON, and checks them as [`AgentOptions::check`] does. With `cloud` the agent runs there.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all faults, each with its place in the text.
    pub fn from_json(text: &str, machine: Machine) -> Result<Self, AgentError> {
        let (options, faults) = Reader::read(text, |reader, root| {
            let Some(mut object) = reader.object(root, "") else { return Self::local(machine) };
            let options = read_agent(&mut object, machine);
            object.end(&|name| hint(name, "an agent"));
            options
        });
        match options {
            Some(options) if faults.is_empty() => options.check().map(|()| options),
            Some(options) => Err(joined(faults, options.check())),
            None => Err(AgentError::Configuration(faults)),
        }
    }
}

impl SendOptions {
    /// Reads what goes with a prompt from JSON. See [`SendOptions::check`].
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all faults, each with its place in the text.
    pub fn from_json(text: &str) -> Result<Self, AgentError> {
        let (options, faults) = Reader::read(text, |reader, root| {
            let Some(mut object) = reader.object(root, "") else { return Self::default() };
            let options = read_send(&mut object);
            object.end(&|name| hint(name, "a prompt"));
            options
        });
        options.filter(|_| faults.is_empty()).ok_or(AgentError::Configuration(faults))
    }
}

impl Prompt {
    /// Reads a prompt from JSON: a text, or `{"text": ..., "images": [{"data": ..., "mimeType": ...}]}`.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all faults, each with its place in the text.
    pub fn from_json(text: &str) -> Result<Self, AgentError> {
        let (prompt, faults) = Reader::read(text, |reader, root| {
            if let Some(text) = root.as_str() {
                return Self { text: text.to_owned(), images: Vec::new() };
            }
            let Some(mut object) = reader.object(root, "") else { return Self::default() };
            let prompt = Self {
                text: object.text("text").unwrap_or_default(),
                images: object.list("images", read_image),
            };
            object.end(&|_| None);
            prompt
        });
        prompt.filter(|_| faults.is_empty()).ok_or(AgentError::Configuration(faults))
    }
}

/// Faults of the text, and those of what it means.
fn joined(mut faults: Vec<crate::error::Fault>, checked: Result<(), AgentError>) -> AgentError {
    if let Err(AgentError::Configuration(more)) = checked {
        let new = more.into_iter().filter(|one| !faults.iter().any(|other| other.field == one.field));
        let new: Vec<_> = new.collect();
        faults.extend(new);
    }
    AgentError::Configuration(faults)
}

/// What to do about a member that is not known.
fn hint(name: &str, of: &str) -> Option<String> {
    if OF_LOCAL.contains(&name) {
        return Some(format!("it means nothing beside the others of {of}: write local.{name}"));
    }
    if OF_CLOUD.contains(&name) {
        return Some(format!("it means nothing beside the others of {of}: write cloud.{name}"));
    }
    match name {
        "mcp_servers" | "servers" => Some("did you mean mcpServers?".to_owned()),
        "sandbox" => Some("write local.sandboxOptions".to_owned()),
        "onStep" | "onDelta" => Some("a function is given in a program, not in JSON".to_owned()),
        _ => None,
    }
}

fn read_agent(object: &mut Object<'_>, machine: Machine) -> AgentOptions {
    let mut options = AgentOptions::local(machine);
    options.agent_id = object.text("agentId").and_then(|text| match text.parse::<AgentId>() {
        Ok(id) => Some(id),
        Err(fault) => {
            object.fault("agentId", fault.to_string());
            None
        }
    });
    options.name = object.text("name");
    options.api_key = object.text("apiKey").map(Secret::in_use);
    options.model = object.member("model").and_then(|(reader, node, at)| read_model(reader, node, &at));
    options.mode = read_mode(object).unwrap_or_default();
    options.mcp_servers = object
        .member("mcpServers")
        .and_then(|(reader, node, at)| read_servers(reader, node, &at))
        .unwrap_or_default();
    if let Some((reader, node, at)) = object.member("agents")
        && let Some(mut agents) = reader.object(node, &at)
    {
        for name in agents.names() {
            if let Some((reader, node, at)) = agents.member(&name)
                && let Some(definition) = read_definition(reader, node, &at)
            {
                options.agents.insert(name, definition);
            }
        }
    }
    options.limits = read_limits(object).unwrap_or_default();
    options.idempotency_key = object.text("idempotencyKey");
    let mut local = LocalOptions {
        tools: object.texts("tools"),
        disallowed_tools: object.texts("disallowedTools").unwrap_or_default(),
        system_prompt: object.text("systemPrompt"),
        ..LocalOptions::default()
    };
    local::read_engine(object, &mut local);
    let in_cloud = object.has("cloud");
    if let Some((reader, node, at)) = object.member("local") {
        local::read(reader, node, &at, &mut local, in_cloud);
    }
    if in_cloud {
        for name in ["tools", "disallowedTools", "systemPrompt", "acp"] {
            if object.has(name) {
                object.fault(name, "is for agents on this machine, and this one runs in the cloud");
            }
        }
        let cloud = object.member("cloud").map(|(reader, node, at)| cloud::read(reader, node, &at));
        options.place = Place::Cloud(Box::new(cloud.unwrap_or_default()));
    } else {
        options.place = Place::Local(Box::new(local));
    }
    options
}

fn read_send(object: &mut Object<'_>) -> SendOptions {
    let mut options = SendOptions {
        model: object.member("model").and_then(|(reader, node, at)| read_model(reader, node, &at)),
        mode: read_mode(object),
        limits: read_limits(object),
        idempotency_key: object.text("idempotencyKey"),
        ..SendOptions::default()
    };
    if let Some((reader, node, at)) = object.member("mcpServers") {
        options.mcp_servers = match node.as_str() {
            Some("none") => ServerChange::None,
            Some("inherit") => ServerChange::Inherit,
            Some(_) => {
                reader.fault(&at, "must be an object of servers, \"none\" or \"inherit\"");
                ServerChange::Inherit
            }
            None => read_servers(reader, node, &at).map(ServerChange::Replace).unwrap_or_default(),
        };
    }
    let local = object.member("local").map(|(reader, node, at)| {
        let mut local = LocalSend::default();
        if let Some(mut members) = reader.object(node, &at) {
            local.force = members.flag("force").unwrap_or(false);
            members.end(&local::hint);
        }
        local
    });
    let cloud = object.member("cloud").map(|(reader, node, at)| cloud::read_send(reader, node, &at));
    match (local, cloud) {
        (Some(_), Some(_)) => object.fault("cloud", "stands beside local: an agent runs in one of them"),
        (Some(local), None) => options.place = SendPlace::Local(local),
        (None, Some(cloud)) => options.place = SendPlace::Cloud(cloud),
        (None, None) => {}
    }
    options
}

fn read_mode(object: &mut Object<'_>) -> Option<Mode> {
    object.word("mode", &[("agent", Mode::Agent), ("plan", Mode::Plan)])
}

/// `{"id": ..., "params": ...}`, or the id alone. Parameters are an object, or a list of `{"id": ..., "value": ...}`.
fn read_model(reader: &mut Reader, node: &Node, at: &str) -> Option<ModelChoice> {
    if let Some(id) = node.as_str() {
        return Some(ModelChoice { id: id.to_owned(), params: Vec::new() });
    }
    let mut object = reader.object(node, at)?;
    let id = object.text("id");
    if id.is_none() {
        object.fault("id", "is missing");
    }
    let params = match object.member("params") {
        None => Vec::new(),
        Some((_, node, _)) if node.members().is_some() => {
            let members = node.members().unwrap_or_default().iter();
            members.map(|(key, value)| (key.name.clone(), value.to_json())).collect()
        }
        Some((reader, node, at)) => reader.list(node, &at, |reader, node, at| {
            let mut object = reader.object(node, at)?;
            let name = object.text("id").or_else(|| object.text("name"));
            let value = object.member("value").map(|(_, node, _)| node.to_json());
            if name.is_none() || value.is_none() {
                object.fault("", "is an object with id and value");
            }
            object.end(&|_| None);
            Some((name?, value?))
        }),
    };
    object.end(&|_| None);
    Some(ModelChoice { id: id?, params })
}

fn read_limits(object: &mut Object<'_>) -> Option<Limits> {
    let (reader, node, at) = object.member("limits")?;
    let mut object = reader.object(node, &at)?;
    let limits = Limits {
        turns: object.number("turns").map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
        tokens: object.number("tokens"),
        time: object.number("timeMs").map(Duration::from_millis),
        cost: object.member("costUsd").and_then(|(reader, node, at)| {
            let cost = node.to_json().as_f64();
            if cost.is_none() {
                reader.fault(&at, "must be a number of US dollars");
            }
            cost
        }),
    };
    object.end(&|_| None);
    Some(limits)
}

/// The map of servers, each as it stands: their rules are looked at when all is read.
fn read_servers(reader: &mut Reader, node: &Node, at: &str) -> Option<McpServers> {
    if let Value::Array(_) = node.value {
        reader.fault(at, "must be an object of servers by name, and is an array");
        return None;
    }
    let mut object = reader.object(node, at)?;
    let mut servers = McpServers::new();
    for name in object.names() {
        let Some((reader, node, at)) = object.member(&name) else { continue };
        match node.to_json() {
            Json::Object(members) => servers.insert(name, McpServer::from_json(members)),
            _ => reader.fault(&at, format!("must be an object, and is {}", node.kind())),
        }
    }
    Some(servers)
}

fn read_definition(reader: &mut Reader, node: &Node, at: &str) -> Option<AgentDefinition> {
    let mut object = reader.object(node, at)?;
    let mut definition = AgentDefinition {
        description: object.text("description").unwrap_or_default(),
        prompt: object.text("prompt").unwrap_or_default(),
        model: object.text("model").filter(|model| model != "inherit"),
        mcp_servers: None,
    };
    if let Some((reader, node, at)) = object.member("mcpServers") {
        let servers = reader.list(node, &at, |reader, node, at| match node.as_str() {
            Some(name) => Some(SubagentServers::Named(name.to_owned())),
            None => read_servers(reader, node, at).map(SubagentServers::Inline),
        });
        definition.mcp_servers = Some(servers);
    }
    object.end(&|_| None);
    Some(definition)
}

fn read_image(reader: &mut Reader, node: &Node, at: &str) -> Option<PromptImage> {
    let mut object = reader.object(node, at)?;
    if object.member("url").is_some() {
        object.fault("url", "an address is not followed from here: give data, in base64, and mimeType");
    }
    let image = PromptImage {
        mime_type: object.text("mimeType").unwrap_or_default(),
        data: object.text("data").unwrap_or_default(),
    };
    object.end(&|_| None);
    Some(image)
}

#[cfg(test)]
mod tests;
