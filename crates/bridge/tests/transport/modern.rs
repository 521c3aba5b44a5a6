//! The generation without sessions: 2026-07-28.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_bridge::{BridgeConfig, HostResult, Profile, Progress, RawJson, Settlement};

use crate::rig::{Rig, modern, text_of, tool};
use crate::wire::Wire;

fn call(id: u64, name: &str, arguments: &Value) -> Value {
    modern(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

/// What says who gives a result.
fn server() -> Value {
    json!({"name": Profile::PI.server_name, "version": Profile::PI.server_version})
}

#[tokio::test]
async fn a_modern_client_discovers_lists_and_calls() -> Result<()> {
    let rig = Rig::new().await?;
    let found = rig.ask(&rig.modern(&modern(1, "server/discover", json!({})))).await?;
    let result = json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": server()},
    });
    assert_eq!(found.json()?, json!({"jsonrpc": "2.0", "id": 1, "result": result}));
    assert!(found.head.header("mcp-session-id").is_none());
    let listed = rig.ask(&rig.modern(&modern(2, "tools/list", json!({})))).await?.json()?;
    let result = &listed["result"];
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(0), &json!("private"))
    );
    let legacy = rig.legacy().await?.ask(&rig, &crate::rig::list(1)).await?.json()?;
    assert_eq!(result["tools"], legacy["result"]["tools"]);
    let called = rig.ask(&rig.modern(&call(3, "pi__echo", &json!({"a": 1})))).await?.json()?;
    assert_eq!((&called["result"]["resultType"], text_of(&called)), (&json!("complete"), "{\"a\":1}"));
    let unknown = rig.ask(&rig.modern(&call(4, "pi__nothing", &json!({})))).await?.json()?;
    assert_eq!(
        (&unknown["result"]["resultType"], &unknown["result"]["isError"]),
        (&json!("complete"), &json!(true))
    );
    for answer in [&listed, &called, &unknown] {
        assert_eq!(answer["result"]["_meta"], json!({"io.modelcontextprotocol/serverInfo": server()}));
    }
    Ok(())
}

#[tokio::test]
async fn headers_and_meta_are_checked() -> Result<()> {
    let rig = Rig::new().await?;
    let echo = call(1, "pi__echo", &json!({})).to_string();
    let list = modern(1, "tools/list", json!({})).to_string();
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let (calls, named) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "pi__echo"));
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}).to_string();
    let without = |name: &str| {
        let mut message = modern(1, "tools/list", json!({}));
        message["params"]["_meta"].as_object_mut().map(|meta| meta.remove(name));
        message.to_string()
    };
    let no_capabilities = without("io.modelcontextprotocol/clientCapabilities");
    let no_version = without("io.modelcontextprotocol/protocolVersion");
    let future = echo.replace("2026-07-28", "2027-01-01");
    for (case, headers, body, code) in [
        ("all is there", vec![version, calls, named], &echo, 0),
        ("an encoded name", vec![version, calls, ("Mcp-Name", "=?base64?cGlfX2VjaG8=?=")], &echo, 0),
        ("no version", vec![calls, named], &echo, -32020),
        ("another version", vec![("MCP-Protocol-Version", "2025-11-25"), calls, named], &echo, -32020),
        ("two versions", vec![version, version, calls, named], &echo, -32020),
        ("no method", vec![version, named], &echo, -32020),
        ("another method", vec![version, ("Mcp-Method", "tools/list"), named], &echo, -32020),
        ("another case", vec![version, ("Mcp-Method", "Tools/Call"), named], &echo, -32020),
        ("no name", vec![version, calls], &echo, -32020),
        ("another name", vec![version, calls, ("Mcp-Name", "pi__slow")], &echo, -32020),
        ("a broken name", vec![version, calls, ("Mcp-Name", "=?base64?!?=")], &echo, -32020),
        ("no name is needed", vec![version, ("Mcp-Method", "tools/list")], &list, 0),
        ("no meta", vec![version, ("Mcp-Method", "tools/list")], &bare, -32602),
        ("no version in meta", vec![version, ("Mcp-Method", "tools/list")], &no_version, -32602),
        ("no capabilities", vec![version, ("Mcp-Method", "tools/list")], &no_capabilities, -32602),
        ("a later revision", vec![("MCP-Protocol-Version", "2027-01-01"), calls, named], &future, -32022),
    ] {
        let answer = rig.ask(&rig.post(&headers, body.as_bytes())).await?;
        let json = answer.json()?;
        assert_eq!(answer.status(), if code == 0 { 200 } else { 400 }, "{case}: {json}");
        assert_eq!(json["error"]["code"].as_i64().unwrap_or(0), code, "{case}: {json}");
        assert_eq!(json["id"], 1, "{case}");
        if code == -32022 {
            let data = json!({"supported": ["2026-07-28"], "requested": "2027-01-01"});
            assert_eq!(json["error"]["data"], data);
        }
    }
    assert_eq!(rig.run.facts().called, 2, "what is refused is not called");
    Ok(())
}

#[tokio::test]
async fn mirrored_parameters_must_agree() -> Result<()> {
    let mut sharded = tool("echo");
    sharded.parameters = RawJson::of(&json!({
        "type": "object",
        "properties": {"shard": {"type": "string", "x-mcp-header": "Shard"}},
    }));
    let rig = Rig::of(BridgeConfig::new(Profile::PI), vec![sharded]).await?;
    let message = call(1, "pi__echo", &json!({"shard": "a"}));
    for (value, status) in [("a", 200), ("b", 400)] {
        let answer = rig.ask(&rig.modern_with(&message, &[("Mcp-Param-Shard", value)])).await?;
        assert_eq!(answer.status(), status, "{value}: {:?}", answer.json());
    }
    Ok(())
}

