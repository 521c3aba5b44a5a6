//! Owns the reading of tool calls of the Agent Client Protocol: `tool_call` and `tool_call_update`.

use serde_json::{Map, Value, json};

use super::{Members, id, lenient, present, text};
use crate::json::RawJson;
use crate::replay::activity::{AgentToolEvent, ToolActivity, ToolStatus};

pub(super) fn read(members: &Members) -> Option<AgentToolEvent> {
    let update = text(members, &["sessionUpdate"])?;
    if update != "tool_call" && update != "tool_call_update" {
        return None;
    }
    let status = match text(members, &["status"]).as_deref() {
        Some("completed") => ToolStatus::Completed,
        Some("failed") => ToolStatus::Failed,
        _ => ToolStatus::Running,
    };
    let shown = Shown::of(members);
    let args = args(members, &shown);
    let call = ToolActivity {
        id: id(members)?,
        kind: kind(members, &shown),
        result: (status != ToolStatus::Running).then(|| result(members, &shown, status)),
        args,
        status,
    };
    Some(match (status, update.as_str()) {
        (ToolStatus::Running, "tool_call") => AgentToolEvent::Started(call),
        (ToolStatus::Running, _) => AgentToolEvent::Partial(call),
        _ => AgentToolEvent::Completed(call),
    })
}

/// What the protocol's `content` and `locations` say.
#[derive(Default)]
struct Shown {
    texts: Vec<String>,
    path: Option<String>,
    old: Option<String>,
    new: Option<String>,
    is_diff: bool,
}

impl Shown {
    fn of(members: &Members) -> Self {
        let mut shown = Self::default();
        for block in list(members, "content") {
            let part = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
            match part("type").as_deref() {
                Some("diff") if !shown.is_diff => {
                    shown.is_diff = true;
                    (shown.path, shown.old, shown.new) = (part("path"), part("oldText"), part("newText"));
                }
                Some("content") => {
                    let inner = block.get("content").and_then(|content| content.get("text"));
                    shown.texts.extend(inner.and_then(Value::as_str).map(str::to_owned));
                }
                _ => {}
            }
        }
        if shown.path.is_none() {
            let places = list(members, "locations");
            shown.path = places.iter().find_map(|place| Some(place.get("path")?.as_str()?.to_owned()));
        }
        shown
    }
}

fn list(members: &Members, name: &str) -> Vec<Value> {
    match members.get(name).map(lenient::tree) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The protocol's kinds are coarser than tools: what is in the call decides which tool it is.
fn kind(members: &Members, shown: &Shown) -> String {
    let input = members.get("rawInput").map(lenient::object).unwrap_or_default();
    let has = |names: &[&str]| lenient::text(&input, names).is_some();
    let kind = text(members, &["kind"]).unwrap_or_default();
    match kind.as_str() {
        "execute" => "shell".to_owned(),
        "fetch" if has(&["query", "search_term", "searchTerm"]) && !has(&["url"]) => "webSearch".to_owned(),
        "fetch" => "webFetch".to_owned(),
        "search" if has(&["globPattern", "glob_pattern"]) => "glob".to_owned(),
        "search" if has(&["pattern", "regex"]) => "grep".to_owned(),
        "edit" if shown.is_diff && shown.old.is_none() => "write".to_owned(),
        // A call that names no kind is one of the kind "other"; an update that names none leaves it as it was.
        "" if text(members, &["sessionUpdate"]).as_deref() != Some("tool_call") => kind,
        "" | "other" | "think" | "switch_mode" => match lenient::text(&input, &["toolName", "tool_name"]) {
            Some(_) => "mcp".to_owned(),
            None => text(members, &["title"]).filter(|title| !title.is_empty()).unwrap_or(kind),
        },
        _ => kind,
    }
}

/// The agent's own arguments, and what the protocol says beside them.
fn args(members: &Members, shown: &Shown) -> RawJson {
    let input = present(members, &["rawInput"]);
    let mut map = input.as_ref().map(lenient::object).unwrap_or_default();
    let before = map.len();
    let mut add = |names: &[&str], value: Option<&String>| {
        if let (Some(value), false) = (value, names.iter().any(|name| map.contains_key(*name))) {
            map.insert(names.first().copied().unwrap_or_default().to_owned(), Value::from(value.as_str()));
        }
    };
    add(&["path", "file_path", "filePath", "target_file"], shown.path.as_ref());
    if shown.is_diff {
        add(&["oldText", "old_string", "oldString", "old_str"], shown.old.as_ref());
        if shown.old.is_some() {
            add(&["newText", "new_string", "newString", "new_str"], shown.new.as_ref());
        } else {
            add(&["content", "contents"], shown.new.as_ref());
        }
    }
    match input {
        // Nothing was added: the bytes stay.
        Some(input) if map.len() == before && input.is_object() => input,
        _ => RawJson::of(&Value::Object(map)),
    }
}

fn result(members: &Members, shown: &Shown, status: ToolStatus) -> RawJson {
    let text = shown.texts.join("\n");
    let output = present(members, &["rawOutput"]);
    let mut value = match output.as_ref().map(lenient::tree) {
        Some(Value::Object(map)) => map,
        Some(Value::String(output)) if text.is_empty() => {
            Map::from_iter([("content".to_owned(), output.into())])
        }
        // What is neither a text nor an object stays as it is.
        Some(other) if !other.is_string() && text.is_empty() => {
            return output.unwrap_or_else(RawJson::empty_object);
        }
        _ => Map::new(),
    };
    if !text.is_empty() && !value.contains_key("content") {
        value.insert("content".to_owned(), Value::from(text.as_str()));
    }
    if status == ToolStatus::Failed {
        let said = lenient::text(&value, &["error", "message", "content"]).unwrap_or_default().to_owned();
        return RawJson::of(&json!({"status": "error", "error": said, "value": value}));
    }
    RawJson::of(&json!({"status": "success", "value": value}))
}
