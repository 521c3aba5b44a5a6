//! The whole gateway but its fronts: sessions on one side, scripted servers in processes of their own on the other.

mod support;

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use support::{Gate, command};

const SLOW: &str =
    "on tools/call/slow\n    wait go\n    text done\non tools/call/go\n    arm go\n    text gone\n";

#[tokio::test]
async fn one_good_one_absent_one_mute_one_that_crashes() -> Result<()> {
    let gate = Gate::start(|mark| {
        Ok(vec![
            Gate::scripted("ok", "", mark)?,
            command("gone", "no-such-binary-xyz", &[]),
            Gate::scripted("mute", "set defaults off", mark)?,
            Gate::scripted("crash", "on start\n    stderr the reason is here\\n\n    exit 7", mark)?,
        ])
    })?;
    let begun = Instant::now();
    let mut client = gate.client().await?;
    gate.state("ok", "connected").await?;
    // Not after the five seconds that the mute one has.
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(client.tools().await?, ["ok__echo"]);
    client.call("1", "ok__echo").await?;
    assert!(client.answer("1").await?["result"].is_object());
    let gone = gate.state("gone", "failed").await?;
    assert!(gone.contains("not found") && gone.contains("/usr/bin"), "{gone}");
    let crash = gate.state("crash", "failed").await?;
    assert!(crash.contains('7') && crash.contains("the reason is here"), "{crash}");
    client.call("2", "gone__x").await?;
    let error = client.answer("2").await?["error"]["message"].to_string();
    assert!(error.contains("gone__x") && error.contains("not found"), "{error}");
    let mute = gate.state("mute", "failed").await?;
    assert!(mute.contains("initialize"), "{mute}");
    gate.end().await
}

#[tokio::test]
async fn many_calls_of_many_clients_over_many_servers_are_each_answered_once() -> Result<()> {
    const SERVERS: usize = 4;
    const CALLS: usize = 1000;
    let gate =
        Gate::start(|mark| (0..SERVERS).map(|n| Gate::scripted(&format!("s{n}"), "", mark)).collect())?;
    for n in 0..SERVERS {
        gate.state(&format!("s{n}"), "connected").await?;
    }
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(gate.client().await?);
    }
    for n in 0..CALLS {
        for client in &clients {
            client.call(&n.to_string(), &format!("s{}__echo", n % SERVERS)).await?;
        }
    }
    for client in &mut clients {
        for n in 0..CALLS {
            let answer = client.answer(&n.to_string()).await?;
            assert!(answer["result"].is_object(), "{answer}");
        }
        client.send(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await?;
        client.answer("\"last\"").await?;
    }
    gate.end().await
}

