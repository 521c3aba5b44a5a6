//! Owns the reading of a tool's result: what it holds, whether it failed and why. Agents wrap results in many ways.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::json::RawJson;
use crate::replay::activity::{ToolActivity, ToolStatus};
use crate::replay::lenient;

/// Keys under which the command line tool reports that a tool did not do its work.
const FAILURES: [&str; 8] =
    ["error", "failure", "rejected", "permissionDenied", "spawnError", "timeout", "fileNotFound", "aborted"];
/// Words for a failure in `status`.
const FAILED: [&str; 8] =
    ["error", "failed", "failure", "rejected", "denied", "cancelled", "canceled", "aborted"];

/// A result, unwrapped.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) failed: bool,
    /// The members of the result.
    pub(super) value: Map<String, Value>,
    /// The result, if it is a list.
    pub(super) list: Vec<Value>,
    /// The result, if it is a text.
    pub(super) text: Option<String>,
    /// The result as the agent wrote it.
    pub(super) raw: Option<RawJson>,
    /// What the agent says went wrong.
    pub(super) error: String,
}

impl Outcome {
    pub(super) fn of(activity: &ToolActivity) -> Self {
        let mut outcome = Self { failed: activity.status == ToolStatus::Failed, ..Self::default() };
        let Some(result) = &activity.result else { return outcome };
        match lenient::tree(result) {
            Value::Object(map) => outcome.unwrap(result, map),
            Value::String(text) => outcome.text = Some(text),
            Value::Null => {}
            Value::Array(list) => (outcome.list, outcome.raw) = (list, Some(result.clone())),
            _ => outcome.raw = Some(result.clone()),
        }
        outcome.failed |= outcome.value.get("isError") == Some(&Value::Bool(true));
        if outcome.failed && outcome.error.is_empty() {
            outcome.error = said_in(&outcome.value).or(outcome.text.clone()).unwrap_or_default();
        }
        outcome
    }

    fn unwrap(&mut self, result: &RawJson, mut map: Map<String, Value>) {
        let status = map.get("status").and_then(Value::as_str);
        let key = match status {
            Some(status) if FAILED.contains(&status) => {
                self.failed = true;
                self.error = said_in(&map).unwrap_or_default();
                Some("value")
            }
            Some("success" | "completed" | "ok") => Some("value"),
            _ if map.contains_key("success") => Some("success"),
            _ => {
                let is_wrapper =
                    |key: &&str| map.get(*key).is_some_and(|value| value.is_object() || value.is_string());
                let failure = FAILURES.iter().copied().find(is_wrapper);
                if let Some(key) = failure {
                    self.failed = true;
                    self.error = map.get(key).and_then(said).unwrap_or_default();
                }
                failure
            }
        };
        let Some((key, inner)) = key.and_then(|key| Some((key, map.remove(key)?))) else {
            self.raw = Some(result.clone());
            self.text = whole_text(&map);
            // Facts for programs may stand beside the text.
            if let Some(code) = map.get("details").and_then(|details| details.get("exitCode")).cloned() {
                map.entry("exitCode").or_insert(code);
            }
            self.value = map;
            return;
        };
        self.raw = serde_json::from_slice::<BTreeMap<String, RawJson>>(result.bytes())
            .ok()
            .and_then(|mut members| members.remove(key));
        match inner {
            // What stands beside it (that a command runs in the background) belongs to it.
            Value::Object(inner) => {
                map.extend(inner);
                self.value = map;
            }
            Value::String(text) => self.text = Some(text),
            Value::Array(list) => self.list = list,
            _ => {}
        }
    }

    /// The first of these members that is a list, or the result itself where that is one.
    pub(super) fn list_of(&self, names: &[&str]) -> &[Value] {
        let named = names.iter().find_map(|name| self.value.get(*name)?.as_array());
        named.map_or(&self.list, Vec::as_slice)
    }

    /// The text of the result, wherever it stands.
    pub(super) fn text_of(&self, names: &[&str]) -> Option<&str> {
        lenient::any_text(&self.value, names).or(self.text.as_deref())
    }
}

/// The text of a result that is a text with facts beside it, or a list of blocks with texts.
fn whole_text(map: &Map<String, Value>) -> Option<String> {
    if let Some(text) = map.get("text").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    let blocks = map.get("content")?.as_array()?;
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// What an error says of itself.
fn said(error: &Value) -> Option<String> {
    match error {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Object(map) => said_in(map),
        _ => None,
    }
}

fn said_in(map: &Map<String, Value>) -> Option<String> {
    const NAMES: [&str; 8] =
        ["error", "message", "errorMessage", "reason", "modelVisibleError", "stderr", "content", "text"];
    NAMES.iter().find_map(|name| match map.get(*name)? {
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().filter_map(said).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        other => said(other),
    })
}
