//! Owns how a tool call looks to an editor: kind, title, places, differences, and what came of it. No I/O.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};
use toolway_bridge::RawJson;

use crate::event::{ToolCallEvent, ToolCallStatus};

/// The most characters of a title.
const TITLE: usize = 200;
/// The most bytes of a result that is told as it came, beside what is shown of it.
const RAW: usize = 256 << 10;
/// The most bytes of the texts of a difference.
const DIFFERENCE: usize = 1 << 20;

/// In place of a result that is not kept with the conversation.
const LEFT_OUT: &str = "[The result was too large to be kept with the conversation.]";

/// `tool_call` or `tool_call_update`. Arguments and results keep their bytes.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUpdate {
    pub(super) session_update: &'static str,
    pub(super) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) locations: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_input: Option<RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_output: Option<RawJson>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(super) meta: Option<Value>,
}

/// What is told of a call that runs or has ended.
pub(super) fn update(call: &ToolCallEvent, is_known: bool, cwd: &Path) -> ToolUpdate {
    let args = call.args.as_ref().map(RawJson::tree).unwrap_or_default();
    let mut update = ToolUpdate {
        session_update: if is_known { "tool_call_update" } else { "tool_call" },
        tool_call_id: call.call_id.clone(),
        status: Some(match call.status {
            ToolCallStatus::Running => "in_progress",
            ToolCallStatus::Completed => "completed",
            ToolCallStatus::Error => "failed",
        }),
        raw_input: call.args.clone(),
        ..ToolUpdate::default()
    };
    if call.name == "mcp" {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let (server, tool) = (text("providerIdentifier"), text("toolName"));
        update.kind = Some("other");
        update.title = Some(of_server(server, tool));
        update.meta = Some(json!({"serverName": server, "toolName": tool}));
        update.raw_input = call.args.as_ref().map(inner);
    } else {
        update.kind = Some(kind(&call.name));
        update.title = Some(title(&call.name, &args));
        update.locations = locations(&call.name, &args, cwd);
    }
    let mut content = differences(&call.name, &args, cwd);
    if call.status != ToolCallStatus::Running {
        // A difference says more than the words about it.
        if content.is_empty() || call.status == ToolCallStatus::Error {
            match &call.result {
                Some(result) => content.extend(shown(result)),
                None if call.truncated.result => content.push(text_block(LEFT_OUT)),
                None => {}
            }
        }
        update.raw_output = call.result.clone().filter(|result| result.bytes().len() <= RAW);
    }
    update.content = (!content.is_empty()).then_some(content);
    update
}

/// A call whose arguments are still coming.
pub(super) fn partial(call_id: String, name: &str) -> ToolUpdate {
    ToolUpdate {
        session_update: "tool_call",
        tool_call_id: call_id,
        title: Some(bounded(name)),
        kind: Some(kind(name)),
        status: Some("pending"),
        ..ToolUpdate::default()
    }
}

/// What a call has written so far.
pub(super) fn output(call_id: &str, text: &str) -> ToolUpdate {
    ToolUpdate {
        session_update: "tool_call_update",
        tool_call_id: call_id.to_owned(),
        content: Some(vec![text_block(text)]),
        ..ToolUpdate::default()
    }
}

/// A call of which nothing more comes.
pub(super) fn given_up(call_id: &str, why: &str) -> ToolUpdate {
    ToolUpdate { status: Some("failed"), ..output(call_id, why) }
}

/// The entries of a plan, of what the tool for them answered.
pub(super) fn plan(result: &RawJson) -> Option<Value> {
    let result = result.tree();
    let todos = result.get("details")?.get("todos")?.as_array()?;
    let entry = |todo: &Value| {
        let status = todo.get("status")?.as_str()?;
        (status != "cancelled")
            .then(|| json!({"content": todo["content"], "priority": "medium", "status": status}))
    };
    let entries: Vec<Value> = todos.iter().filter_map(entry).collect();
    Some(json!({"sessionUpdate": "plan", "entries": entries}))
}

/// A call of a server's tool.
pub(super) fn of_server(server: &str, tool: &str) -> String {
    bounded(&format!("{tool} ({server})"))
}

/// A command line, as titles show it.
pub(super) fn code(command: &str) -> String {
    let line = bounded(command);
    if line.contains('`') { line } else { format!("`{line}`") }
}