#[tokio::test]
async fn cancellation_progress_and_questions_go_both_ways() -> Result<()> {
    let script = r#"on tools/call/slow
    never
on notifications/cancelled
    arm heard
on tools/call/heard
    wait heard
    text yes
on tools/call/ask
    send {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object"}}}
    wait response:"q"
    text thanks
"#;
    let gate = Gate::start(|mark| Ok(vec![Gate::scripted("a", script, mark)?]))?;
    gate.state("a", "connected").await?;
    let mut client = gate.client().await?;
    client.call("1", "a__slow").await?;
    client.call("2", "a__heard").await?;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await?;
    assert!(client.answer("2").await?["result"].is_object());
    client.call("3", "a__ask").await?;
    let question: serde_json::Value = serde_json::from_str(&client.message("elicitation/create").await?)?;
    let id = &question["id"];
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#)).await?;
    assert!(client.answer("3").await?["result"].is_object());
    gate.end().await
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_names_itself_and_comes_back() -> Result<()> {
    let script = "on tools/call/die -> exit 9\n";
    let gate =
        Gate::start(|mark| Ok(vec![Gate::scripted("a", script, mark)?, Gate::scripted("b", "", mark)?]))?;
    gate.state("a", "connected").await?;
    gate.state("b", "connected").await?;
    let mut client = gate.client().await?;
    client.call("1", "a__die").await?;
    let error = client.answer("1").await?["error"]["message"].to_string();
    assert!(error.contains("\\\"a\\\"") && error.contains('9'), "{error}");
    client.call("2", "b__echo").await?;
    assert!(client.answer("2").await?["result"].is_object());
    // A call wakes it.
    client.call("3", "a__echo").await?;
    let answer = client.answer("3").await?;
    assert!(answer["result"].is_object(), "{answer}");
    gate.end().await
}

#[tokio::test]
async fn a_reload_loses_no_call_and_leaves_nothing() -> Result<()> {
    let gate =
        Gate::start(|mark| Ok(vec![Gate::scripted("a", SLOW, mark)?, Gate::scripted("b", "", mark)?]))?;
    gate.state("a", "connected").await?;
    gate.state("b", "connected").await?;
    let mut client = gate.client().await?;
    client.call("1", "a__slow").await?;
    client.send(r#"{"jsonrpc":"2.0","id":"sync","method":"ping"}"#).await?;
    client.answer("\"sync\"").await?;
    let mark = gate.mark().to_owned();
    let changed =
        Gate::scripted("a", "tool {\"name\":\"new\",\"inputSchema\":{\"type\":\"object\"}}\n", &mark)?;
    gate.reload(vec![changed, Gate::scripted("b", "", &mark)?]).await;
    // It may have heard of changes before.
    let mut tools = client.tools().await?;
    while !tools.contains(&"a__new".to_owned()) {
        client.message("tools/list_changed").await?;
        tools = client.tools().await?;
    }
    assert!(!tools.contains(&"a__slow".to_owned()), "{tools:?}");
    client.call("2", "b__echo").await?;
    assert!(client.answer("2").await?["result"].is_object());
    // The old copy still has the first call, and ends when the client gives that up.
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await?;
    gate.reload(Vec::new()).await;
    client.call("3", "a__new").await?;
    let error = client.answer("3").await?["error"]["message"].to_string();
    assert!(error.contains("missing"), "{error}");
    gate.end().await
}

#[tokio::test]
async fn clients_come_and_go_without_a_trace() -> Result<()> {
    let gate = Gate::start(|mark| Ok(vec![Gate::scripted("a", SLOW, mark)?]))?;
    gate.state("a", "connected").await?;
    for _ in 0..50 {
        let client = gate.client().await?;
        client.call("1", "a__slow").await?;
        drop(client);
    }
    let mut client = gate.client().await?;
    client.call("1", "a__echo").await?;
    assert!(client.answer("1").await?["result"].is_object());
    gate.end().await
}

#[tokio::test]
async fn a_legacy_client_uses_a_modern_server() -> Result<()> {
    let script = r#"set defaults off
on initialize -> error -32601 unknown method
on server/discover -> answer {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}
on tools/list -> answer {"resultType":"complete","tools":[{"name":"ask","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}
on tools/call/ask 1 -> answer {"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object"}}}},"requestState":"s"}
on tools/call/ask 2 -> answer {"resultType":"complete","content":[{"type":"text","text":"thanks"}]}
"#;
    let gate = Gate::start(|mark| Ok(vec![Gate::scripted("m", script, mark)?]))?;
    gate.state("m", "connected").await?;
    let mut client = gate.client().await?;
    client.call("1", "m__ask").await?;
    let question: serde_json::Value = serde_json::from_str(&client.message("elicitation/create").await?)?;
    let id = &question["id"];
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"action":"decline"}}}}"#)).await?;
    let answer = client.answer("1").await?;
    assert_eq!(answer["result"], serde_json::json!({"content": [{"type": "text", "text": "thanks"}]}));
    gate.end().await
}

#[tokio::test]
async fn a_server_that_reads_nothing_holds_nobody_else_up() -> Result<()> {
    let script = "on tools/call/stuck\n    wait never\n";
    let gate =
        Gate::start(|mark| Ok(vec![Gate::scripted("a", script, mark)?, Gate::scripted("b", "", mark)?]))?;
    gate.state("a", "connected").await?;
    gate.state("b", "connected").await?;
    let mut client = gate.client().await?;
    let text = "x".repeat(64 << 10);
    for n in 0..2000 {
        client
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"a__stuck","arguments":{{"x":"{text}"}}}}}}"#
            ))
            .await?;
    }
    client.call("\"b\"", "b__echo").await?;
    assert!(client.answer("\"b\"").await?["result"].is_object());
    gate.end().await
}
