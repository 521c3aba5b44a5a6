//! Compares two transcripts of one scenario: with and without the front between client and server.
//!
//! What may differ is what the front's manual names: the place of `outputSchema` in `tools/list`, and results over
//! the limit, of which the saved file must hold the original. Values of the moment (times, session ids) are masked.

pub(super) mod merged;

use std::fs;
use std::sync::LazyLock;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Map, Value};

static MOMENT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    let hex = r"\b[0-9a-f]{32}\b";
    let clock = r"\b\d{1,2}:\d{2}:\d{2}( [AP]M)?";
    let date = r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}[.\d]*(Z|[+-]\d{2}:\d{2})?";
    Regex::new(&format!("{date}|{uuid}|{hex}|{clock}")).ok()
});

/// Members of a result that carry what the server said.
const BODY: [&str; 6] = ["content", "structuredContent", "isError", "contents", "messages", "description"];
const SCHEMA: &str = "toolway/outputSchema";
const SAVED: &str = "toolway/saved";

/// One line for each difference that the client could see; none means equal.
pub(super) fn differences(scenario: &Value, direct: &Value, through: &Value) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if masked(&direct["server"]) != masked(&through["server"]) {
        found.push(unlike("the server's own words", &direct["server"], &through["server"]));
    }
    let steps = scenario["steps"].as_array().context("a scenario has steps")?;
    for (index, step) in steps.iter().enumerate() {
        let (plain, relayed) = (&direct["steps"][index], &through["steps"][index]);
        let name = name_of(index, step);
        if let Some(problem) = unexpected(step, plain) {
            found.push(format!("{name}: without Toolway already: {problem}"));
        } else if step["large"] == Value::Bool(true) {
            found.extend(large(plain, relayed).into_iter().map(|problem| format!("{name}: {problem}")));
        } else if masked(plain) != masked(&restored(relayed)) {
            found.push(unlike(&name, plain, relayed));
        }
    }
    let (before, after) = (events(direct), events(through));
    found.extend(
        before.iter().filter(|event| !after.contains(event)).map(|event| format!("event lost: {event}")),
    );
    found.extend(
        after.iter().filter(|event| !before.contains(event)).map(|event| format!("event added: {event}")),
    );
    if found.is_empty() && before != after {
        found.push(format!("number of events: {} without Toolway, {} with it", before.len(), after.len()));
    }
    Ok(found)
}

pub(super) fn name_of(index: usize, step: &Value) -> String {
    let words = ["do", "what", "tool", "uri", "name", "method"];
    let words: Vec<&str> = words.iter().filter_map(|word| step[word].as_str()).collect();
    format!("step {index} ({})", words.join(" "))
}

/// A scenario must try what it says it tries.
fn unexpected(step: &Value, plain: &Value) -> Option<String> {
    let failed = !plain["error"].is_null();
    match step["expect"].as_str() {
        Some("either") => None,
        Some("error") if failed => None,
        Some("error") => Some("no error".to_owned()),
        _ if failed => Some(short(&plain["error"])),
        _ => None,
    }
}

fn events(transcript: &Value) -> Vec<String> {
    let events = transcript["events"].as_array().map_or(&[][..], Vec::as_slice);
    let mut lines: Vec<String> = events.iter().map(|event| masked(event).to_string()).collect();
    lines.sort();
    lines
}

/// Puts the schemas of `tools/list` back where the server had them.
fn restored(step: &Value) -> Value {
    let mut step = step.clone();
    let tools = step.pointer_mut("/result/tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
        let Some(meta) = tool.get_mut("_meta").and_then(Value::as_object_mut) else { continue };
        let Some(schema) = meta.remove(SCHEMA) else { continue };
        if meta.is_empty() {
            tool.remove("_meta");
        }
        tool.entry("outputSchema").or_insert(schema);
    }
    step
}

/// A result over the limit: replaced, saved whole, and still what its method promises.
pub(super) fn large(plain: &Value, relayed: &Value) -> Vec<String> {
    if !relayed["error"].is_null() {
        return vec![format!("an error with Toolway: {}", short(&relayed["error"]))];
    }
    let (plain, relayed) = (&plain["result"], &relayed["result"]);
    let saved = &relayed["_meta"][SAVED];
    let Some(path) = saved["path"].as_str().filter(|_| saved["saved"] == Value::Bool(true)) else {
        return vec![format!("not saved: {}", short(relayed))];
    };
    let mut problems = Vec::new();
    let file = fs::read(path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let original = file.map(|message| message["result"].clone()).unwrap_or_default();
    for member in BODY.iter().filter(|member| !plain[**member].is_null()) {
        if masked(&plain[*member]) != masked(&original[*member]) {
            problems.push(unlike(&format!("the saved {member}"), &plain[*member], &original[*member]));
        }
    }
    if truth(&plain["isError"]) != truth(&relayed["isError"]) {
        problems.push("isError has changed".to_owned());
    }
    if others(plain) != others(relayed) {
        problems.push("the blocks beside the text have changed".to_owned());
    }
    if !relayed.to_string().contains(path) {
        problems.push("the answer does not name the saved file".to_owned());
    }
    if relayed["_meta"]["_cursor_mcp_response_proxy"]["truncated"] != Value::Bool(true) {
        problems.push("no _cursor_mcp_response_proxy in _meta".to_owned());
    }
    problems
}

fn truth(value: &Value) -> bool {
    value.as_bool().unwrap_or(false)
}

/// Images and links of a tool's result, in order.
fn others(result: &Value) -> Vec<Value> {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let kept = blocks.iter().filter(|block| block["type"] == "image" || block["type"] == "resource_link");
    kept.map(masked).collect()
}

/// The value with what belongs to the moment replaced, inside base64 too.
fn masked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked_text(text)),
        Value::Array(items) => Value::Array(items.iter().map(masked).collect()),
        Value::Object(members) => Value::Object(members.iter().map(masked_member).collect::<Map<_, _>>()),
        other => other.clone(),
    }
}

