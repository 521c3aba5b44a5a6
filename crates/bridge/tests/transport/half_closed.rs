//! Clients that end their half of the connection after they have asked, and those that are gone altogether.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_bridge::{HostResult, Progress};

use crate::rig::{Rig, call, modern, text_of};
use crate::wire::{Wire, request};

/// A legacy call and a modern one, of a client that reads both kinds of answers or JSON alone.
async fn ask(rig: &Rig, is_modern: bool, events: bool, params: Value) -> Result<Wire> {
    let session = rig.legacy().await?;
    let host = format!("127.0.0.1:{}", rig.port);
    let accept = if events { "application/json, text/event-stream" } else { "application/json" };
    let mut headers = vec![("Host", host.as_str()), ("Content-Type", "application/json"), ("Accept", accept)];
    let name = params["name"].as_str().context("no name")?.to_owned();
    let message = if is_modern {
        headers.extend([("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call")]);
        headers.push(("Mcp-Name", &name));
        modern(7, "tools/call", params)
    } else {
        headers.push(("Mcp-Session-Id", &session.session));
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    };
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&request("POST", &rig.path, &headers, message.to_string().as_bytes())).await?;
    Ok(wire)
}

fn slow() -> Value {
    json!({"name": "pi__slow", "arguments": {}})
}

/// The response in an answer of either kind.
async fn response(wire: &mut Wire) -> Result<Value> {
    let head = wire.head().await?;
    if head.is_events() {
        return wire.event().await?.context("no response");
    }
    let length = head.header("content-length").context("no length")?.parse()?;
    Ok(serde_json::from_slice(&wire.take(length).await?)?)
}

#[tokio::test]
async fn who_ends_its_half_after_asking_gets_its_answer() -> Result<()> {
    let mut rig = Rig::new().await?;
    for (is_modern, events) in [(false, true), (false, false), (true, true)] {
        let mut wire = ask(&rig, is_modern, events, slow()).await?;
        wire.finish().await?;
        let started = rig.started().await?;
        // Long enough for the end to be seen.
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(rig.told.try_recv().is_err(), "it is at work still: {is_modern} {events}");
        rig.run.settle(&started.id, HostResult::text("here"));
        assert_eq!(text_of(&response(&mut wire).await?), "here", "{is_modern} {events}");
        assert!(wire.is_closed().await?, "nothing more can be asked here");
        let mut wire =
            ask(&rig, is_modern, events, json!({"name": "pi__echo", "arguments": {"a": 1}})).await?;
        wire.finish().await?;
        assert_eq!(text_of(&response(&mut wire).await?), r#"{"a":1}"#);
    }
    assert_eq!(rig.run.pending(), 0);
    Ok(())
}

#[tokio::test]
async fn a_large_answer_arrives_whole_on_a_connection_that_is_half_closed() -> Result<()> {
    let mut rig = Rig::new().await?;
    for is_modern in [false, true] {
        let mut wire = ask(&rig, is_modern, true, slow()).await?;
        wire.finish().await?;
        let started = rig.started().await?;
        let text = "x".repeat(12 << 20);
        rig.run.settle(&started.id, HostResult::text(&text));
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(text_of(&response(&mut wire).await?).len(), text.len(), "{is_modern}");
    }
    Ok(())
}

#[tokio::test]
async fn progress_goes_on_when_the_client_has_ended_its_half() -> Result<()> {
    let mut rig = Rig::new().await?;
    let mut params = slow();
    params["_meta"] = json!({"progressToken": 18_446_744_073_709_551_615_u64});
    for is_modern in [false, true] {
        let mut wire = ask(&rig, is_modern, true, params.clone()).await?;
        let started = rig.started().await?;
        rig.run.progress(&started.id, &Progress::new(1));
        assert!(wire.head().await?.is_events());
        wire.finish().await?;
        for n in 1..4 {
            let note = wire.event().await?.context("no progress")?;
            assert_eq!(note["params"]["progress"], n);
            assert_eq!(note["params"]["progressToken"], 18_446_744_073_709_551_615_u64);
            tokio::time::sleep(Duration::from_millis(60)).await;
            rig.run.progress(&started.id, &Progress::new(n + 1));
        }
        rig.run.settle(&started.id, HostResult::text("done"));
        assert_eq!(wire.event().await?.context("no progress")?["params"]["progress"], 4);
        assert_eq!(text_of(&wire.event().await?.context("no answer")?), "done");
        assert_eq!(wire.event().await?, None);
    }
    Ok(())
}

#[tokio::test]
async fn a_modern_client_that_is_gone_gives_its_call_up_soon() -> Result<()> {
    let mut rig = Rig::new().await?;
    let mut params = slow();
    params["_meta"] = json!({"progressToken": "p"});
    for (events, streams, ahead) in [
        (true, false, false),
        (true, true, false),
        (false, false, false),
        (true, false, true),
        (true, true, true),
    ] {
        let mut wire = ask(&rig, true, events, params.clone()).await?;
        let started = rig.started().await?;
        if streams {
            rig.run.progress(&started.id, &Progress::new(1));
            assert!(wire.head().await?.is_events());
        }
        if ahead {
            // The next request waits on the same connection.
            wire.send(&rig.modern(&modern(8, "tools/list", json!({})))).await?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let begun = Instant::now();
        drop(wire);
        let (id, reason) = rig.cancelled().await?;
        assert_eq!((id, reason.contains("closed")), (started.id, true));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert_eq!(rig.run.pending(), 0);
    }
    // One that takes JSON alone cannot be asked whether it reads on: its end is the end of its call.
    let mut wire = ask(&rig, true, false, slow()).await?;
    let started = rig.started().await?;
    wire.finish().await?;
    assert_eq!(rig.cancelled().await?.0, started.id);
    Ok(())
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_not_waited_for() -> Result<()> {
    let rig = Rig::new().await?;
    let host = format!("127.0.0.1:{}", rig.port);
    for framing in [("Content-Length", "1000"), ("Transfer-Encoding", "chunked")] {
        let headers = [("Host", host.as_str()), ("Content-Type", "application/json"), framing];
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&request("POST", &rig.path, &headers, b"")).await?;
        wire.send(if framing.1 == "chunked" { b"4\r\n{\"a\"\r\n" } else { b"{\"a\"" }).await?;
        let begun = Instant::now();
        wire.finish().await?;
        if let Ok(answer) = wire.answer().await {
            assert_eq!(answer.status(), 400);
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    Ok(())
}

#[tokio::test]
async fn the_end_of_the_run_reaches_who_has_ended_its_half_and_closes_the_port() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wires = Vec::new();
    for id in 1..4 {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&session.post(&rig, &call(id, "pi__slow", &json!({})))).await?;
        wire.finish().await?;
        rig.started().await?;
        wires.push(wire);
    }
    let mut gone = ask(&rig, false, true, slow()).await?;
    rig.started().await?;
    gone.finish().await?;
    drop(gone);
    let begun = Instant::now();
    rig.run.dispose("the agent is gone").await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    for mut wire in wires {
        let answer = response(&mut wire).await?;
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("gone")), "{answer}");
    }
    assert!(Wire::open(rig.port).await.is_err());
    Ok(())
}
