//! What an agent says, does and uses comes out as events and deltas, and its servers are really there.

use anyhow::{Result, ensure};
use serde_json::json;
use toolway_agent::{
    AssistantBlock, Delta, EventKind, McpServer, McpServers, ToolCallStatus, TurnEnd, TurnStop, Usage,
};

use crate::rig::{Rig, script};

#[tokio::test]
async fn what_an_agent_tells_comes_out_as_events() -> Result<()> {
    let rig = Rig::new(&script(json!([
        {"think": "Let me "}, {"think": "see."},
        {"say": "I look "}, {"say": "first."},
        {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "Read a.txt", "kind": "read",
            "status": "pending", "rawInput": {"path": "a.txt", "big": 3}}},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "hello"}}]}},
        {"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed"}},
        {"update": {"sessionUpdate": "plan", "entries": [
            {"content": "one", "priority": "high", "status": "completed"},
            {"content": "two", "priority": "low", "status": "pending"}]}},
        {"update": {"sessionUpdate": "something_new", "x": 1}},
        {"say": "Done."},
        {"end": {"stopReason": "end_turn", "usage":
            {"inputTokens": 100, "outputTokens": 20, "totalTokens": 120, "cachedReadTokens": 60}}},
    ])))?;
    let (end, sink) = rig.prompt("go").await?;
    let usage = Usage { input: 40, output: 20, cache_read: 60, cache_write: 0, reasoning: None };
    assert_eq!(
        end?,
        TurnEnd { stop: TurnStop::Finished, result: Some("Done.".to_owned()), usage, cost: None }
    );
    let mut kinds = Vec::new();
    for event in sink.events() {
        match event {
            EventKind::Thinking { text, .. } => kinds.push(format!("thinking {text}")),
            EventKind::Assistant { content } => kinds.push(format!("assistant {content:?}")),
            EventKind::ToolCall(call) => {
                let raw = |value: Option<toolway_bridge::RawJson>| {
                    value.map(|value| value.text().to_owned()).unwrap_or_default()
                };
                kinds.push(format!(
                    "call {} {:?} {} {}",
                    call.name,
                    call.status,
                    raw(call.args),
                    raw(call.result)
                ));
            }
            EventKind::Task { status, text } => kinds.push(format!("task {status:?} {text:?}")),
            EventKind::Usage(told) => ensure!(told == usage),
            other => kinds.push(format!("{other:?}")),
        }
    }
    let said = |text: &str| format!("assistant {:?}", vec![AssistantBlock::Text(text.to_owned())]);
    let args = r#"{"path":"a.txt","big":3}"#;
    let expected = [
        "thinking Let me see.".to_owned(),
        said("I look first."),
        format!("call read Running {args} "),
        format!(r#"call read Completed {args} {{"status":"success","value":{{"content":"hello"}}}}"#),
        r#"task Some("plan") Some("[x] one\n[ ] two")"#.to_owned(),
        said("Done."),
    ];
    assert_eq!(kinds, expected);
    let text: String = sink
        .deltas()
        .iter()
        .filter_map(|delta| match delta {
            Delta::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "I look first.Done.");
    Ok(())
}

#[tokio::test]
async fn every_reason_to_stop_is_told_apart() -> Result<()> {
    for (reason, expected) in [
        ("max_tokens", "Limit"),
        ("max_turn_requests", "Limit"),
        ("refusal", "Refused"),
        ("cancelled", "Cancelled"),
        ("end_turn", "Finished"),
    ] {
        let rig = Rig::new(&script(json!([{"say": "x"}, {"end": reason}])))?;
        let (end, _) = rig.prompt("go").await?;
        let stop = format!("{:?}", end?.stop);
        ensure!(stop.starts_with(expected), "{reason}: {stop}");
    }
    Ok(())
}

#[tokio::test]
async fn a_call_without_an_end_is_ended_with_the_prompt() -> Result<()> {
    let rig = Rig::new(&script(json!([
        {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "t", "kind": "execute",
            "status": "in_progress", "rawInput": {"command": "ls"}}},
    ])))?;
    let (end, sink) = rig.prompt("go").await?;
    end?;
    let statuses: Vec<ToolCallStatus> = sink
        .events()
        .into_iter()
        .filter_map(|event| match event {
            EventKind::ToolCall(call) => Some(call.status),
            _ => None,
        })
        .collect();
    assert_eq!(statuses, [ToolCallStatus::Running, ToolCallStatus::Error]);
    Ok(())
}

/// One stdio server and what its tool answers.
fn servers(rig: &Rig) -> Result<McpServers> {
    let tool = r#"tool {"name":"echo","inputSchema":{"type":"object"}}
on tools/call/echo -> text from the server"#;
    let path = rig.outside().join("server.script");
    std::fs::write(&path, tool)?;
    let fake = toolway_testkit::fakemcp()?;
    let server =
        McpServer::command(fake.to_string_lossy().into_owned()).args([path.to_string_lossy().into_owned()]);
    Ok(McpServers::new().with("one", server.required()))
}

#[tokio::test]
async fn its_servers_reach_the_agent_and_their_tools_are_told_as_pairs() -> Result<()> {
    let rig = Rig::new(&script(json!([
        {"mcp": {"server": "toolway", "tool": "one__echo", "arguments": {"n": 1.50}}},
        {"say": "called"},
    ])))?;
    let servers = servers(&rig)?;
    let rig = rig.servers(servers);
    let (end, sink) = rig.prompt("go").await?;
    assert_eq!(end?.result.as_deref(), Some("called"));
    let entries = rig.calls("session/new")?;
    let entry = &entries[0]["mcpServers"][0];
    ensure!(entry["type"] == "http" && entry["name"] == "toolway", "{entry}");
    ensure!(
        entry["headers"][0]["value"].as_str().is_some_and(|value| value.starts_with("Bearer ")),
        "{entry}"
    );
    let calls: Vec<_> = sink
        .events()
        .into_iter()
        .filter_map(|event| match event {
            EventKind::ToolCall(call) => Some(call),
            _ => None,
        })
        .collect();
    assert_eq!(calls.len(), 2, "{calls:?}");
    ensure!(calls.iter().all(|call| call.name == "mcp"), "{calls:?}");
    let noted: Vec<_> = rig.journal()?.into_iter().filter(|event| event["event"] == "server").collect();
    assert_eq!(
        noted,
        [json!({"event": "server", "name": "toolway", "tools": ["one__echo", "toolway_saved"]})]
    );
    let args = calls[1].args.as_ref().map(toolway_bridge::RawJson::tree);
    assert_eq!(args, Some(json!({"providerIdentifier": "one", "toolName": "echo", "args": {"n": 1.5}})));
    let result = calls[1].result.as_ref().map(toolway_bridge::RawJson::tree);
    assert_eq!(
        result,
        Some(json!({"content": [{"type": "text", "text": "from the server"}], "isError": false}))
    );
    Ok(())
}

#[tokio::test]
async fn an_agent_that_takes_no_http_and_no_binary_between_is_told_not_ignored() -> Result<()> {
    let mut script = script(json!([{"say": "x"}]));
    script["initialize"] = json!({"agentCapabilities": {"mcpCapabilities": {"http": false}}});
    let rig = Rig::new(&script)?;
    let servers = servers(&rig)?;
    let (end, _) = rig.servers(servers).prompt("go").await?;
    let error = end.unwrap_err();
    ensure!(error.code() == "validation_error" && error.to_string().contains("toolway binary"), "{error}");
    Ok(())
}
