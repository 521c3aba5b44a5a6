//! Owns what is wrong with options, all of it at once: at making, resuming and sending. It starts nothing and opens no
//! file.

mod cloud;
mod servers;

pub use cloud::cloud_servers;

use std::path::Path;

use super::{
    AgentDefinition, AgentOptions, EngineChoice, Limits, LocalOptions, ModelChoice, Place, Prompt,
    PromptImage, SendOptions, SendPlace, ServerChange, SubagentServers, TOOL_NAMES, tools,
};
use crate::custom_tools::{CUSTOM_SERVER, CustomTool};
use crate::error::{AgentError, Fault};
use crate::inline::{DirectServer, McpServers};

/// The least limit for results, in characters.
const LEAST_RESULT: u64 = 1000;
/// Image types that models take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Faults so far.
#[derive(Debug, Default)]
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.0.push(Fault { subject: None, field: field.into(), message: message.into() });
    }

    fn about(&mut self, subject: &str, field: impl Into<String>, message: impl Into<String>) {
        let subject = Some(subject.to_owned());
        self.0.push(Fault { subject, field: field.into(), message: message.into() });
    }

    fn end(self) -> Result<(), AgentError> {
        if self.0.is_empty() { Ok(()) } else { Err(AgentError::Configuration(self.0)) }
    }
}

impl AgentOptions {
    /// Looks at everything that can be seen before an agent exists.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all faults.
    pub fn check(&self) -> Result<(), AgentError> {
        let mut faults = Faults::default();
        let machine = self.work_machine();
        servers::check("mcpServers", &self.mcp_servers, &machine, &mut faults);
        if let Some(model) = &self.model {
            check_model(model, &mut faults);
        }
        check_limits(&self.limits, &mut faults);
        if self.api_key.as_ref().is_some_and(|key| key.expose().chars().any(char::is_whitespace)) {
            faults.add("apiKey", "holds a blank or a line break");
        }
        match &self.place {
            Place::Local(local) => {
                self.check_local(local, machine.cwd(), &mut faults);
                for (name, definition) in &self.agents {
                    check_agent(name, definition, &mut faults);
                    self.check_agent_servers(local, name, definition, &mut faults);
                }
            }
            Place::Cloud(options) => {
                for (name, definition) in &self.agents {
                    check_agent(name, definition, &mut faults);
                }
                cloud::check(self, options, &mut faults);
            }
        }
        faults.end()
    }

    fn check_local(&self, local: &LocalOptions, cwd: &Path, faults: &mut Faults) {
        tools::check(local, &mut faults.0);
        if self.agent_id.as_ref().is_some_and(crate::id::AgentId::is_cloud) {
            faults.add("agentId", "is that of an agent in the cloud, and this one runs here");
        }
        if local.system_prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            faults.add("systemPrompt", "is empty: leave it out to have Toolway's own");
        }
        if !cwd.is_dir() {
            faults.add("local.cwd", format!("there is no folder {}", cwd.display()));
        }
        for (at, dir) in local.dirs.iter().enumerate() {
            if !cwd.join(dir).is_dir() {
                faults.add(format!("local.dirs.{at}"), format!("there is no folder {}", dir.display()));
            }
        }
        check_custom("local.customTools", &local.custom_tools, faults);
        check_direct("local.directServers", &local.direct_servers, &self.mcp_servers, faults);
        let guard = &local.guard;
        if guard.max_response_chars < LEAST_RESULT {
            faults.add("local.guard.maxResponseChars", format!("is less than {LEAST_RESULT}"));
        } else if guard.preview_chars as u64 >= guard.max_response_chars {
            faults.add("local.guard.previewChars", "is not less than maxResponseChars");
        }
        let timeouts = &local.timeouts;
        for (name, value) in [
            ("startupMs", timeouts.startup),
            ("listMs", timeouts.list),
            ("callMs", timeouts.call),
            ("callMaxMs", timeouts.call_max),
        ] {
            if value.is_some_and(|value| value.is_zero()) {
                faults.add(format!("local.timeouts.{name}"), "is 0: nothing could be done in that time");
            }
        }
        if let EngineChoice::Acp(acp) = &local.engine {
            match (&acp.preset, &acp.command) {
                (Some(_), Some(_)) => faults.add("acp", "names a preset and a command: name one of them"),
                (None, None) => faults.add("acp", "names neither a preset nor a command"),
                (None, Some(command)) if command.trim().is_empty() => faults.add("acp.command", "is empty"),
                _ => {}
            }
        }
    }

    /// Names that can be seen to be wrong: with files, more servers may come.
    fn check_agent_servers(
        &self,
        local: &LocalOptions,
        name: &str,
        definition: &AgentDefinition,
        faults: &mut Faults,
    ) {
        let mut known: Vec<&str> = self.mcp_servers.names().collect();
        known.extend(local.direct_servers.iter().map(|server| server.name.as_str()));
        if !local.custom_tools.is_empty() {
            known.push(CUSTOM_SERVER);
        }
        for (at, server) in definition.mcp_servers.iter().flatten().enumerate() {
            let field = format!("agents.{name}.mcpServers.{at}");
            match server {
                SubagentServers::Inline(own) => {
                    servers::check(&field, own, &self.work_machine(), faults);
                }
                SubagentServers::Named(server) => {
                    if local.setting_sources.is_empty() && !known.contains(&server.as_str()) {
                        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                        faults.about(name, field, format!("there is no server {server:?}; there is {known}"));
                    }
                }
            }
        }
    }
}

