//! Prompts: what the editor sees of text, thinking, tool calls, changes of files, plans, and how prompts end.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::editor::House;

fn call(name: &str, arguments: &Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}]})
}

#[test]
fn text_and_thinking_come_in_pieces_and_tokens_with_the_end() -> Result<()> {
    let house = House::new(&json!({"replies": [{
        "thinking": "Let me see.", "text": ["Hel", "lo ", "there."],
        "usage": {"input": 30, "output": 7},
    }]}))?;
    let mut editor = house.editor(&[])?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "greet me\nplease")?;
    let answer = editor.answer(prompt)?["result"].clone();
    ensure!(answer["stopReason"] == "end_turn" && answer["usage"]["totalTokens"] == 37, "{answer}");
    assert_eq!(editor.said("agent_message_chunk"), "Hello there.");
    assert_eq!(editor.said("agent_thought_chunk"), "Let me see.");
    ensure!(editor.updates("agent_message_chunk").len() > 1);
    ensure!(editor.updates("session_info_update")[0]["title"] == "greet me");
    ensure!(editor.seen.iter().all(|message| message["params"]["sessionId"] == session.as_str()));
    let (code, stderr) = editor.close()?;
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    house.leave()
}

#[test]
fn a_changed_file_is_a_difference_and_the_list_of_work_a_plan() -> Result<()> {
    let todos = json!({"todos": [{"id": "a", "content": "write it", "status": "in_progress"}]});
    let house = House::new(&json!({"replies": [
        call("updateTodos", &todos),
        call("write", &json!({"path": "a.txt", "content": "one\n"})),
        call("edit", &json!({"path": "a.txt", "oldText": "one", "newText": "two"})),
        call("edit", &json!({"path": "a.txt", "oldText": "nine", "newText": "ten"})),
        {"text": "Done."},
    ]}))?;
    let mut editor = house.editor(&["--yes"])?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "do it")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    assert_eq!(std::fs::read_to_string(house.work("a.txt"))?, "two\n");
    let plan = &editor.updates("plan")[0]["entries"];
    assert_eq!(plan, &json!([{"content": "write it", "priority": "medium", "status": "in_progress"}]));

    let begun = editor.updates("tool_call");
    ensure!(begun.len() == 3 && begun.iter().all(|call| call["kind"] == "edit"), "{begun:#?}");
    let ended = editor.updates("tool_call_update");
    let ended: Vec<&&Value> = ended
        .iter()
        .filter(|call| ["completed", "failed"].iter().any(|word| call["status"] == *word))
        .collect();
    let status: Vec<&str> = ended.iter().filter_map(|call| call["status"].as_str()).collect();
    assert_eq!(status, ["completed", "completed", "failed"]);
    let path = house.work("a.txt");
    assert_eq!(
        ended[1]["content"],
        json!([{"type": "diff", "path": path, "oldText": "one", "newText": "two"}])
    );
    ensure!(
        ended[1]["locations"][0]["path"] == json!(path) && ended[1]["title"] == "Edit a.txt",
        "{ended:#?}"
    );
    let failed = ended[2]["content"].to_string();
    ensure!(failed.contains("Nothing was changed"), "{failed}");
    assert_eq!(editor.close()?.0, Some(0));
    house.leave()
}

#[test]
fn what_goes_with_a_prompt_reaches_the_model() -> Result<()> {
    let house = House::new(&json!({"otherwise": {"text": "Seen."}}))?;
    let mut editor = house.editor(&[])?;
    let session = editor.open(&house.place(&[]))?;
    let dot =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let blocks = json!([
        {"type": "text", "text": "Look at"},
        {"type": "resource_link", "name": "b.rs", "uri": "file:///w/b%20c.rs"},
        {"type": "resource", "resource": {"uri": "file:///w/d.rs", "text": "fn inside() {}"}},
        {"type": "image", "mimeType": "image/png", "data": dot},
    ]);
    editor.ask("session/prompt", &json!({"sessionId": session, "prompt": blocks}))?;
    let asked = house.model.requests();
    for part in ["[b.rs](/w/b c.rs)", "fn inside() {}", dot] {
        ensure!(asked[0].text.contains(part), "{part} is not in {}", asked[0].text);
    }
    let audio = json!([{"type": "audio", "mimeType": "audio/wav", "data": "AA=="}]);
    let (code, text) = editor.refused("session/prompt", &json!({"sessionId": session, "prompt": audio}))?;
    ensure!(code == -32602 && text.contains("audio"), "{code} {text}");
    drop(editor);
    house.leave()
}

#[test]
fn a_prompt_is_cancelled_and_another_one_meanwhile_is_refused() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"user": "for ever"}, "reply": {"text": ["on and ", "on and "], "endless": true, "pause": 20}},
        {"when": {"user": "short"}, "reply": {"text": "Short."}},
    ]}))?;
    let mut editor = house.editor(&[])?;
    let (one, two) = (editor.open(&house.place(&[]))?, editor.open(&house.place(&[]))?);
    let prompt = editor.prompt(&one, "for ever")?;
    editor
        .next("a piece", |message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")?;
    let second = editor.prompt(&one, "short")?;
    let (code, text) = crate::editor::error(&editor.answer(second)?)?;
    ensure!(code == -32600 && text.contains("on its way"), "{code} {text}");
    // Another session is not in the way of it.
    let other = editor.prompt(&two, "short")?;
    assert_eq!(editor.end(other)?, "end_turn");
    editor.tell("session/cancel", &json!({"sessionId": one}))?;
    assert_eq!(editor.end(prompt)?, "cancelled");
    let again = editor.prompt(&one, "short")?;
    assert_eq!(editor.end(again)?, "end_turn");
    drop(editor);
    house.leave()
}

#[test]
fn limits_refusals_and_failures_are_told() -> Result<()> {
    let house = House::new(&json!({"rules": [
        {"when": {"user": "broken"}, "reply": {"status": 400, "error": "no such thing"}},
        {"when": {"user": "bad"}, "reply": {"refusal": "I will not."}},
        {"when": {"result": ""}, "reply": call("ls", &json!({"path": "."}))},
        {"when": {"user": "loop"}, "reply": call("ls", &json!({}))},
    ]}))?;
    let mut editor = house.editor(&["--limit-turns", "2"])?;
    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "loop")?;
    assert_eq!(editor.end(prompt)?, "max_turn_requests");
    let prompt = editor.prompt(&session, "bad")?;
    assert_eq!(editor.end(prompt)?, "refusal");
    let prompt = editor.prompt(&session, "broken")?;
    let (code, text) = crate::editor::error(&editor.answer(prompt)?)?;
    ensure!(code == -32603 && text.contains("no such thing"), "{code} {text}");
    drop(editor);
    house.leave()
}
