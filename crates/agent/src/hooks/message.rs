//! Owns what hooks are told and what they answer, as JSON.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolway_bridge::RawJson;

use super::{HookCall, HookEvent};

/// What a hook gets on its standard input. Numbers in arguments and results stay as they came.
#[derive(Serialize)]
struct Message<'a> {
    hook_event_name: &'static str,
    conversation_id: &'a str,
    generation_id: &'a str,
    model: &'a str,
    workspace_roots: &'a [PathBuf],
    cwd: &'a PathBuf,
    tool_name: String,
    tool_use_id: &'a str,
    tool_input: Input<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_output: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_json: Option<&'a str>,
    /// In milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
}

/// The arguments: for hooks of tools the value, for hooks of servers its text.
#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Value(&'a RawJson),
    Text(&'a str),
}

/// What a call gave.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub(super) result: &'a RawJson,
    pub(super) duration_ms: u64,
}

/// The message for one hook.
pub(super) fn message(event: HookEvent, call: &HookCall<'_>, given: Option<Given<'_>>) -> Vec<u8> {
    let of_server = matches!(event, HookEvent::BeforeMcpExecution | HookEvent::AfterMcpExecution);
    let result = given.map(|given| given.result.text());
    let server = call.server;
    let message = Message {
        hook_event_name: event.name(),
        conversation_id: &call.facts.conversation_id,
        generation_id: &call.facts.generation_id,
        model: &call.facts.model,
        workspace_roots: &call.facts.roots,
        cwd: &call.facts.cwd,
        tool_name: if of_server { call.tool.to_owned() } else { shown_name(call) },
        tool_use_id: call.call_id,
        tool_input: if of_server { Input::Text(call.input.text()) } else { Input::Value(call.input) },
        server_name: server.map(|server| server.name.as_str()),
        command: server.and_then(|server| server.command.as_deref()).filter(|_| of_server),
        url: server.and_then(|server| server.url.as_deref()).filter(|_| of_server),
        tool_output: result.filter(|_| !of_server),
        result_json: result.filter(|_| of_server),
        duration: given.map(|given| given.duration_ms),
    };
    // Texts, and values that were JSON before; a path that is no text is the one thing that cannot be written.
    serde_json::to_vec(&message).unwrap_or_default()
}

/// A tool's name as matchers and messages have it: `Shell`, `Read`, `MCP:search`.
pub(super) fn shown_name(call: &HookCall<'_>) -> String {
    if call.server.is_some() {
        return format!("MCP:{}", call.tool);
    }
    match call.tool {
        "shell" => "Shell",
        "read" => "Read",
        "write" | "edit" => "Write",
        "delete" => "Delete",
        "grep" => "Grep",
        "glob" => "Glob",
        "ls" => "LS",
        "task" => "Task",
        "webFetch" => "WebFetch",
        other => other,
    }
    .to_owned()
}

/// What a hook answers. Members that are not known are passed over.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Reply {
    #[serde(default)]
    pub(super) permission: Option<Permission>,
    #[serde(default, alias = "userMessage")]
    pub(super) user_message: Option<String>,
    #[serde(default, alias = "agentMessage")]
    pub(super) agent_message: Option<String>,
    #[serde(default, alias = "updatedInput")]
    pub(super) updated_input: Option<RawJson>,
    #[serde(default, alias = "updatedMcpToolOutput")]
    pub(super) updated_mcp_tool_output: Option<RawJson>,
    #[serde(default, alias = "additionalContext")]
    pub(super) additional_context: Option<String>,
}

/// What a hook says to a call. A permission answers no question of the rules: it means no objection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Permission {
    Allow,
    Deny,
    Ask,
}

impl Reply {
    /// Reads what a hook wrote. Nothing is no objection.
    pub(super) fn parse(stdout: &[u8]) -> Result<Self, String> {
        if stdout.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self::default());
        }
        if stdout.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
            return Err("its answer is no object".to_owned());
        }
        let reply: Self = serde_json::from_slice(stdout)
            .map_err(|error| format!("its answer cannot be understood (line {})", error.line()))?;
        match &reply.updated_input {
            Some(input) if !input.is_object() => Err("updated_input is no object".to_owned()),
            _ => Ok(reply),
        }
    }

    /// What it tells the model.
    pub(super) fn message(&self) -> Option<&str> {
        let texts = [self.agent_message.as_deref(), self.user_message.as_deref()];
        texts.into_iter().flatten().find(|text| !text.trim().is_empty())
    }
}

/// Another result of a server's tool: a whole one as it is, anything else as its text.
pub(super) fn as_result(output: &RawJson) -> RawJson {
    let tree = output.tree();
    if tree.get("content").is_some_and(serde_json::Value::is_array) {
        return output.clone();
    }
    let text = tree.as_str().map_or_else(|| output.text().to_owned(), ToOwned::to_owned);
    RawJson::of(&serde_json::json!({"content": [{"type": "text", "text": text}]}))
}
