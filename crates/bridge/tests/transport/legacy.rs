//! The generation with sessions: 2024-11-05 to 2025-11-25.

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_bridge::{BridgeConfig, HostResult, Profile, RawJson, Settlement};

use crate::rig::{Legacy, Rig, call, initialize, list, text_of, tool};
use crate::wire::Wire;

#[tokio::test]
async fn sessions_are_opened_in_every_legacy_revision() -> Result<()> {
    for profile in Profile::ALL {
        let rig = Rig::of(BridgeConfig::new(profile), vec![tool("echo")]).await?;
        let mut ids = std::collections::BTreeSet::new();
        for (asked, agreed) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("2099-01-01", "2025-11-25"),
            ("1.0", "2025-11-25"),
        ] {
            let answer = rig.ask(&rig.post(&[], initialize(asked).to_string().as_bytes())).await?;
            let result = json!({
                "protocolVersion": agreed,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": profile.server_name, "version": profile.server_version},
            });
            assert_eq!(answer.json()?, json!({"jsonrpc": "2.0", "id": 0, "result": result}), "{asked}");
            ids.insert(answer.head.header("mcp-session-id").context("no session id")?.to_owned());
        }
        assert_eq!((ids.len(), ids.iter().all(|id| id.len() == 32)), (7, true), "random ids");
    }
    Ok(())
}

#[tokio::test]
async fn statement_15_the_list_has_descriptions_guidelines_pointer_and_object_schemas() -> Result<()> {
    let mut odd = tool("odd.one");
    odd.parameters = RawJson::of(&json!({"anyOf": [{"type": "object"}]}));
    odd.guidelines = Vec::new();
    let rig = Rig::of(BridgeConfig::new(Profile::PI), vec![tool("echo"), odd]).await?;
    let session = rig.legacy().await?;
    let answer = session.ask(&rig, &list(7)).await?.json()?;
    let tools = answer["result"]["tools"].as_array().context("no tools")?;
    assert_eq!(
        (answer["id"].clone(), tools.len(), answer["result"].as_object().unwrap().len()),
        (json!(7), 2, 1)
    );
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["pi__echo", "pi__odd_one"]);
    for (tool, host) in tools.iter().zip(["echo", "odd.one"]) {
        let description = tool["description"].as_str().unwrap();
        assert!(description.starts_with(&format!("does {host}")), "{description}");
        assert_eq!(
            description.contains("- be brief\n") || description.ends_with("- be brief"),
            host == "echo"
        );
        assert!(description.contains(tool["name"].as_str().unwrap()) && description.contains(host));
        assert!(description.len() < 400, "the contract is not repeated: {description}");
        assert_eq!(tool["_meta"]["piToolName"], host);
        assert_eq!(tool["inputSchema"]["type"], "object");
        for absent in ["annotations", "title", "outputSchema"] {
            assert!(tool.get(absent).is_none());
        }
    }
    assert_eq!(tools[0]["inputSchema"]["properties"]["text"]["type"], "string");
    // What is listed is what the snapshot says, byte for byte.
    let raw = session.ask(&rig, &list(8)).await?.body;
    let ready = rig.run.snapshot().tools_json();
    assert!(raw.windows(ready.len()).any(|window| window == &ready[..]));
    let paged = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "2"}});
    assert_eq!(session.ask(&rig, &paged).await?.json()?["error"]["code"], -32602);
    Ok(())
}

#[tokio::test]
async fn lesson_02_nothing_waits_for_a_call_and_nothing_is_busy() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut waiting = Vec::new();
    for id in 0..50 {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&session.post(&rig, &call(id, "pi__slow", &json!({"id": id})))).await?;
        waiting.push((wire, rig.started().await?));
    }
    // While they wait, the same session lists, calls and pings, and other clients introduce themselves.
    let ping = json!({"jsonrpc": "2.0", "id": "p", "method": "ping"});
    for message in [list(100), call(101, "pi__echo", &json!({})), ping] {
        assert_eq!(session.ask(&rig, &message).await?.status(), 200, "{message}");
    }
    let other = rig.legacy().await?;
    assert_eq!(other.ask(&rig, &call(1, "pi__echo", &json!({}))).await?.status(), 200);
    assert_eq!(rig.run.pending(), 50);
    // Answers come as the host gives them, in whatever order.
    for (id, (wire, started)) in waiting.iter_mut().enumerate().rev() {
        assert_eq!(started.arguments.text(), format!("{{\"id\":{id}}}"));
        assert_eq!(
            rig.run.settle(&started.id, HostResult::text(&format!("done {id}"))),
            Settlement::Delivered
        );
        let answer = wire.answer().await?.json()?;
        assert_eq!((answer["id"].clone(), text_of(&answer)), (json!(id), format!("done {id}").as_str()));
    }
    Ok(())
}