fn bounded(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let more = text.trim().lines().nth(1).is_some() || line.chars().count() > TITLE;
    let mut title: String = line.chars().take(TITLE).filter(|letter| !letter.is_control()).collect();
    if more {
        title.push_str(" ...");
    }
    title
}

fn kind(name: &str) -> &'static str {
    match name {
        "shell" => "execute",
        "read" => "read",
        "write" | "edit" => "edit",
        "delete" => "delete",
        "grep" | "glob" | "ls" => "search",
        "webFetch" => "fetch",
        "task" => "think",
        _ => "other",
    }
}

fn title(name: &str, args: &Value) -> String {
    let text = |names: &[&str]| names.iter().find_map(|name| args.get(*name)?.as_str());
    let path = || text(&PATHS).unwrap_or(".");
    match name {
        "shell" => text(&["command"]).map(code),
        "read" => Some(format!("Read {}", path())),
        "write" => Some(format!("Write {}", path())),
        "edit" => Some(format!("Edit {}", path())),
        "delete" => Some(format!("Delete {}", path())),
        "ls" => Some(format!("List {}", path())),
        "grep" => text(&["pattern"]).map(|pattern| format!("Search for {pattern}")),
        "glob" => text(&["pattern"]).map(|pattern| format!("Find {pattern}")),
        "webFetch" => text(&["url"]).map(|url| format!("Fetch {url}")),
        "task" => text(&["description", "prompt"]).map(str::to_owned),
        "askQuestion" => text(&["question"]).map(str::to_owned),
        _ => None,
    }
    .map_or_else(|| bounded(name), |title| if name == "shell" { title } else { bounded(&title) })
}

const PATHS: [&str; 3] = ["path", "file_path", "filePath"];

fn place(args: &Value, cwd: &Path) -> Option<PathBuf> {
    let path = PATHS.iter().find_map(|name| args.get(*name)?.as_str()).filter(|path| !path.is_empty())?;
    Some(cwd.join(path))
}

fn locations(name: &str, args: &Value, cwd: &Path) -> Vec<Value> {
    if !matches!(name, "read" | "write" | "edit" | "delete" | "ls" | "grep" | "glob") {
        return Vec::new();
    }
    let Some(path) = place(args, cwd) else { return Vec::new() };
    let line = args.get("offset").and_then(Value::as_u64).filter(|_| name == "read");
    vec![match line {
        Some(line) => json!({"path": path, "line": line}),
        None => json!({"path": path}),
    }]
}

/// What a call changes in a file, by its arguments.
fn differences(name: &str, args: &Value, cwd: &Path) -> Vec<Value> {
    let text = |args: &Value, name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
    let Some(path) = place(args, cwd) else { return Vec::new() };
    let difference = |old: Option<String>, new: String| {
        let size = old.as_ref().map_or(0, String::len) + new.len();
        let whole = json!({"type": "diff", "path": path, "oldText": old, "newText": new});
        (size <= DIFFERENCE).then_some(whole)
    };
    match name {
        "write" => text(args, "content").and_then(|new| difference(None, new)).into_iter().collect(),
        "edit" => {
            let one = |args: &Value| difference(Some(text(args, "oldText")?), text(args, "newText")?);
            match args.get("edits").and_then(Value::as_array) {
                Some(edits) => edits.iter().filter_map(one).collect(),
                None => one(args).into_iter().collect(),
            }
        }
        _ => Vec::new(),
    }
}

/// The arguments of a server's tool themselves.
fn inner(args: &RawJson) -> RawJson {
    #[derive(serde::Deserialize)]
    struct Wrapped {
        args: RawJson,
    }
    serde_json::from_slice::<Wrapped>(args.bytes()).map_or_else(|_| args.clone(), |wrapped| wrapped.args)
}

/// What is shown of a result: `{content}` of a server, `{text}` of a built-in tool, `{error}`.
fn shown(result: &RawJson) -> Vec<Value> {
    let result = result.tree();
    if let Some(Value::Array(blocks)) = result.get("content") {
        return blocks.iter().map(|block| json!({"type": "content", "content": block})).collect();
    }
    let said = ["text", "error"].iter().find_map(|name| result.get(*name)?.as_str());
    said.filter(|text| !text.is_empty()).map(text_block).into_iter().collect()
}

