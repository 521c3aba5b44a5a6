//! What waits for the disk: the task goes on, and the order of the lines holds.

use std::fs;

use super::*;

/// A task that was told hello and has one tool.
async fn task() -> Task {
    let mut task = Task::start();
    task.hello().await;
    let tools = json!({"tools": [{"name": "a"}]});
    task.lines.send(request(2, "tools/declare", &tools)).await.unwrap();
    assert_eq!(task.next().await["id"], 2);
    task
}

#[tokio::test]
async fn what_comes_after_a_declaration_of_skills_sees_them() {
    let folder = tempfile::tempdir().unwrap();
    let skill = json!({"name": "s", "description": "d", "filePath": folder.path().join("SKILL.md")});
    let mut task = task().await;
    for n in 0..20 {
        let skills = if n % 2 == 0 { json!([skill]) } else { json!([]) };
        task.lines.send(request(100 + n, "skills/declare", &json!({ "skills": skills }))).await.unwrap();
        task.lines.send(request(200 + n, "manifest/read", &json!({}))).await.unwrap();
        let (declared, manifest) = (task.next().await, task.next().await);
        assert_eq!((&declared["id"], &manifest["id"]), (&json!(100 + n), &json!(200 + n)));
        assert_eq!(declared["result"]["toolActive"], n % 2 == 0);
        let names = manifest["result"]["names"].as_array().unwrap().len();
        assert_eq!(names, if n % 2 == 0 { 2 } else { 1 }, "{manifest}");
    }
}

#[tokio::test]
async fn a_card_that_shows_a_local_file_comes_before_its_answer_and_before_the_next_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, "in the file").unwrap();
    let mut task = task().await;
    task.lines.send(request(3, "run/open", &json!({}))).await.unwrap();
    let run = task.next().await["result"]["run"].take();
    let begin = json!({"run": run, "cwd": folder.path(), "mode": "tui", "wrappers": ["read"], "contextTools": ["read"]});
    task.lines.send(request(4, "display/begin", &begin)).await.unwrap();
    assert_eq!(task.next().await["result"], json!({}));
    // The agent says what it reads at the start, and nothing of what it has read.
    let event = |kind: &str, args: Value, result: Value| json!({"event": {"type": kind, "callId": "c", "toolCall": {"type": "read", "args": args, "result": result}}});
    let started = event("tool-call-started", json!({ "path": file }), Value::Null);
    task.lines.send(request(5, "display/tool", &started)).await.unwrap();
    let completed = event("tool-call-completed", json!({}), json!({"status": "success", "value": {}}));
    task.lines.send(request(6, "display/tool", &completed)).await.unwrap();
    task.lines.send(request(7, "display/end", &json!({"outcome": "answered"}))).await.unwrap();
    assert_eq!(task.next().await["id"], 5);
    let shown = task.next().await;
    assert_eq!((shown["method"].as_str(), task.next().await["id"].as_u64()), (Some("display/show"), Some(6)));
    assert_eq!(task.next().await["id"], 7);
    let take = json!({"id": shown["params"]["items"][0]["id"], "tool": "read"});
    task.lines.send(request(8, "replay/take", &take)).await.unwrap();
    let record = task.next().await;
    assert!(
        record["result"]["content"][0]["text"].as_str().unwrap().ends_with("content]\nin the file"),
        "{record}"
    );
}

#[tokio::test]
async fn half_characters_in_the_texts_of_a_host_stop_no_prompt() {
    let mut desk = Desk::new(&["a"]).await;
    let line = r#"{"jsonrpc":"2.0","id":77,"method":"prompt/next","params":{"system":{"text":"be \ud83d kind"},"messages":[{"role":"user","content":"cut \udc00 here","data":{"x":[1]}}]}}"#;
    desk.connection.on_line(HostLine::Whole(Bytes::from_static(line.as_bytes())), Instant::now());
    let answer = desk.lines().remove(0);
    let text = answer["result"]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(text.contains("be  kind") && text.contains("cut  here"), "{text}");
}

#[tokio::test]
async fn a_message_that_is_none_is_told_in_words_of_the_protocol() {
    let mut desk = Desk::new(&["a"]).await;
    for (messages, text) in [
        (json!([{"role": "user"}, 5]), "params.messages: invalid type: integer `5`, expected a message"),
        (json!([{"role": 1}]), "params.messages: invalid type: integer `1`, expected a string"),
        (json!([{"content": "a"}]), "params.messages: missing field `role`"),
    ] {
        let error = desk.ask("prompt/next", json!({ "messages": messages })).await;
        assert_eq!(error["message"], text);
    }
}

#[tokio::test]
async fn only_a_host_without_a_tool_of_its_name_has_nothing_behind_the_display_tool() {
    let mut desk = Desk::new(&["agent"]).await;
    let take = json!({"id": "call_1", "tool": "agent"});
    assert_eq!(desk.ask("replay/take", take.clone()).await["recorded"], false, "a real tool of the host");
    let own = json!({"tools": [{"name": "agent"}], "ownDisplayTool": true});
    for tools in [own, json!({"tools": []})] {
        desk.ask("tools/declare", tools).await;
        assert_eq!(desk.ask("replay/take", take.clone()).await["data"]["kind"], "record");
    }
    desk.ask("tools/declare", json!({"tools": [{"name": "agent"}]})).await;
    let replay = json!({"id": "toolway-replay-1", "tool": "agent"});
    assert_eq!(desk.ask("replay/take", replay).await["data"]["kind"], "record");
}

#[tokio::test]
async fn a_secret_that_the_host_names_is_in_nothing_that_is_shown() {
    let mut desk = Desk::new(&["a"]).await;
    let begin = json!({"secrets": ["correct horse"]});
    desk.ask("display/begin", begin.clone()).await;
    let result = json!({"status": "success", "value": {"stdout": "it is correct horse", "exitCode": 0}});
    let call = json!({"type": "shell", "args": {"command": "echo correct horse"}, "result": result});
    let event = json!({"type": "tool-call-completed", "callId": "c", "toolCall": call});
    let line = request(500, "display/tool", &json!({ "event": event }));
    desk.connection.on_line(line, Instant::now());
    let shown = desk.lines().remove(0).to_string();
    assert!(shown.contains("[redacted]") && !shown.contains("horse"), "{shown}");
    let params: crate::protocol::requests::BeginDisplay = serde_json::from_value(begin).unwrap();
    assert!(!format!("{params:?}").contains("horse"));
}