#[tokio::test]
async fn requests_without_a_session_and_of_other_methods_are_refused() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let none = rig.ask(&rig.post(&[], list(4).to_string().as_bytes())).await?;
    assert_eq!((none.status(), none.json()?["id"].clone()), (400, json!(4)));
    for id in ["0", "", &"0".repeat(32), &session.session.to_uppercase()] {
        let headers = [("Mcp-Session-Id", id)];
        let unknown = rig.ask(&rig.post(&headers, list(5).to_string().as_bytes())).await?;
        assert_eq!((unknown.status(), unknown.json()?["id"].clone()), (404, json!(5)), "{id:?}");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        assert_eq!(rig.ask(&rig.post(&headers, note.as_bytes())).await?.status(), 404);
    }
    for (version, status) in [("2025-03-26", 200), ("2025-11-25", 200), ("1999-01-01", 400), ("x", 400)] {
        let headers = [("Mcp-Session-Id", session.session.as_str()), ("MCP-Protocol-Version", version)];
        let answer = rig.ask(&rig.post(&headers, list(6).to_string().as_bytes())).await?;
        assert_eq!(answer.status(), status, "{version}");
    }
    for method in
        ["resources/list", "prompts/list", "logging/setLevel", "completion/complete", "x", "", "tools/"]
    {
        let message = json!({"jsonrpc": "2.0", "id": 9, "method": method, "params": {}});
        let answer = session.ask(&rig, &message).await?;
        assert_eq!(
            (answer.status(), answer.json()?["error"]["code"].clone()),
            (200, json!(-32601)),
            "{method}"
        );
    }
    for message in [
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call"}),
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": 7}}),
    ] {
        assert_eq!(session.ask(&rig, &message).await?.json()?["error"]["code"], -32602, "{message}");
    }
    // Answers and notifications that nobody asked for are taken and come to nothing.
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 12345}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled"}),
    ] {
        let answer = session.ask(&rig, &message).await?;
        assert_eq!((answer.status(), answer.body.len()), (202, 0), "{message}");
    }
    Ok(())
}

#[tokio::test]
async fn ids_and_arguments_keep_their_bytes() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let headers = [("Mcp-Session-Id", session.session.as_str())];
    for id in ["9007199254740993", "\"a\\u00e9b\"", "-1", "1.50", "\"\""] {
        let arguments = "{ \"n\": 9007199254740993.000,\n \"e\":1e400, \"s\":\"\\u00e9\u{e9}\" }";
        let body = format!(
            "{{\"params\":{{\"arguments\":{arguments},\"name\":\"pi__slow\"}},\"id\":{id},\"method\":\"tools/call\",\"jsonrpc\":\"2.0\"}}"
        );
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&rig.post(&headers, body.as_bytes())).await?;
        let started = rig.started().await?;
        assert_eq!(started.arguments.text(), arguments.replace('\n', " "));
        rig.run.settle(&started.id, HostResult::text("ok"));
        let answer = String::from_utf8(wire.answer().await?.body)?;
        assert!(answer.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")), "{answer}");
    }
    // What is no object is none.
    for odd in ["[1]", "null", "\"x\"", "7"] {
        let params = format!("{{\"name\":\"pi__echo\",\"arguments\":{odd}}}");
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}");
        assert_eq!(text_of(&rig.ask(&rig.post(&headers, body.as_bytes())).await?.json()?), "{}");
    }
    Ok(())
}

#[tokio::test]
async fn a_lost_connection_does_not_end_the_hosts_work() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &call(1, "pi__slow", &json!({})))).await?;
    let started = rig.started().await?;
    drop(wire);
    // The server has seen the end by the time that it has answered others.
    for id in 2..20 {
        session.ask(&rig, &call(id, "pi__echo", &json!({}))).await?;
    }
    assert_eq!((rig.run.pending(), rig.told.try_recv().is_err()), (1, true));
    assert_eq!(rig.run.settle(&started.id, HostResult::text("late")), Settlement::Delivered);
    Ok(())
}

#[tokio::test]
async fn a_cancelled_call_is_stopped_once_and_owed_no_answer() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &call(3, "pi__slow", &json!({})))).await?;
    let started = rig.started().await?;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3, "reason": "x"}});
    // Another session's request of that id is another one.
    let other = rig.legacy().await?;
    other.ask(&rig, &cancel).await?;
    assert_eq!(rig.run.pending(), 1);
    for _ in 0..3 {
        assert_eq!(session.ask(&rig, &cancel).await?.status(), 202);
    }
    let answer = wire.answer().await?;
    assert_eq!((answer.status(), answer.body.len()), (202, 0));
    assert_eq!(rig.cancelled().await?.0, started.id);
    assert_eq!((rig.run.pending(), rig.told.try_recv().is_err()), (0, true), "once");
    assert_eq!(rig.run.settle(&started.id, HostResult::text("late")), Settlement::Unknown);
    assert_eq!(
        session.ask(&rig, &call(3, "pi__echo", &json!({}))).await?.status(),
        200,
        "the id is free again"
    );
    Ok(())
}

