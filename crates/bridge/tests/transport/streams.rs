//! Answers of the legacy generation that are streams: progress, patience, signs of life.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tokio::time::Instant;
use toolway_bridge::{BridgeConfig, HostResult, Profile, Progress, RawJson};

use crate::rig::{Rig, call, list, text_of, tool};
use crate::wire::Wire;

fn with_token(id: u64, token: &Value) -> Value {
    let mut message = call(id, "pi__slow", &json!({}));
    message["params"]["_meta"] = json!({"progressToken": token});
    message
}

#[tokio::test]
async fn progress_makes_the_answer_a_stream() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    for token in [json!("p"), json!(7)] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(&session.post(&rig, &with_token(4, &token))).await?;
        let started = rig.started().await?;
        let total = RawJson::of(&json!(10));
        rig.run.progress(
            &started.id,
            &Progress { total: Some(total), message: Some("a\nb".into()), ..Progress::new(1) },
        );
        assert!(wire.head().await?.is_events());
        let params = json!({"progressToken": token, "progress": 1, "total": 10, "message": "a\nb"});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        assert_eq!(wire.event().await?, Some(note));
        rig.run.progress(&started.id, &Progress::new(2));
        rig.run.settle(&started.id, HostResult::text("done"));
        assert_eq!(wire.event().await?.context("no event")?["params"]["progress"], 2);
        let answer = wire.event().await?.context("no answer")?;
        assert_eq!((answer["id"].clone(), text_of(&answer)), (json!(4), "done"));
        assert_eq!(wire.event().await?, None);
        // Progress after the end is nobody's.
        rig.run.progress(&started.id, &Progress::new(3));
        // The connection is good for the next request.
        wire.send(&session.post(&rig, &call(5, "pi__echo", &json!({})))).await?;
        assert_eq!(wire.answer().await?.status(), 200);
    }
    Ok(())
}

#[tokio::test]
async fn a_client_that_reads_one_kind_of_answer_gets_that_kind() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    for (accept, events) in [("application/json", false), ("text/event-stream", true)] {
        let both = String::from_utf8(session.post(&rig, &with_token(1, &json!("t"))))?;
        let only = both.replace("application/json, text/event-stream", accept);
        let mut wire = Wire::open(rig.port).await?;
        wire.send(only.as_bytes()).await?;
        let started = rig.started().await?;
        rig.run.progress(&started.id, &Progress::new(1));
        rig.run.settle(&started.id, HostResult::text("done"));
        if events {
            assert!(wire.head().await?.is_events());
            assert_eq!(wire.event().await?.context("no event")?["method"], "notifications/progress");
            assert_eq!(text_of(&wire.event().await?.context("no answer")?), "done");
        } else {
            assert_eq!(text_of(&wire.answer().await?.json()?), "done");
        }
        let listed = String::from_utf8(session.post(&rig, &list(2)))?;
        wire = Wire::open(rig.port).await?;
        wire.send(listed.replace("application/json, text/event-stream", accept).as_bytes()).await?;
        assert_eq!(wire.head().await?.is_events(), events);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_slow_call_gets_a_head_in_time_and_signs_of_life() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let begun = Instant::now();
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &call(1, "pi__slow", &json!({})))).await?;
    let started = rig.started().await?;
    assert!(wire.head().await?.is_events());
    assert_eq!(begun.elapsed().as_secs(), 5);
    assert_eq!(wire.block().await?.as_deref(), Some(": waiting"));
    for seconds in [20, 35, 50] {
        assert_eq!(wire.block().await?.as_deref(), Some(": keep-alive"));
        assert_eq!(begun.elapsed().as_secs(), seconds);
    }
    rig.run.settle(&started.id, HostResult::text("at last"));
    assert_eq!(text_of(&wire.event().await?.context("no answer")?), "at last");
    assert_eq!(wire.event().await?, None);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_client_that_asked_for_progress_hears_that_its_call_lives() -> Result<()> {
    let config = BridgeConfig { keep_alive: Some(Duration::from_secs(10)), ..BridgeConfig::new(Profile::PI) };
    let mut rig = Rig::of(config, vec![tool("slow")]).await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &with_token(1, &json!("t")))).await?;
    let started = rig.started().await?;
    assert!(wire.head().await?.is_events());
    let mut last = -1.0;
    for turn in 0..6 {
        if turn == 3 {
            rig.run.progress(&started.id, &Progress::new(5));
        }
        let note = wire.event().await?.context("no event")?;
        let value = note["params"]["progress"].as_f64().context("no number")?;
        assert!(value > last, "{value} after {last}");
        assert_eq!(note["params"]["progressToken"], "t");
        assert_eq!((value - 5.0).abs() < 0.01, turn >= 3, "the host's number is not run away from: {value}");
        last = value;
    }
    rig.run.settle(&started.id, HostResult::text("ok"));
    assert_eq!(text_of(&wire.event().await?.context("no answer")?), "ok");
    Ok(())
}

#[tokio::test]
async fn a_host_that_floods_with_progress_fills_no_memory() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &with_token(1, &json!("t")))).await?;
    let started = rig.started().await?;
    for number in 0..50_000 {
        rig.run.progress(&started.id, &Progress { message: Some("x".repeat(200)), ..Progress::new(number) });
    }
    rig.run.settle(&started.id, HostResult::text("done"));
    assert!(wire.head().await?.is_events());
    let (mut last, mut notes) = (-1.0, 0);
    let answer = loop {
        let event = wire.event().await?.context("no answer")?;
        let Some(value) = event["params"]["progress"].as_f64() else { break event };
        assert!(value > last, "{value} after {last}");
        (last, notes) = (value, notes + 1);
    };
    assert_eq!(text_of(&answer), "done");
    assert!(notes < 1000 && last > 49_998.0, "{notes} notes, the last says {last}");
    Ok(())
}

#[tokio::test]
async fn progress_with_long_messages_is_bounded_in_bytes_and_the_newest_stays() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(&rig, &with_token(1, &json!("t")))).await?;
    let started = rig.started().await?;
    for (number, size) in
        [(1, 200 << 10), (2, 100 << 10), (3, 100 << 10), (4, 2 << 20), (5, 3 << 20), (6, 10)]
    {
        rig.run.progress(&started.id, &Progress { message: Some("x".repeat(size)), ..Progress::new(number) });
    }
    rig.run.settle(&started.id, HostResult::text("done"));
    assert!(wire.head().await?.is_events());
    let note = wire.event().await?.context("no progress")?;
    assert_eq!(note["params"]["progress"], 6);
    assert_eq!(text_of(&wire.event().await?.context("no answer")?), "done");
    Ok(())
}
