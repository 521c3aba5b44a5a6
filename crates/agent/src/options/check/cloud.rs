//! Owns what agents in the cloud may be given, and the form in which their servers travel. It sends nothing.

use serde_json::{Map, Value};
use toolway_secret::Secret;

use super::Faults;
use crate::error::AgentError;
use crate::inline::McpServers;
use crate::options::{AgentOptions, CloudOptions, PromptImage, SubagentServers};

const SERVERS: usize = 50;
const REPOS: usize = 20;
const SUBAGENTS: usize = 20;
const VARIABLES: usize = 50;
const VARIABLE_NAME: usize = 255;
const VARIABLE_VALUE: usize = 4096;
const METADATA: usize = 50;
const NAME: usize = 100;
const IMAGES: usize = 5;
/// Bytes of an image.
const IMAGE: usize = 15 << 20;
/// What variables of the cloud's own begin with.
const OWN_VARIABLES: &str = "CURSOR_";

/// The servers as they travel: `[{"name": ..., ...}]`, each entry as it was given. Values are not masked: this is what is
/// sent.
///
/// # Errors
/// [`AgentError::Configuration`]: too many, or one with a working directory, which the cloud chooses.
pub fn cloud_servers(servers: &McpServers) -> Result<Vec<Value>, AgentError> {
    let mut faults = Faults::default();
    check_servers(servers, &mut faults);
    faults.end()?;
    let entry = |(name, server): (&str, &crate::inline::McpServer)| {
        let mut entry = Map::from_iter([("name".to_owned(), Value::from(name))]);
        entry.extend(server.members().clone());
        Value::Object(entry)
    };
    Ok(servers.iter().map(entry).collect())
}

pub(super) fn check(agent: &AgentOptions, options: &CloudOptions, faults: &mut Faults) {
    check_servers(&agent.mcp_servers, faults);
    check_variables(&options.env_vars, faults);
    if let Some(id) = agent.agent_id.as_ref() {
        if !id.is_cloud() {
            faults.add("agentId", "is that of an agent on a machine: those in the cloud are bc-<uuid>");
        }
        if !options.env_vars.is_empty() {
            faults.add("cloud.envVars", "cannot be given together with an agentId");
        }
    }
    if agent.name.as_ref().is_some_and(|name| name.chars().count() > NAME) {
        faults.add("name", format!("has more than {NAME} characters"));
    }
    let most = [
        ("agents", agent.agents.len(), SUBAGENTS),
        ("cloud.repos", options.repos.len(), REPOS),
        ("cloud.metadata", options.metadata.len(), METADATA),
    ];
    for (field, count, most) in most.into_iter().filter(|(_, count, most)| count > most) {
        faults.add(field, format!("has {count} entries, at most {most} are allowed"));
    }
    if let Some(env) = &options.env {
        if !["cloud", "pool", "machine"].contains(&env.kind.as_str()) {
            faults.add("cloud.env.type", format!("{:?} is none of cloud, pool, machine", env.kind));
        }
        if env.kind == "cloud" && env.name.is_some() && !options.repos.is_empty() {
            faults.add("cloud.repos", "cannot be given with a named environment of the cloud");
        }
    }
    for (name, definition) in &agent.agents {
        let mut servers = definition.mcp_servers.iter().flatten();
        if servers.any(|server| matches!(server, SubagentServers::Inline(_))) {
            let message = "name servers of the agent: the cloud takes no others for a subagent";
            faults.about(name, format!("agents.{name}.mcpServers"), message);
        }
    }
}

pub(super) fn check_servers(servers: &McpServers, faults: &mut Faults) {
    if servers.len() > SERVERS {
        faults.add("mcpServers", format!("has {} servers, at most {SERVERS} are allowed", servers.len()));
    }
    for (name, server) in servers.iter() {
        let members = server.members();
        if members.contains_key("command") && members.contains_key("cwd") {
            let message = format!(
                "server {name:?} cannot include cwd: in the cloud the machine chooses it; leave it out"
            );
            faults.about(name, format!("mcpServers.{name}.cwd"), message);
        }
    }
}

pub(super) fn check_variables(variables: &[(String, Secret)], faults: &mut Faults) {
    if variables.len() > VARIABLES {
        faults.add(
            "cloud.envVars",
            format!("has {} variables, at most {VARIABLES} are allowed", variables.len()),
        );
    }
    for (at, (name, value)) in variables.iter().enumerate() {
        let field = format!("cloud.envVars.{name}");
        if name.is_empty() || name.contains(['=', '\0']) || name.len() > VARIABLE_NAME {
            faults.add(&field, format!("a name has 1 to {VARIABLE_NAME} bytes, and neither '=' nor NUL"));
        }
        if name.starts_with(OWN_VARIABLES) {
            faults.add(&field, format!("names that begin with {OWN_VARIABLES} belong to the cloud"));
        }
        if variables.iter().take(at).any(|(other, _)| other == name) {
            faults.add(&field, "is there twice");
        }
        if value.expose().len() > VARIABLE_VALUE {
            faults.add(&field, format!("has more than {VARIABLE_VALUE} bytes"));
        }
    }
}

pub(super) fn check_images(images: &[PromptImage], faults: &mut Faults) {
    if images.len() > IMAGES {
        faults.add("images", format!("there are {}, at most {IMAGES} are allowed", images.len()));
    }
    for (at, image) in images.iter().enumerate() {
        if image.data.len() / 4 * 3 > IMAGE {
            faults.add(format!("images.{at}"), format!("has more than {} MB", IMAGE >> 20));
        }
    }
}
