//! Owns the size of what tools answer: what is too large is saved, and the model gets a piece of it and the id to read on
//! with. Waits for the disk: it is called where one may.

use toolway_guard::{Action, Body, CallInfo, Guard, READ_BACK_TOOL, Shape, read_back_definition};
use toolway_wire::{Envelope, Scanner, Verdict};

use super::model::ToolSpec;
use toolway_bridge::RawJson;

/// Characters that stay of an old result which makes room.
const DROPPED: u64 = 1_000;
/// What saved results of built-in tools are listed under.
const SERVER: &str = "built-in";

/// The tool that reads saved results, for models whose servers do not bring it.
pub(super) fn read_back_spec() -> Option<ToolSpec> {
    let definition: serde_json::Value = serde_json::from_str(&read_back_definition()).ok()?;
    Some(ToolSpec {
        name: READ_BACK_TOOL.to_owned(),
        description: definition.get("description")?.as_str()?.to_owned(),
        schema: RawJson::of(definition.get("inputSchema")?),
    })
}

/// The text that stands for a result, if it is too large.
pub(super) fn fitted(guard: &Guard, tool: &str, session: &str, text: &str, is_error: bool) -> Option<String> {
    saved(guard, tool, session, text, is_error, None)
}

/// The text that stands for a result that makes room: the result is saved, whatever its size.
pub(super) fn dropped(guard: &Guard, tool: &str, session: &str, text: &str) -> Option<String> {
    saved(guard, tool, session, text, false, Some(DROPPED))
}

fn saved(
    guard: &Guard,
    tool: &str,
    session: &str,
    text: &str,
    is_error: bool,
    forced: Option<u64>,
) -> Option<String> {
    let result = serde_json::json!({
        "jsonrpc": "2.0",
        "id": 1,
        "result": { "content": [{ "type": "text", "text": text }], "isError": is_error },
    });
    let message = result.to_string().into_bytes();
    let call = CallInfo {
        method: "tools/call".to_owned(),
        tool: Some(tool.to_owned()),
        uri: None,
        server: SERVER.to_owned(),
        session: session.to_owned(),
    };
    let envelope = envelope(&message)?;
    let (shape, limit) = match (forced, guard.action(&envelope, Some(&call))) {
        (Some(limit), _) => (Shape::Tool, limit),
        (None, Action::Replace { shape, limit }) => (shape, limit),
        (None, Action::Pass) => return None,
    };
    let replaced = guard.replace(&envelope, Some(&call), shape, limit, &mut Body::Memory(&message))?;
    text_of(&replaced)
}

fn envelope(message: &[u8]) -> Option<Envelope> {
    match Scanner::new().whole(message) {
        Verdict::Message(envelope) => Some(envelope.clone()),
        _ => None,
    }
}

/// Reads on in a saved result. The text, and whether it is an error.
pub(super) fn read_back(guard: &Guard, arguments: &RawJson, session: &str) -> (String, bool) {
    let answer = guard.call_read_back(b"1", arguments.bytes(), session);
    let parsed: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
    let is_error = parsed.pointer("/result/isError").and_then(serde_json::Value::as_bool).unwrap_or(true);
    (text_of(&answer).unwrap_or_else(|| "The saved result cannot be read.".to_owned()), is_error)
}

fn text_of(message: &[u8]) -> Option<String> {
    let parsed: serde_json::Value = serde_json::from_slice(message).ok()?;
    let blocks = parsed.pointer("/result/content")?.as_array()?;
    let texts = blocks.iter().filter_map(|block| block.get("text").and_then(serde_json::Value::as_str));
    Some(texts.collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolway_guard::{GuardConfig, ReadBack};

    fn guard(dir: &std::path::Path) -> Guard {
        let config = GuardConfig {
            max_response_chars: 40_000,
            read_back: ReadBack::Session,
            ..GuardConfig::new(dir.to_owned())
        };
        Guard::new(config)
    }

    fn id_in(text: &str) -> &str {
        text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
            .find(|word| word.len() >= 8 && word.chars().any(|c| c.is_ascii_digit()))
            .unwrap()
    }

    #[test]
    fn a_large_answer_is_saved_and_can_be_read_on() {
        let dir = tempfile::tempdir().unwrap();
        let guard = guard(dir.path());
        let lines: Vec<_> = (0..20_000).map(|line| format!("line {line}\n")).collect();
        let text = lines.concat();
        assert_eq!(fitted(&guard, "shell", "agent-1", "short", false), None);
        let shown = fitted(&guard, "shell", "agent-1", &text, false).unwrap();
        assert!(shown.chars().count() <= 40_000 && shown.contains("line 0"), "{shown}");
        let saved = guard.store().list().unwrap();
        let id = &saved.first().unwrap().id;
        assert!(shown.contains(id.as_str()), "{shown} {}", id_in(&shown));
        let wanted = RawJson::of(&serde_json::json!({ "id": id, "lines": "15001-15002" }));
        let (page, is_error) = read_back(&guard, &wanted, "agent-1");
        assert!(!is_error && page.contains("line 15000"), "{page}");
        let (_, is_error) = read_back(&guard, &wanted, "agent-2");
        assert!(is_error, "another agent's results are not shown");
    }

    #[test]
    fn an_old_result_makes_room_and_keeps_its_id() {
        let dir = tempfile::tempdir().unwrap();
        let guard = guard(dir.path());
        let shown = dropped(&guard, "grep", "agent-1", &"found something here\n".repeat(300)).unwrap();
        let saved = guard.store().list().unwrap();
        assert!(shown.contains(saved.first().unwrap().id.as_str()), "{shown}");
        assert!(shown.chars().count() <= 1_100, "{}", shown.len());
    }
}