fn text_block(text: &str) -> Value {
    json!({"type": "content", "content": {"type": "text", "text": text}})
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::SessionUpdate;

    use super::*;
    use crate::event::Truncated;

    fn call(name: &str, status: ToolCallStatus, args: &str, result: Option<&str>) -> ToolCallEvent {
        let raw = |text: &str| RawJson::new(text.to_owned()).unwrap();
        ToolCallEvent {
            call_id: "c".to_owned(),
            name: name.to_owned(),
            status,
            args: Some(raw(args)),
            result: result.map(raw),
            truncated: Truncated::default(),
        }
    }

    /// It is one of the protocol, too.
    fn told(call: &ToolCallEvent) -> Value {
        let told = serde_json::to_value(update(call, false, Path::new("/w"))).unwrap();
        let read: SessionUpdate = serde_json::from_value(told.clone()).unwrap();
        assert!(matches!(read, SessionUpdate::ToolCall(_)));
        told
    }

    #[test]
    fn a_result_that_was_left_out_is_said_to_be() {
        let mut call = call("grep", ToolCallStatus::Completed, "{}", None);
        assert_eq!(told(&call).get("content"), None);
        call.truncated.result = true;
        assert_eq!(told(&call)["content"][0]["content"]["text"], LEFT_OUT);
    }

    #[test]
    fn built_in_tools_have_kinds_titles_and_places() {
        use ToolCallStatus::Running;
        for (name, args, kind, title, path) in [
            ("shell", r#"{"command":"ls -l\npwd"}"#, "execute", "`ls -l ...`", None),
            ("shell", r#"{"command":"echo `id`"}"#, "execute", "echo `id`", None),
            ("read", r#"{"path":"a.rs","offset":7}"#, "read", "Read a.rs", Some("/w/a.rs")),
            ("grep", r#"{"pattern":"x+"}"#, "search", "Search for x+", None),
            ("delete", r#"{"path":"/x/b"}"#, "delete", "Delete /x/b", Some("/x/b")),
            ("webFetch", r#"{"url":"https://x"}"#, "fetch", "Fetch https://x", None),
            ("novel", "[1]", "other", "novel", None),
        ] {
            let told = told(&call(name, Running, args, None));
            assert_eq!((&told["kind"], &told["title"]), (&json!(kind), &json!(title)));
            assert_eq!(told["locations"][0]["path"].as_str(), path, "{name}");
            assert_eq!(told["status"], "in_progress");
        }
    }

    #[test]
    fn changes_of_files_are_differences() {
        let edit = call(
            "edit",
            ToolCallStatus::Completed,
            r#"{"path":"a","edits":[{"oldText":"x","newText":"y"},{"oldText":"1","newText":"2"}]}"#,
            Some(r#"{"text":"Changed a","isError":false}"#),
        );
        let told_edit = told(&edit);
        assert_eq!(told_edit["content"].as_array().unwrap().len(), 2);
        assert_eq!(
            told_edit["content"][1],
            json!({"type": "diff", "path": "/w/a", "oldText": "1", "newText": "2"})
        );
        let failed = ToolCallEvent { status: ToolCallStatus::Error, ..edit };
        assert_eq!(told(&failed)["content"][2]["content"]["text"], "Changed a");
        let write = call("write", ToolCallStatus::Running, r#"{"path":"/n","content":"new"}"#, None);
        assert_eq!(told(&write)["content"][0]["newText"], "new");
    }

    #[test]
    fn a_servers_call_keeps_the_bytes_of_its_arguments() {
        let done = call(
            "mcp",
            ToolCallStatus::Completed,
            r#"{"providerIdentifier":"db","toolName":"query","args":{"n":12345678901234567890.10}}"#,
            Some(r#"{"content":[{"type":"text","text":"42"}],"isError":false}"#),
        );
        let bytes = serde_json::to_string(&update(&done, true, Path::new("/w"))).unwrap();
        assert!(bytes.contains(r#""rawInput":{"n":12345678901234567890.10}"#), "{bytes}");
        let told = told(&done);
        assert_eq!((&told["title"], &told["kind"]), (&json!("query (db)"), &json!("other")));
        assert_eq!(told["content"][0]["content"]["text"], "42");
    }

    #[test]
    fn a_plan_has_what_is_still_meant() {
        let result = json!({"details": {"todos": [
            {"id": "a", "content": "dig", "status": "in_progress"},
            {"id": "b", "content": "fill", "status": "cancelled"},
        ]}});
        let plan = plan(&RawJson::of(&result)).unwrap();
        assert_eq!(
            plan["entries"],
            json!([{"content": "dig", "priority": "medium", "status": "in_progress"}])
        );
    }
}
