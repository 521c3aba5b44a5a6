//! Behaviour of the reader, on events as agents send them.

use serde_json::json;

use super::*;
use crate::replay::activity::AgentToolEvent as Event;

fn event(text: &str) -> Option<Event> {
    read(&RawJson::new(text.as_bytes().to_vec()).unwrap())
}

fn call(id: &str, kind: &str, args: &str, result: Option<&str>, status: ToolStatus) -> ToolActivity {
    let json = |text: &str| RawJson::new(text.as_bytes().to_vec()).unwrap();
    ToolActivity {
        id: id.to_owned(),
        kind: kind.to_owned(),
        args: json(args),
        result: result.map(json),
        status,
    }
}

#[test]
fn updates_of_the_sdk_are_read_byte_for_byte() {
    assert_eq!(
        event(
            r#"{"type":"tool-call-started","callId":"c","modelCallId":"m","toolCall":{"type":"shell","args":{"command":"ls","n":9007199254740993}}}"#
        ),
        Some(Event::Started(call(
            "c",
            "shell",
            r#"{"command":"ls","n":9007199254740993}"#,
            None,
            ToolStatus::Running
        )))
    );
    assert_eq!(
        event(r#"{"type":"partial-tool-call","callId":"c","toolCall":{"type":"shell"}}"#),
        Some(Event::Partial(call("c", "shell", "{}", None, ToolStatus::Running)))
    );
    let result = r#"{"status":"success","value":{"stdout":"hi","exitCode":0}}"#;
    let text = format!(
        r#"{{"type":"tool-call-completed","callId":"c","toolCall":{{"type":"shell","args":{{}},"result":{result}}}}}"#
    );
    assert_eq!(
        event(&text),
        Some(Event::Completed(call("c", "shell", "{}", Some(result), ToolStatus::Completed)))
    );
    let step = format!(
        r#"{{"type":"step-completed","step":{{"type":"toolCall","message":{{"type":"shell","args":{{}},"result":{result}}}}}}}"#
    );
    assert_eq!(
        event(&step),
        Some(Event::Completed(call("", "shell", "{}", Some(result), ToolStatus::Completed)))
    );
    assert_eq!(
        event(r#"{"type":"shell-output-delta","event":{"case":"stderr","value":{"data":"oh"}}}"#),
        Some(Event::Output { id: None, stream: OutputStream::Stderr, text: "oh".to_owned() })
    );
    assert_eq!(
        event(r#"{"type":"tool_call","call_id":"c","name":"mcp","status":"error","args":{"a":1}}"#),
        Some(Event::Completed(call("c", "mcp", r#"{"a":1}"#, None, ToolStatus::Failed)))
    );
}

#[test]
fn lines_of_the_command_line_tool_name_the_tool_by_a_key() {
    assert_eq!(
        event(
            r#"{"type":"tool_call","subtype":"started","call_id":"a\nb","tool_call":{"lsToolCall":{"args":{"path":"/x"}}},"session_id":"s"}"#
        ),
        Some(Event::Started(call("a\nb", "ls", r#"{"path":"/x"}"#, None, ToolStatus::Running)))
    );
    assert_eq!(
        event(
            r#"{"type":"tool_call","subtype":"completed","call_id":"c","tool_call":{"description":{},"readToolCall":{"args":{"path":"a"},"result":{"success":{"content":"x"}}}}}"#
        ),
        Some(Event::Completed(call(
            "c",
            "read",
            r#"{"path":"a"}"#,
            Some(r#"{"success":{"content":"x"}}"#),
            ToolStatus::Completed
        )))
    );
    assert_eq!(
        event(
            r#"{"type":"tool_call","subtype":"started","call_id":"c","tool_call":{"function":{"name":"constructor","arguments":"{\"a\":1}"}}}"#
        ),
        Some(Event::Started(call("c", "constructor", r#""{\"a\":1}""#, None, ToolStatus::Running)))
    );
}

#[test]
fn session_updates_of_the_agent_client_protocol_are_read() {
    let started = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"Run","kind":"execute","status":"pending","rawInput":{"command":"ls","n":1e400}}}}"#;
    assert_eq!(
        event(started),
        Some(Event::Started(call("t", "shell", r#"{"command":"ls","n":1e400}"#, None, ToolStatus::Running)))
    );
    let Some(Event::Completed(edit)) = event(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","kind":"edit","content":[{"type":"diff","path":"/w/a","oldText":"x","newText":"y"}]}"#,
    ) else {
        panic!("a completion")
    };
    assert_eq!(
        (edit.kind.as_str(), edit.args.tree()),
        ("edit", json!({"path": "/w/a", "oldText": "x", "newText": "y"}))
    );
    let Some(Event::Completed(new)) = event(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","kind":"edit","content":[{"type":"diff","path":"/w/a","oldText":null,"newText":"y"}]}"#,
    ) else {
        panic!("a completion")
    };
    assert_eq!((new.kind.as_str(), new.args.tree()), ("write", json!({"path": "/w/a", "content": "y"})));
    let Some(Event::Completed(failed)) = event(
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no"}}]}"#,
    ) else {
        panic!("a completion")
    };
    assert_eq!((failed.kind.as_str(), failed.status), ("", ToolStatus::Failed));
    assert_eq!(failed.result.unwrap().tree()["error"], "no");
}

#[test]
fn kinds_of_the_protocol_become_tools_by_what_is_in_the_call() {
    for (kind, input, expected) in [
        ("read", "{}", "read"),
        ("execute", "{}", "shell"),
        ("search", r#"{"pattern":"x"}"#, "grep"),
        ("search", r#"{"globPattern":"*"}"#, "glob"),
        ("search", "{}", "search"),
        ("fetch", r#"{"url":"https://x"}"#, "webFetch"),
        ("fetch", r#"{"query":"x"}"#, "webSearch"),
        ("delete", "{}", "delete"),
        ("move", "{}", "move"),
        ("other", r#"{"toolName":"t"}"#, "mcp"),
        ("other", "{}", "A title"),
        ("think", "{}", "A title"),
    ] {
        let text = format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"t","title":"A title","kind":"{kind}","rawInput":{input}}}"#
        );
        assert_eq!(event(&text).unwrap().activity().unwrap().kind, expected, "{kind} {input}");
    }
}

#[test]
fn everything_else_is_no_event_of_a_tool() {
    for text in [
        "null",
        "1",
        "[]",
        "{}",
        "\"tool_call\"",
        r#"{"type":"text-delta","text":"x"}"#,
        r#"{"type":"tool-call-started"}"#,
        r#"{"type":"tool-call-started","toolCall":5}"#,
        r#"{"type":"step-completed","stepId":1}"#,
        r#"{"type":"tool_call","subtype":"started","tool_call":{}}"#,
        r#"{"type":"shell-output-delta","event":{}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#,
        r#"{"sessionUpdate":"tool_call"}"#,
    ] {
        assert_eq!(event(text), None, "{text}");
    }
}

#[test]
fn an_invocation_holds_no_result() {
    let Some(Event::Completed(it)) = event(
        r#"{"type":"tool-call-completed","callId":"c","toolCall":{"type":"mcp","args":{"name":"x"},"result":{"name":"pi__y"}}}"#,
    ) else {
        panic!("a completion")
    };
    assert_eq!(it.invocation().text(), r#"{"type":"mcp","callId":"c","args":{"name":"x"}}"#);
}

#[test]
fn a_call_without_a_kind_is_called_by_its_title() {
    let read = |text: &str| AgentToolEvent::read(&RawJson::new(text.to_owned()).unwrap()).unwrap();
    let started =
        read(r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"Do a thing","status":"pending"}"#);
    assert_eq!(started.activity().unwrap().kind, "Do a thing");
    let later =
        read(r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Done","status":"completed"}"#);
    assert_eq!(later.activity().unwrap().kind, "");
}
