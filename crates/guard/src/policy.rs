//! Owns the decision what becomes of a message: pass, or replace and how. Pure: no I/O, no bytes, no clock.

use toolway_wire::{Envelope, Kind};

use crate::config::{GuardConfig, ToolRule, UnknownResults};

/// What is known of the request that a response answers. The relay keeps it until the answer comes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallInfo {
    /// The request's method.
    pub method: String,
    /// `params.name` of `tools/call` (or of the task's call).
    pub tool: Option<String>,
    /// `params.uri` of `resources/read`, or `params.name` of `prompts/get`.
    pub uri: Option<String>,
    /// What the upstream is called in the index.
    pub server: String,
    /// Whose results the read-back tool shows.
    pub session: String,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes on with the bytes that it came with.
    Pass,
    /// It is saved and rewritten in this shape; the limit is the one for this message, in characters.
    Replace {
        /// What the rewritten message looks like.
        shape: Shape,
        /// The most characters that it may have.
        limit: u64,
    },
}

/// What a rewritten message looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `CallToolResult`: one text block, then the other blocks.
    Tool,
    /// As [`Shape::Tool`], if the task's result turns out to be a tool's; otherwise it passes.
    TaskTool,
    /// `ReadResourceResult`.
    Resource,
    /// `GetPromptResult`.
    Prompt,
    /// The error -32000 in the place of a result whose shape is not known.
    UnknownResult,
    /// An error response with its message cut.
    Error,
    /// `notifications/message` with its data cut.
    LogMessage,
}

/// Methods whose results always pass whole (MCP revisions 2024-11-05 to 2026-07-28).
const WHOLE: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "completion/complete",
    "logging/setLevel",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "subscriptions/listen",
    "tasks/get",
    "tasks/list",
    "tasks/cancel",
    "tasks/update",
];

/// Decides for one message from the upstream (for a batch: for each member). `call` is the request that a
/// response answers; a response to a request that is not known passes.
pub fn action(config: &GuardConfig, message: &Envelope, call: Option<&CallInfo>) -> Action {
    let (limit, always) =
        match call.map_or(ToolRule::Limit(config.max_response_chars), |call| rule(config, call)) {
            ToolRule::Pass => return Action::Pass,
            ToolRule::Limit(limit) => (limit, false),
            ToolRule::Save => (config.max_response_chars, message.kind() == Kind::Response),
        };
    if !always && message.size().counted(config.media_limit) <= limit {
        return Action::Pass;
    }
    let shape = match message.kind() {
        Kind::Response => result_shape(config, message, call),
        Kind::ErrorResponse => Some(Shape::Error),
        Kind::Notification if message.method() == Some("notifications/message") => Some(Shape::LogMessage),
        _ => None,
    };
    shape.map_or(Action::Pass, |shape| Action::Replace { shape, limit })
}

fn result_shape(config: &GuardConfig, message: &Envelope, call: Option<&CallInfo>) -> Option<Shape> {
    if message.result_type() == Some("input_required") {
        return None;
    }
    match call?.method.as_str() {
        "tools/call" => Some(Shape::Tool),
        "tasks/result" => Some(Shape::TaskTool),
        "resources/read" => Some(Shape::Resource),
        "prompts/get" => Some(Shape::Prompt),
        method if WHOLE.contains(&method) => None,
        _ => (config.unknown_results == UnknownResults::Error).then_some(Shape::UnknownResult),
    }
}

fn rule(config: &GuardConfig, call: &CallInfo) -> ToolRule {
    let tool = match call.method.as_str() {
        "tools/call" | "tasks/result" => call.tool.as_deref(),
        _ => None,
    };
    tool.and_then(|tool| config.tool_rules.iter().find(|(glob, _)| glob.matches(tool)))
        .map_or(ToolRule::Limit(config.max_response_chars), |(_, rule)| *rule)
}

#[cfg(test)]
mod tests;