#[tokio::test]
async fn a_client_that_ends_its_session_gives_up_its_calls_only() -> Result<()> {
    let mut rig = Rig::new().await?;
    let (first, second) = (rig.legacy().await?, rig.legacy().await?);
    let mut wires = Vec::new();
    for session in [&first, &second] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&session.post(&rig, &call(1, "pi__slow", &json!({})))).await?;
        wires.push((wire, rig.started().await?));
    }
    let delete = |session: &Legacy| {
        let text = String::from_utf8(rig.post(&[("Mcp-Session-Id", &session.session)], b""));
        text.map(|text| text.replacen("POST", "DELETE", 1).into_bytes())
    };
    assert_eq!(rig.ask(&delete(&first)?).await?.status(), 204);
    assert_eq!(rig.ask(&delete(&first)?).await?.status(), 404);
    let (wire, started) = &mut wires[0];
    let owed = wire.answer().await?;
    assert_eq!((owed.status(), owed.body.len()), (202, 0), "nobody is left to answer to");
    assert_eq!(
        rig.told.recv().await.map(|told| format!("{told:?}").contains(started.id.as_str())),
        Some(true)
    );
    assert_eq!(first.ask(&rig, &list(1)).await?.status(), 404);
    assert_eq!(rig.run.pending(), 1);
    let (wire, started) = &mut wires[1];
    rig.run.settle(&started.id, HostResult::text("still"));
    assert_eq!(text_of(&wire.answer().await?.json()?), "still");
    let nameless = String::from_utf8(rig.post(&[], b""))?.replacen("POST", "DELETE", 1);
    assert_eq!(rig.ask(nameless.as_bytes()).await?.status(), 400);
    Ok(())
}

#[tokio::test]
async fn batches_are_for_the_revisions_that_have_them() -> Result<()> {
    let mut rig = Rig::new().await?;
    let ask = |version: &str| rig.post(&[], initialize(version).to_string().as_bytes());
    let old = rig.ask(&ask("2025-03-26")).await?.head.header("mcp-session-id").context("no id")?.to_owned();
    let new = rig.ask(&ask("2025-06-18")).await?.head.header("mcp-session-id").context("no id")?.to_owned();
    let batch = json!([
        list(1),
        call(2, "pi__slow", &json!({})),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(3, "pi__echo", &json!({"a": 1})),
        {"jsonrpc": "2.0", "id": 4, "method": "nope"},
        initialize("2025-03-26"),
        7,
    ])
    .to_string();
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.post(&[("Mcp-Session-Id", &old)], batch.as_bytes())).await?;
    let started = rig.started().await?;
    rig.run.settle(&started.id, HostResult::text("slow"));
    let answers = wire.answer().await?.json()?;
    let mut ids: Vec<String> =
        answers.as_array().unwrap().iter().map(|answer| answer["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["0", "1", "2", "3", "4", "null"]);
    assert_eq!(rig.run.facts().connected, 1);
    let refused = rig.ask(&rig.post(&[("Mcp-Session-Id", &new)], batch.as_bytes())).await?;
    assert_eq!((refused.status(), refused.json()?["error"]["code"].clone()), (400, json!(-32600)));
    let notes = json!([{"jsonrpc": "2.0", "method": "notifications/initialized"}]).to_string();
    assert_eq!(rig.ask(&rig.post(&[("Mcp-Session-Id", &old)], notes.as_bytes())).await?.status(), 202);
    let empty = rig.ask(&rig.post(&[("Mcp-Session-Id", &old)], b"[]")).await?;
    assert_eq!(empty.status(), 400);
    let many: Vec<_> = (0..1001).map(|id| call(id, "pi__slow", &json!({}))).collect();
    let body = serde_json::to_vec(&many)?;
    assert_eq!(rig.ask(&rig.post(&[("Mcp-Session-Id", &old)], &body)).await?.status(), 400);
    assert_eq!(rig.run.pending(), 0, "nothing of it was begun");
    Ok(())
}

#[tokio::test]
async fn lesson_27_exposed_connected_listed_and_called_are_facts_of_their_own() -> Result<()> {
    let rig = Rig::new().await?;
    let facts = || {
        let facts = rig.run.facts();
        (facts.exposed, facts.connected, facts.listed, facts.called)
    };
    assert_eq!(facts(), (2, 0, 0, 0));
    rig.ask(&rig.post(&[], initialize("2025-11-25").to_string().as_bytes())).await?;
    assert_eq!(facts(), (2, 0, 0, 0), "a session without the client's notice is no connection");
    let session = rig.legacy().await?;
    assert_eq!(facts(), (2, 1, 0, 0));
    session.ask(&rig, &list(1)).await?;
    assert_eq!(facts(), (2, 1, 1, 0));
    session.ask(&rig, &call(2, "pi__nothing", &json!({}))).await?;
    assert_eq!(facts(), (2, 1, 1, 0), "an unknown tool was not called");
    session.ask(&rig, &call(3, "pi__echo", &json!({}))).await?;
    assert_eq!(facts(), (2, 1, 1, 1));
    Ok(())
}
