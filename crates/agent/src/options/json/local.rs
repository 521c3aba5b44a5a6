//! Owns reading what belongs to an agent on this machine. It starts nothing.

use std::path::PathBuf;
use std::time::Duration;

use toolway_config::{Node, SettingSource, Value};
use toolway_secret::Secret;

use super::reader::{Object, Reader};
use crate::options::{AcpOptions, EngineChoice, LocalOptions, Retries, Trust};
use crate::store::StoreChoice;

/// What to do about a member that is not known.
pub(super) fn hint(name: &str) -> Option<String> {
    Some(match name {
        "customTools" | "directServers" => {
            "functions and servers of a program are given in it, not in JSON".to_owned()
        }
        "sandbox" => "write sandboxOptions".to_owned(),
        "mcpServers" | "tools" | "disallowedTools" | "systemPrompt" | "agents" | "model" | "acp"
        | "limits" => {
            format!("it stands beside local: write {name} there")
        }
        _ => return None,
    })
}

/// `acp`: what executes prompts.
pub(super) fn read_engine(object: &mut Object<'_>, local: &mut LocalOptions) {
    let Some((reader, node, at)) = object.member("acp") else { return };
    if let Some(preset) = node.as_str() {
        let preset = Some(preset.to_owned());
        local.engine = EngineChoice::Acp(AcpOptions { preset, ..AcpOptions::default() });
        return;
    }
    let Some(mut object) = reader.object(node, &at) else { return };
    let mut acp = AcpOptions {
        preset: object.text("preset"),
        command: object.text("command"),
        args: object.texts("args").unwrap_or_default(),
        authenticate: object.text("authenticate"),
        ..AcpOptions::default()
    };
    if let Some((reader, node, at)) = object.member("env")
        && let Some(mut env) = reader.object(node, &at)
    {
        for name in env.names() {
            if let Some(value) = env.text(&name) {
                acp.env.insert(name, Secret::new(value));
            }
        }
    }
    object.end(&|_| None);
    local.engine = EngineChoice::Acp(acp);
}

/// `local`. In the cloud only what is harmless may stand there.
pub(super) fn read(reader: &mut Reader, node: &Node, at: &str, local: &mut LocalOptions, in_cloud: bool) {
    let Some(mut object) = reader.object(node, at) else { return };
    if in_cloud {
        for name in object.names() {
            if name != "settingSources" {
                object.fault(&name, "is for agents on this machine, and this one runs in the cloud");
                object.member(&name);
            }
        }
    }
    read_places(&mut object, local);
    let sources = object.texts("settingSources").unwrap_or_default();
    match SettingSource::parse_list(sources.iter().map(String::as_str)) {
        Ok(sources) => local.setting_sources = sources,
        Err(problem) => {
            let hint = problem.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            object.fault("settingSources", format!("{}{hint}", problem.message));
        }
    }
    local.trust = object.word("trust", &[("given", Trust::Given), ("ask", Trust::Ask)]).unwrap_or_default();
    if let Some((reader, node, at)) = object.member("sandboxOptions")
        && let Some(mut sandbox) = reader.object(node, &at)
    {
        local.sandbox.enabled = sandbox.flag("enabled").unwrap_or(false);
        sandbox.end(&|_| None);
    }
    local.auto_review = object.flag("autoReview").unwrap_or(false);
    if let Some((reader, node, at)) = object.member("permissions")
        && let Some(mut permissions) = reader.object(node, &at)
    {
        local.permissions.allow = permissions.texts("allow").unwrap_or_default();
        local.permissions.deny = permissions.texts("deny").unwrap_or_default();
        permissions.end(&|_| None);
    }
    if object.flag("enableAgentRetries") == Some(false) {
        local.agent_retries = Retries::Off;
    }
    read_sizes(&mut object, local);
    local.require_servers = object.flag("requireServers").unwrap_or(false);
    local.server_patience = object.number("serverPatienceMs").map(Duration::from_millis);
    local.search_above =
        object.number("searchAbove").map(|above| usize::try_from(above).unwrap_or(usize::MAX));
    local.plan_reads_only = object.flag("planReadsOnly").unwrap_or(false);
    if let Some((reader, node, at)) = object.member("store") {
        local.store = read_store(reader, node, &at);
    }
    object.end(&hint);
}

fn read_places(object: &mut Object<'_>, local: &mut LocalOptions) {
    if let Some((reader, node, at)) = object.member("cwd") {
        match (&node.value, node.as_str()) {
            (_, Some(cwd)) => local.cwd = Some(PathBuf::from(cwd)),
            (Value::Array(_), _) => {
                reader.fault(&at, "is one folder, and no array: write the others in local.dirs");
            }
            _ => reader.fault(&at, format!("must be a string, and is {}", node.kind())),
        }
    }
    local.dirs = object.texts("dirs").unwrap_or_default().into_iter().map(PathBuf::from).collect();
}

fn read_sizes(object: &mut Object<'_>, local: &mut LocalOptions) {
    if let Some((reader, node, at)) = object.member("guard")
        && let Some(mut guard) = reader.object(node, &at)
    {
        if let Some(chars) = guard.number("maxResponseChars") {
            local.guard.max_response_chars = chars;
            let preview = usize::try_from(chars * 2 / 5).unwrap_or(usize::MAX);
            local.guard.preview_chars = local.guard.preview_chars.min(preview);
        }
        if let Some(chars) = guard.number("previewChars") {
            local.guard.preview_chars = usize::try_from(chars).unwrap_or(usize::MAX);
        }
        local.guard.output_dir = guard.text("outputDir").map(PathBuf::from);
        guard.end(&|_| None);
    }
    if let Some((reader, node, at)) = object.member("timeouts")
        && let Some(mut timeouts) = reader.object(node, &at)
    {
        let mut time = |name: &str| timeouts.number(name).map(Duration::from_millis);
        local.timeouts.startup = time("startupMs");
        local.timeouts.list = time("listMs");
        local.timeouts.call = time("callMs");
        local.timeouts.call_max = time("callMaxMs");
        timeouts.end(&|_| None);
    }
}

/// `"default"`, `"memory"`, or `{"type": "sqlite" | "jsonl", "dir": ...}`.
fn read_store(reader: &mut Reader, node: &Node, at: &str) -> StoreChoice {
    match node.as_str() {
        Some("default") => return StoreChoice::Default,
        Some("memory") => return StoreChoice::Memory,
        Some(other) => {
            reader.fault(
                at,
                format!("{other:?} is neither default nor memory, nor an object with type and dir"),
            );
            return StoreChoice::Default;
        }
        None => {}
    }
    let Some(mut object) = reader.object(node, at) else { return StoreChoice::Default };
    let dir = object.text("dir").map(PathBuf::from);
    let is_sqlite = object.word("type", &[("sqlite", true), ("jsonl", false)]);
    if dir.is_none() || !object.has("type") {
        object.fault("", "is an object with type and dir");
    }
    object.end(&|_| None);
    match (is_sqlite, dir) {
        (Some(true), Some(dir)) => StoreChoice::Sqlite(dir),
        (Some(false), Some(dir)) => StoreChoice::Jsonl(dir),
        _ => StoreChoice::Default,
    }
}
