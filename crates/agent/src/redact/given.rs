//! Owns which values of an agent's options no text may repeat: headers, variables, addresses and keys of its servers.

use serde_json::{Map, Value};
use toolway_secret::{Secret, secret_name, secret_value};

use crate::acp::{AcpPreset, keys};
use crate::inline::{DirectServer, McpServers};
use crate::options::{AgentOptions, EngineChoice, SendOptions, ServerChange, SubagentServers};

/// Words of ours that are shorter may stand in any text.
const WORDS: usize = 24;

/// What texts may not repeat.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// Values that open something: in no text.
    pub(crate) secrets: Vec<Secret>,
    /// Addresses as a whole: in no text that is kept.
    pub(crate) addresses: Vec<Secret>,
    /// Their hosts: in no kept report of a server.
    pub(crate) hosts: Vec<Secret>,
}

/// The values of an agent and of one prompt.
pub(crate) fn given(options: &AgentOptions, send: Option<&SendOptions>) -> Given {
    let mut found = Given::default();
    let all = &mut found;
    all.secrets.extend(options.api_key.clone().map(Secret::made_known));
    of_servers(&options.mcp_servers, all);
    for servers in options.agents.values().flat_map(|agent| agent.mcp_servers.iter().flatten()) {
        if let SubagentServers::Inline(servers) = servers {
            of_servers(servers, all);
        }
    }
    if let Some(local) = options.local_options() {
        of_direct(&local.direct_servers, &mut all.secrets);
        if let EngineChoice::Acp(acp) = &local.engine {
            all.secrets.extend(
                acp.env
                    .iter()
                    .filter(|(name, value)| is_told(name, value.expose()))
                    .map(|(_, value)| value.clone().made_known()),
            );
            all.secrets.extend(acp.env.values().flat_map(|value| keys::within(value.expose())));
            if let Some(preset) = acp.preset.as_deref().and_then(AcpPreset::named) {
                all.secrets.extend(keys::passed(preset, &options.work_machine()));
            }
        }
        // Not kept either: a conversation must not carry it to disk.
        all.secrets.extend(local.system_prompt.iter().filter(|text| text.len() >= WORDS).map(Secret::new));
    }
    if let Some(send) = send {
        if let ServerChange::Replace(servers) = &send.mcp_servers {
            of_servers(servers, all);
        }
        of_direct(
            send.local().and_then(|local| local.direct_servers.as_deref()).unwrap_or_default(),
            &mut all.secrets,
        );
    }
    found
}

fn of_direct(servers: &[DirectServer], found: &mut Vec<Secret>) {
    for server in servers {
        found.push(server.url.clone());
        for (_, value) in &server.headers {
            of_header(value.expose(), found);
        }
    }
}

fn of_servers(servers: &McpServers, found: &mut Given) {
    for (_, server) in servers.iter() {
        let members = server.members();
        for (name, value) in texts(members, "env") {
            if is_told(name, value) {
                found.secrets.push(known_if(secret_name(name) || secret_value(value), value));
            }
        }
        for (_, value) in texts(members, "headers") {
            of_header(value, &mut found.secrets);
        }
        for (name, value) in texts(members, "auth") {
            found.secrets.push(known_if(secret_name(name), value));
        }
        if let Some(url) = members.get("url").and_then(Value::as_str) {
            of_url(url, found);
        }
    }
}

fn texts<'a>(members: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = members.get(name).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// A value that texts of this agent may not repeat; where it is a secret, no text of the process may.
fn known_if(secret: bool, value: &str) -> Secret {
    if secret { Secret::in_use(value) } else { Secret::new(value) }
}

/// A header's value, and its token alone: `Bearer x`.
fn of_header(value: &str, found: &mut Vec<Secret>) {
    found.push(Secret::in_use(value));
    if let Some((_, token)) = value.trim().split_once(' ') {
        found.push(Secret::new(token.trim()));
    }
}

/// An address, its host, and what stands in it for the server's eyes.
fn of_url(text: &str, found: &mut Given) {
    let spellings = |to: &mut Vec<Secret>| {
        to.push(Secret::new(text));
        to.push(Secret::new(text.trim_end_matches('/')));
    };
    spellings(&mut found.addresses);
    let Ok(url) = url::Url::parse(text) else { return };
    found.addresses.push(Secret::new(url.as_str()));
    if url.query().is_some() || url.password().is_some() {
        spellings(&mut found.secrets);
    }
    found.secrets.extend(url.password().map(Secret::in_use));
    found.secrets.extend(
        url.query_pairs().map(|(name, value)| known_if(secret_name(&name) || secret_value(&value), &value)),
    );
    if let Some(host) = url.host_str().filter(|host| host.contains(['.', ':'])) {
        found.hosts.push(Secret::new(host));
    }
}

/// A variable's value is told apart from what stands in any text: paths, switches and small numbers.
fn is_told(name: &str, value: &str) -> bool {
    let is_word =
        ["true", "false", "none", "null", "production", "development", "info", "debug", "warn", "error"]
            .contains(&value.to_ascii_lowercase().as_str());
    let is_small = value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit());
    let is_place = name.ends_with("PATH") || name == "HOME" || name == "TMPDIR";
    !(is_word || is_small || is_place)
}
