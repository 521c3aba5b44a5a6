//! What is told of calls, from the updates that real agents send.

use serde_json::{Value, json};

use super::*;

fn calls() -> Calls {
    Calls::new(Names::default(), OpenCalls::new("run-1"))
}

/// Each told thing as a short text.
fn told(calls: &mut Calls, update: &Value) -> Vec<String> {
    let shown = |call: &ToolCallEvent| {
        let raw =
            |value: &Option<RawJson>| value.as_ref().map(|value| value.text().to_owned()).unwrap_or_default();
        format!("{} {:?} {} {}", call.name, call.status, raw(&call.args), raw(&call.result))
            .trim_end()
            .to_owned()
    };
    let told = calls.update(&RawJson::of(update), &|terminal| Some(format!("of {terminal}")));
    told.iter()
        .filter_map(|told| match told {
            Told::Event(EventKind::ToolCall(call)) => Some(shown(call)),
            Told::Delta(Delta::PartialToolCall { name, .. }) => Some(format!("partial {name}")),
            Told::Delta(Delta::ShellOutput { text, .. }) => Some(format!("shell {text}")),
            Told::Delta(Delta::ToolCallProgress { message, .. }) => Some(format!("progress {message}")),
            _ => None,
        })
        .collect()
}

#[test]
fn a_command_is_told_when_it_is_known_and_its_output_once() {
    let mut calls = calls();
    let mut check =
        |update: Value, expected: &[&str]| assert_eq!(told(&mut calls, &update), expected, "{update}");
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "bash", "kind": "execute",
        "status": "pending", "rawInput": {"cwd": "/w"}});
    check(begun, &["partial shell"]);
    let runs = |content: Value| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress", "title": "echo hi",
            "kind": "execute", "rawInput": {"command": "echo hi"}, "content": content})
    };
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    check(runs(Value::Null), &[r#"shell Running {"command":"echo hi"}"#]);
    check(runs(text("hi\n")), &["shell hi\n"]);
    check(runs(text("hi\nho\n")), &["shell ho\n"]);
    check(
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
            "rawOutput": {"output": "hi\nho\n", "exit": 0}}),
        &[
            r#"shell Completed {"command":"echo hi"} {"status":"success","value":{"output":"hi\nho\n","exit":0,"content":"hi\nho\n"}}"#,
        ],
    );
    check(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "failed"}), &[]);
}

#[test]
fn numbers_stay_as_they_were_written() {
    let update = r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"toolway_x","kind":"other","status":"completed","rawInput":{"n":1.10,"id":12345678901234567890123},"rawOutput":{"content":[{"type":"text","text":"1.10"}],"isError":false,"n":1e400}}"#;
    let told = calls().update(&RawJson::new(update.to_owned()).unwrap(), &|_| None);
    let Some(Told::Event(EventKind::ToolCall(call))) = told.last() else { panic!("{told:?}") };
    assert!(
        call.args.as_ref().unwrap().text().contains(r#""n":1.10,"id":12345678901234567890123"#),
        "{call:?}"
    );
}

#[test]
fn a_call_that_is_told_whole_at_once_begins_and_ends() {
    let mut calls = calls();
    let update = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "ls", "kind": "execute",
        "status": "completed", "rawInput": {"command": "ls"}, "content": [{"type": "terminal", "terminalId": "t1"}]});
    let told = told(&mut calls, &update);
    assert_eq!(told.len(), 2);
    assert!(told[1].contains(r#""output":"of t1""#), "{told:?}");
}

#[test]
fn a_servers_tool_keeps_its_name_when_its_title_changes() {
    let mut calls = calls();
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "toolway_one__echo", "kind": "other",
        "status": "in_progress", "rawInput": {"n": 1}});
    let args = r#"{"providerIdentifier":"toolway","toolName":"one__echo","args":{"n":1}}"#;
    assert_eq!(told(&mut calls, &begun), [format!("mcp Running {args}")]);
    let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Echo", "status": "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": "no"}}]});
    let result = r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#;
    assert_eq!(told(&mut calls, &ended), [format!("mcp Error {args} {result}")]);
}

#[test]
fn no_more_calls_are_watched_than_there_is_room_for() {
    let mut calls = calls();
    let mut given_up = 0;
    for number in 0..OPEN + 3 {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{number}"), "title": "t",
            "status": "in_progress", "rawInput": {"command": "x"}});
        given_up += told(&mut calls, &update).iter().filter(|told| told.contains("Error")).count();
    }
    assert_eq!((given_up, calls.open.len()), (3, OPEN));
    let left = calls.finish("over");
    assert_eq!(left.iter().filter(|told| matches!(told, Told::Event(_))).count(), OPEN);
}

#[test]
fn no_more_is_known_of_calls_than_there_is_room_for() {
    let mut calls = calls();
    let large = "x".repeat(BYTES / 3);
    let mut given_up = 0;
    for number in 0..5 {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{number}"), "title": "t",
            "status": "in_progress", "rawInput": {"text": large}});
        given_up += told(&mut calls, &update).iter().filter(|told| told.contains("Error")).count();
    }
    assert_eq!((given_up, calls.open.len()), (3, 2));
}

#[test]
fn a_question_about_a_side_of_a_call_is_about_the_call() {
    let mut calls = calls();
    let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "read", "kind": "read",
        "status": "in_progress", "rawInput": {"filePath": "/etc/hostname"}});
    told(&mut calls, &begun);
    let asked = json!({"toolCallId": "c", "title": "/etc", "kind": "other", "rawInput": {"filePath": "/etc/hostname"}});
    let merged = calls.merged(&RawJson::of(&asked)).tree();
    assert_eq!((&merged["kind"], &merged["rawInput"]["filePath"]), (&json!("read"), &json!("/etc/hostname")));
    let unknown = json!({"toolCallId": "d", "title": "Launch", "kind": "other"});
    assert_eq!(calls.merged(&RawJson::of(&unknown)).tree()["kind"], "other");
}
