//! Events go to JSON and come back as they were.

use toolway_bridge::RawJson;

use super::*;

fn event(kind: EventKind) -> Event {
    Event {
        agent_id: "agent-00000000-0000-4000-8000-000000000000".parse().unwrap(),
        run_id: "run-00000000-0000-4000-8000-000000000001".parse().unwrap(),
        kind,
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::new(text.to_owned()).unwrap()
}

/// The JSON of a kind without the ids, which all have.
fn json(kind: EventKind) -> String {
    let event = event(kind);
    let json = event.to_json();
    assert_eq!(Event::from_json(&json).unwrap(), event, "{json}");
    json.replace(
        r#""agent_id":"agent-00000000-0000-4000-8000-000000000000","run_id":"run-00000000-0000-4000-8000-000000000001""#,
        "IDS",
    )
}

#[test]
fn every_kind_has_its_members_and_comes_back() {
    let call = ToolCallEvent {
        call_id: "c1".into(),
        name: "mcp".into(),
        status: ToolCallStatus::Completed,
        args: Some(raw(r#"{"providerIdentifier":"a-b","toolName":"c","args":{"n":9007199254740993}}"#)),
        result: None,
        truncated: Truncated { args: false, result: true },
    };
    let init = SystemInit {
        model: Some("m".into()),
        runtime: "native".into(),
        tools: vec!["shell".into()],
        mcp_tools: vec![ToolPair { server: "a".into(), tool: "b-c".into() }],
        ..SystemInit::default()
    };
    let usage = Usage { input: 1, output: 2, cache_read: 3, cache_write: 4, reasoning: Some(1) };
    let input = raw(r#"{"big":123456789012345678901234567890,"f":1.50}"#);
    for (kind, text) in [
        (
            EventKind::System(Box::new(init)),
            r#"{"type":"system","subtype":"init",IDS,"model":"m","runtime":"native","tools":["shell"],"mcp_tools":[{"server":"a","tool":"b-c"}],"mcp_servers":[],"diagnostics":[]}"#,
        ),
        (
            EventKind::User { text: "hi \u{1F600}".into() },
            "{\"type\":\"user\",IDS,\"message\":{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi \u{1F600}\"}]}}",
        ),
        (
            EventKind::Assistant {
                content: vec![
                    AssistantBlock::Text("a".into()),
                    AssistantBlock::ToolUse { id: "c1".into(), name: "db__q".into(), input },
                ],
            },
            r#"{"type":"assistant",IDS,"message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"c1","name":"db__q","input":{"big":123456789012345678901234567890,"f":1.50}}]}}"#,
        ),
        (
            EventKind::Thinking { text: "hm".into(), thinking_duration_ms: Some(5) },
            r#"{"type":"thinking",IDS,"text":"hm","thinking_duration_ms":5}"#,
        ),
        (
            EventKind::ToolCall(call),
            r#"{"type":"tool_call",IDS,"call_id":"c1","name":"mcp","status":"completed","args":{"providerIdentifier":"a-b","toolName":"c","args":{"n":9007199254740993}},"truncated":{"result":true}}"#,
        ),
        (
            EventKind::Status { status: RunStatus::Expired, message: Some("given up".into()) },
            r#"{"type":"status",IDS,"status":"EXPIRED","message":"given up"}"#,
        ),
        (
            EventKind::Status { status: RunStatus::Running, message: None },
            r#"{"type":"status",IDS,"status":"RUNNING"}"#,
        ),
        (EventKind::Request { request_id: "r".into() }, r#"{"type":"request",IDS,"request_id":"r"}"#),
        (
            EventKind::Task { status: Some("compaction".into()), text: None },
            r#"{"type":"task",IDS,"status":"compaction"}"#,
        ),
        (
            EventKind::Usage(usage),
            r#"{"type":"usage",IDS,"usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"reasoning":1},"total":10}"#,
        ),
    ] {
        assert_eq!(json(kind), text);
    }
}

#[test]
fn what_is_no_event_is_refused_by_name() {
    let ids = r#""agent_id":"agent-00000000-0000-4000-8000-000000000000","run_id":"run-00000000-0000-4000-8000-000000000001""#;
    for (members, reason) in [
        (r#""type":"magic""#, "unknown type of event \"magic\""),
        (r#""type":"status""#, "missing field `status`"),
        (r#""type":"status","status":"BUSY""#, "unknown variant `BUSY`"),
        (r#""type":"tool_call","name":"x","status":"running""#, "missing field `call_id`"),
        (r#""type":"user""#, "missing field `role`"),
    ] {
        let error = Event::from_json(&format!("{{{members},{ids}}}")).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(Event::from_json(r#"{"type":"task","agent_id":"../x","run_id":"y"}"#).is_err());
}

#[test]
fn a_result_that_is_null_is_not_taken_for_one_that_is_there() {
    let kind = EventKind::ToolCall(ToolCallEvent {
        call_id: "c".into(),
        name: "shell".into(),
        status: ToolCallStatus::Running,
        args: Some(raw("{}")),
        result: None,
        truncated: Truncated::default(),
    });
    assert_eq!(
        json(kind),
        r#"{"type":"tool_call",IDS,"call_id":"c","name":"shell","status":"running","args":{}}"#
    );
}