#[tokio::test]
async fn what_the_generation_does_not_have_is_refused() -> Result<()> {
    let rig = Rig::new().await?;
    for method in
        ["ping", "logging/setLevel", "resources/list", "prompts/get", "tasks/list", "initialize", "x"]
    {
        let answer = rig.ask(&rig.modern(&modern(5, method, json!({})))).await?;
        let json = answer.json()?;
        assert_eq!(
            (answer.status(), &json["error"]["code"], &json["id"]),
            (404, &json!(-32601), &json!(5)),
            "{method}"
        );
    }
    for method in ["GET", "DELETE"] {
        let request = String::from_utf8(rig.modern(&modern(1, "tools/list", json!({}))))?;
        let answer = rig.ask(request.replacen("POST", method, 1).as_bytes()).await?;
        assert_eq!((answer.status(), answer.head.header("allow").is_some()), (405, true), "{method}");
    }
    let version = [("MCP-Protocol-Version", "2026-07-28")];
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(rig.ask(&rig.post(&version, note.to_string().as_bytes())).await?.status(), 202);
    let batch = json!([modern(1, "tools/list", json!({}))]);
    assert_eq!(rig.ask(&rig.post(&version, batch.to_string().as_bytes())).await?.status(), 400);
    let paged = rig.ask(&rig.modern(&modern(1, "tools/list", json!({"cursor": "x"})))).await?.json()?;
    assert_eq!(paged["error"]["code"], -32602);
    Ok(())
}

#[tokio::test]
async fn closing_the_answer_gives_the_call_up() -> Result<()> {
    let mut rig = Rig::new().await?;
    // Before anything was answered.
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.modern(&call(1, "pi__slow", &json!({})))).await?;
    let first = rig.started().await?;
    drop(wire);
    assert_eq!(rig.cancelled().await?.0, first.id);
    // Within a stream.
    let mut message = call(1, "pi__slow", &json!({}));
    message["params"]["_meta"]["progressToken"] = json!("t");
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.modern(&message)).await?;
    let second = rig.started().await?;
    rig.run.progress(&second.id, &Progress::new(1));
    assert!(wire.head().await?.is_events());
    assert_eq!(wire.event().await?.context("no event")?["params"]["progress"], 1);
    drop(wire);
    assert_eq!(rig.cancelled().await?.0, second.id);
    assert_eq!((rig.run.pending(), rig.told.try_recv().is_err()), (0, true), "once each");
    assert_eq!(rig.run.settle(&second.id, HostResult::text("late")), Settlement::Unknown);
    // A call that was answered is not given up when its connection ends.
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.modern(&call(2, "pi__slow", &json!({})))).await?;
    let third = rig.started().await?;
    rig.run.settle(&third.id, HostResult::text("done"));
    assert_eq!(text_of(&wire.answer().await?.json()?), "done");
    drop(wire);
    rig.ask(&rig.modern(&call(3, "pi__echo", &json!({})))).await?;
    assert!(rig.told.try_recv().is_err());
    Ok(())
}

#[tokio::test]
async fn requests_of_the_same_id_are_those_of_different_clients() -> Result<()> {
    let mut rig = Rig::new().await?;
    let mut wires = Vec::new();
    for _ in 0..3 {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&rig.modern(&call(1, "pi__slow", &json!({})))).await?;
        wires.push((wire, rig.started().await?));
    }
    let (first, started) = wires.remove(0);
    drop(first);
    assert_eq!(rig.cancelled().await?.0, started.id);
    for (number, (wire, started)) in wires.iter_mut().enumerate() {
        rig.run.settle(&started.id, HostResult::text(&number.to_string()));
        assert_eq!(text_of(&wire.answer().await?.json()?), number.to_string());
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_subscription_is_acknowledged_as_one_of_nothing_and_ends_with_the_run() -> Result<()> {
    let rig = Rig::new().await?;
    let wanted = json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["file:///x"]}});
    let listen = modern(9, "subscriptions/listen", wanted);
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.modern(&listen)).await?;
    assert!(wire.head().await?.is_events());
    let stream = json!({"io.modelcontextprotocol/subscriptionId": 9});
    let acknowledged = wire.event().await?.context("no event")?;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(acknowledged["params"], json!({"_meta": stream, "notifications": {}}));
    assert_eq!(wire.block().await?.as_deref(), Some(": keep-alive"));
    rig.run.dispose("over").await;
    let mut meta = stream;
    meta["io.modelcontextprotocol/serverInfo"] = server();
    let result = json!({"resultType": "complete", "_meta": meta});
    assert_eq!(wire.event().await?, Some(json!({"jsonrpc": "2.0", "id": 9, "result": result})));
    assert_eq!(wire.event().await?, None);
    Ok(())
}

#[tokio::test]
async fn a_subscription_that_is_none_is_refused() -> Result<()> {
    let rig = Rig::new().await?;
    let odd = rig.ask(&rig.modern(&modern(1, "subscriptions/listen", json!({})))).await?;
    assert_eq!(odd.json()?["error"]["code"], -32602);
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {}}));
    let only = String::from_utf8(rig.modern(&listen))?
        .replace("application/json, text/event-stream", "application/json");
    assert_eq!(rig.ask(only.as_bytes()).await?.status(), 406);
    Ok(())
}
