//! Owns the reading of agents' tool events: the SDK's updates and messages, the command line tool's lines, and the
//! Agent Client Protocol's session updates. It decides nothing.

mod acp;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::activity::{AgentToolEvent, OutputStream, ToolActivity, ToolStatus};
use super::lenient;
use crate::json::RawJson;

/// The members of an object, byte for byte.
type Members = BTreeMap<String, RawJson>;

pub(super) fn read(event: &RawJson) -> Option<AgentToolEvent> {
    let mut members = members(event)?;
    // `session/update` notifications come whole, as their parameters, or as the update alone.
    for envelope in ["params", "update"] {
        if let Some(inner) = members.get(envelope).and_then(self::members) {
            members = inner;
        }
    }
    if members.contains_key("sessionUpdate") {
        return acp::read(&members);
    }
    match text(&members, &["type"])?.as_str() {
        "tool-call-started" => call(&members, ToolStatus::Running).map(AgentToolEvent::Started),
        "partial-tool-call" => call(&members, ToolStatus::Running).map(AgentToolEvent::Partial),
        "tool-call-completed" | "step-completed" | "toolCall" => {
            call(&members, ToolStatus::Completed).map(AgentToolEvent::Completed)
        }
        "tool_call" => message(&members),
        "shell-output-delta" => output(&members),
        _ => None,
    }
}

fn members(json: &RawJson) -> Option<Members> {
    serde_json::from_slice(json.bytes()).ok()
}

/// The first of these members that is a text.
fn text(members: &Members, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match lenient::tree(members.get(*name)?) {
        Value::String(text) => Some(text),
        _ => None,
    })
}

fn id(members: &Members) -> Option<String> {
    text(members, &["callId", "call_id", "toolCallId", "id"]).filter(|id| !id.is_empty())
}

/// `null` says nothing.
fn present(members: &Members, names: &[&str]) -> Option<RawJson> {
    names.iter().find_map(|name| members.get(*name)).filter(|value| value.text() != "null").cloned()
}

/// An update of the SDK: the call is an object with a type, in `toolCall`, or in a step's `message`.
fn call(members: &Members, status: ToolStatus) -> Option<AgentCall> {
    let step = members.get("step").and_then(self::members);
    let outer = step.as_ref().unwrap_or(members);
    let inner =
        ["toolCall", "tool_call", "message"].iter().find_map(|name| self::members(outer.get(*name)?))?;
    let kind = text(&inner, &["type", "name"])?;
    let id = id(members).or_else(|| id(outer)).or_else(|| id(&inner)).unwrap_or_default();
    Some(activity(id, kind, &inner, status))
}

type AgentCall = ToolActivity;

fn activity(id: String, kind: String, members: &Members, status: ToolStatus) -> ToolActivity {
    ToolActivity {
        id,
        kind,
        args: present(members, &["args", "arguments", "input"]).unwrap_or_else(RawJson::empty_object),
        result: present(members, &["result"]),
        status,
    }
}

/// A message of type `tool_call`: the SDK's names the tool; the command line tool's has it as the key of an object.
fn message(members: &Members) -> Option<AgentToolEvent> {
    let status = text(members, &["subtype", "status"]).unwrap_or_default();
    let status = match status.as_str() {
        "completed" | "success" | "finished" => ToolStatus::Completed,
        "error" | "failed" => ToolStatus::Failed,
        _ => ToolStatus::Running,
    };
    let call = if let Some(union) = members.get("tool_call").and_then(self::members) {
        let objects = || union.iter().filter_map(|(key, value)| Some((key, self::members(value)?)));
        let is_call = |key: &str| key.ends_with("ToolCall") || key == "function";
        let (key, inner) = objects().find(|(key, _)| is_call(key)).or_else(|| objects().next())?;
        let id = id(members).or_else(|| text(&inner, &["toolCallId"])).unwrap_or_default();
        let kind = match key.as_str() {
            "function" => text(&inner, &["name"])?,
            key => key.strip_suffix("ToolCall").unwrap_or(key).to_owned(),
        };
        activity(id, kind, &inner, status)
    } else {
        activity(id(members).unwrap_or_default(), text(members, &["name"])?, members, status)
    };
    Some(match status {
        ToolStatus::Running => AgentToolEvent::Started(call),
        ToolStatus::Completed | ToolStatus::Failed => AgentToolEvent::Completed(call),
    })
}

/// The payload is not part of the SDK's contract: `{case, value: {data}}`, or a text under one of a few names.
fn output(members: &Members) -> Option<AgentToolEvent> {
    let event = lenient::object(members.get("event")?);
    let case = event.get("case").and_then(Value::as_str);
    let value = event.get("value").and_then(Value::as_object);
    let stream = if case == Some("stderr") || event.contains_key("stderr") {
        OutputStream::Stderr
    } else {
        OutputStream::Stdout
    };
    let of = |map: &Map<String, Value>| {
        lenient::text(map, &["data", "output", "stdout", "stderr", "text"]).map(str::to_owned)
    };
    let text = value.and_then(of).or_else(|| of(&event))?;
    Some(AgentToolEvent::Output { id: id(members), stream, text })
}
