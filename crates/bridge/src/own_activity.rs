//! Owns the recognition of bridge calls among what an agent reports of itself. Pure.
//!
//! The host shows a bridge call as a call of its own tool, so that the agent's report of the same call is not shown. What
//! identifies it is the invocation alone: a result may mention anything.

use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value};
use toolway_wire::Id;

use crate::json::RawJson;

/// Under these an agent's report names its tool.
const NAME_KEYS: [&str; 5] = ["tool", "toolName", "name", "mcpToolName", "serverToolName"];
/// Under this a report names its tool too; arguments have other things there.
const KIND_KEY: &str = "type";
/// Under these it has the arguments.
const INVOCATION_KEYS: [&str; 3] = ["args", "arguments", "input"];
/// Under these it has its own id.
const ID_KEYS: [&str; 5] = ["callId", "call_id", "toolCallId", "tool_call_id", "id"];
/// How an agent calls any MCP tool, besides the server's key.
const ENVELOPE: &str = "mcp";
/// How deep names are searched.
const DEPTH: usize = 4;
/// Started calls that are remembered.
const REMEMBERED: usize = 4096;

/// What was recognised of one run's agent.
#[derive(Debug, Default)]
pub(crate) struct OwnActivity {
    started: HashSet<String>,
    order: VecDeque<String>,
}

impl OwnActivity {
    /// The report, an object, is about a bridge call. `known`: an MCP name that the run exposes; `requested`: the id of a
    /// request that came.
    pub(crate) fn recognise(
        &mut self,
        report: &RawJson,
        server_key: &str,
        known: &dyn Fn(&str) -> bool,
        requested: &dyn Fn(&Id) -> bool,
    ) -> bool {
        let Value::Object(report) = report.tree() else { return false };
        let names = texts(&report, &NAME_KEYS).chain(texts(&report, &[KIND_KEY]));
        let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
        let call_id = ID_KEYS.iter().find_map(|key| report.get(*key)).and_then(id_text);
        let is_envelope = |name: &&str| *name == ENVELOPE || *name == server_key;
        let by_name = names.iter().any(|name| known(name));
        let by_request = || {
            names.iter().any(&is_envelope)
                && call_id.as_deref().is_some_and(|id| request_ids(id).any(|id| requested(&id)))
        };
        let by_invocation = || {
            let invocations = INVOCATION_KEYS.iter().filter_map(|key| report.get(*key));
            invocations.into_iter().any(|value| names_known(value, DEPTH, known))
        };
        if by_name || by_request() || by_invocation() {
            if let Some(id) = call_id {
                self.remember(id);
            }
            return true;
        }
        // A completion may leave the name out, but one that names another tool is that tool's.
        let unnamed = names.iter().all(is_envelope);
        unnamed && call_id.is_some_and(|id| self.started.contains(&id))
    }

    fn remember(&mut self, id: String) {
        if self.started.insert(id.clone()) {
            self.order.push_back(id);
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.started.remove(&oldest);
            }
        }
    }
}

fn texts<'a>(object: &'a Map<String, Value>, keys: &'a [&str]) -> impl Iterator<Item = &'a str> {
    keys.iter().filter_map(|key| object.get(*key)?.as_str())
}

fn id_text(id: &Value) -> Option<String> {
    match id {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A report has a request's id as a text, whatever it was.
fn request_ids(id: &str) -> impl Iterator<Item = Id> {
    let number = Id::from_json(id.as_bytes()).filter(|id| !id.raw().starts_with(b"\"") && !id.is_null());
    let text = Id::from_json(Value::from(id).to_string().as_bytes());
    number.into_iter().chain(text)
}

/// A known name stands under one of the keys, `depth` levels down at most; only through further arguments and lists.
fn names_known(value: &Value, depth: usize, known: &dyn Fn(&str) -> bool) -> bool {
    if depth == 0 {
        return false;
    }
    match value {
        Value::Object(object) => {
            texts(object, &NAME_KEYS).any(known)
                || INVOCATION_KEYS
                    .iter()
                    .filter_map(|key| object.get(*key))
                    .any(|value| names_known(value, depth - 1, known))
        }
        Value::Array(values) => values.iter().any(|value| names_known(value, depth - 1, known)),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