fn masked_member((key, value): (&String, &Value)) -> (String, Value) {
    let decoded = match (key.as_str(), value) {
        ("blob", Value::String(text)) => {
            STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok())
        }
        _ => None,
    };
    (key.clone(), decoded.map_or_else(|| masked(value), |text| Value::String(masked_text(&text))))
}

fn masked_text(text: &str) -> String {
    MOMENT
        .as_ref()
        .map_or_else(|| text.to_owned(), |moment| moment.replace_all(text, "<moment>").into_owned())
}

fn unlike(what: &str, plain: &Value, relayed: &Value) -> String {
    format!("{what} differs\n  without: {}\n  with:    {}", short(plain), short(relayed))
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 600 { text } else { text.chars().take(600).chain("...".chars()).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn transcript(step: &Value) -> Value {
        json!({ "server": null, "steps": [step], "events": [] })
    }

    fn compare(step: &Value, direct: &Value, through: &Value) -> Vec<String> {
        let scenario = json!({ "steps": [step] });
        differences(&scenario, &transcript(direct), &transcript(through)).unwrap()
    }

    #[test]
    fn moved_schema_and_moments_are_no_difference() {
        let step = json!({ "do": "list" });
        let direct =
            json!({ "result": { "tools": [{ "name": "at 1:02:03 PM", "outputSchema": { "a": 1 } }] } });
        let moved = json!({ "name": "at 1:02:04 PM", "_meta": { SCHEMA: { "a": 1 } } });
        assert_eq!(compare(&step, &direct, &json!({ "result": { "tools": [moved] } })), Vec::<String>::new());
    }

    #[test]
    fn any_other_change_is_a_difference() {
        let step = json!({ "do": "call" });
        let direct = json!({ "result": { "content": [1.0], "extra": null } });
        assert_eq!(compare(&step, &direct, &json!({ "result": { "content": [1.0] } })).len(), 1);
        assert_eq!(compare(&step, &direct, &json!({ "error": { "code": 1 } })).len(), 1);
        assert_eq!(compare(&step, &direct, &direct), Vec::<String>::new());
    }

    #[test]
    fn a_large_result_must_be_saved_whole() {
        let step = json!({ "do": "call", "large": true });
        let content = json!([{ "type": "text", "text": "whole" }, { "type": "image", "data": "aa" }]);
        let direct = json!({ "result": { "content": content } });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("saved.json");
        let relayed = |image: &str| {
            json!({ "result": {
                "content": [{ "type": "text", "text": path.to_str() }, { "type": "image", "data": image }],
                "_meta": {
                    SAVED: { "saved": true, "path": path.to_str() },
                    "_cursor_mcp_response_proxy": { "truncated": true },
                },
            } })
        };
        fs::write(&path, json!({ "id": 1, "result": { "content": content } }).to_string()).unwrap();
        assert_eq!(compare(&step, &direct, &relayed("aa")), Vec::<String>::new());
        assert_eq!(compare(&step, &direct, &relayed("bb")).len(), 1);
        assert_eq!(compare(&step, &direct, &direct).len(), 1, "passed on as it was");
        fs::write(&path, json!({ "id": 1, "result": { "content": [] } }).to_string()).unwrap();
        assert_eq!(compare(&step, &direct, &relayed("aa")).len(), 1, "the file is not the original");
    }

    #[test]
    fn lost_doubled_and_added_events_are_differences() {
        let scenario = json!({ "steps": [] });
        let with = |events: Value| json!({ "server": null, "steps": [], "events": events });
        let one = with(json!([{ "method": "m" }]));
        let two = with(json!([{ "method": "m" }, { "method": "m" }]));
        assert_eq!(differences(&scenario, &one, &one).unwrap(), Vec::<String>::new());
        assert_eq!(differences(&scenario, &one, &two).unwrap().len(), 1);
        assert_eq!(differences(&scenario, &one, &with(json!([]))).unwrap().len(), 1);
    }
}