impl SendOptions {
    /// Looks at everything that can be seen before the prompt goes anywhere.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all faults.
    pub fn check(&self, agent: &AgentOptions, prompt: &Prompt) -> Result<(), AgentError> {
        let mut faults = Faults::default();
        let replaced = match &self.mcp_servers {
            ServerChange::Replace(servers) => Some(servers),
            ServerChange::Inherit | ServerChange::None => None,
        };
        if let Some(servers) = replaced {
            servers::check("mcpServers", servers, &agent.work_machine(), &mut faults);
        }
        if let Some(model) = &self.model {
            check_model(model, &mut faults);
        }
        if let Some(limits) = &self.limits {
            check_limits(limits, &mut faults);
        }
        check_prompt(prompt, &mut faults);
        match (&agent.place, &self.place) {
            (Place::Local(_), SendPlace::Cloud(_)) => {
                faults.add("cloud", "is for agents in the cloud, and this one runs here");
            }
            (Place::Cloud(_), SendPlace::Local(_)) => {
                faults.add("local", "is for agents on this machine, and this one runs in the cloud");
            }
            (Place::Local(_), SendPlace::Local(local)) => {
                check_custom(
                    "local.customTools",
                    local.custom_tools.as_deref().unwrap_or_default(),
                    &mut faults,
                );
                let direct = local.direct_servers.as_deref().unwrap_or_default();
                let servers = replaced.unwrap_or(&agent.mcp_servers);
                check_direct("local.directServers", direct, servers, &mut faults);
            }
            (Place::Cloud(_), SendPlace::Cloud(send)) => cloud::check_variables(&send.env_vars, &mut faults),
            (_, SendPlace::Any) => {}
        }
        if let Place::Cloud(_) = &agent.place {
            cloud::check_servers(replaced.unwrap_or(&agent.mcp_servers), &mut faults);
            cloud::check_images(&prompt.images, &mut faults);
        }
        faults.end()
    }
}

fn check_model(model: &ModelChoice, faults: &mut Faults) {
    if model.id.trim().is_empty() {
        faults.add("model.id", "is empty");
    }
}

fn check_limits(limits: &Limits, faults: &mut Faults) {
    if limits.turns == Some(0) {
        faults.add("limits.turns", "is 0: the model would never be asked");
    }
    if limits.tokens == Some(0) {
        faults.add("limits.tokens", "is 0: the model would never be asked");
    }
    if limits.time.is_some_and(|time| time.is_zero()) {
        faults.add("limits.timeMs", "is 0: the model would never be asked");
    }
    if limits.cost.is_some_and(|cost| !cost.is_finite() || cost <= 0.0) {
        faults.add("limits.costUsd", "is no sum of money above 0");
    }
}

fn check_prompt(prompt: &Prompt, faults: &mut Faults) {
    if prompt.text.trim().is_empty() && prompt.images.is_empty() {
        faults.add("prompt", "is empty");
    }
    for (at, PromptImage { mime_type, data }) in prompt.images.iter().enumerate() {
        if !IMAGES.contains(&mime_type.as_str()) {
            let message = format!("{mime_type:?} is none of {}", IMAGES.join(", "));
            faults.add(format!("images.{at}.mimeType"), message);
        }
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        if data.is_empty() || !data.bytes().all(is_base64) {
            faults.add(format!("images.{at}.data"), "is no base64: an address is not followed from here");
        }
    }
}

fn check_agent(name: &str, definition: &AgentDefinition, faults: &mut Faults) {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let field = |member: &str| format!("agents.{name}{member}");
    if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
        let message = "a name has 1 to 64 letters, digits, '.', '_' and '-'";
        faults.about(name, field(""), message);
    }
    if TOOL_NAMES.iter().any(|tool| tool.eq_ignore_ascii_case(name)) {
        faults.about(name, field(""), "is the name of a tool");
    }
    if definition.description.trim().is_empty() {
        faults.about(name, field(".description"), "is empty: the model would not know when to use it");
    }
    if definition.prompt.trim().is_empty() {
        faults.about(name, field(".prompt"), "is empty");
    }
    if definition.model.as_ref().is_some_and(|model| model.trim().is_empty()) {
        faults.about(name, field(".model"), "is empty: leave it out to have its parent's");
    }
}

fn check_custom(field: &str, tools: &[CustomTool], faults: &mut Faults) {
    for (at, tool) in tools.iter().enumerate() {
        if tool.name.is_empty() {
            faults.add(format!("{field}.{at}.name"), "is empty");
        }
        if tools.iter().take(at).any(|other| other.name == tool.name) {
            faults.about(&tool.name, format!("{field}.{at}.name"), format!("{:?} is there twice", tool.name));
        }
        let is_object = |schema: &serde_json::Map<String, serde_json::Value>| {
            schema.get("type").is_none_or(|kind| kind == "object")
        };
        if tool.input_schema.as_ref().is_some_and(|schema| !is_object(schema)) {
            let message = "must describe an object: arguments have names";
            faults.about(&tool.name, format!("{field}.{at}.inputSchema"), message);
        }
    }
}

fn check_direct(field: &str, direct: &[DirectServer], servers: &McpServers, faults: &mut Faults) {
    for (at, server) in direct.iter().enumerate() {
        let field = format!("{field}.{at}.name");
        if server.name.is_empty() || server.name.eq_ignore_ascii_case(CUSTOM_SERVER) {
            faults.add(field, "must be a name of its own");
            continue;
        }
        let same = |name: &str| name.eq_ignore_ascii_case(&server.name);
        if direct.iter().take(at).any(|other| same(&other.name)) || servers.names().any(same) {
            faults.about(&server.name, field, "another server has this name");
        }
    }
}
