//! Many at once: calls in flight, sockets that are open for nothing.

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::task::JoinSet;
use toolway_bridge::HostResult;

use crate::rig::{Rig, call, list, modern, text_of};
use crate::wire::Wire;

#[tokio::test]
async fn a_thousand_calls_from_a_thousand_connections_are_all_answered() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wires = Vec::new();
    for _ in 0..1000 {
        wires.push(Wire::open(rig.port).await.context("this test needs 2,100 open files")?);
    }
    for (id, wire) in wires.iter_mut().enumerate() {
        wire.send(&session.post(&rig, &call(id as u64, "pi__slow", &json!({"id": id})))).await?;
    }
    let mut started = Vec::new();
    for _ in 0..1000 {
        started.push(rig.started().await?);
    }
    assert_eq!(rig.run.pending(), 1000);
    // Others are served meanwhile.
    assert_eq!(session.ask(&rig, &list(1)).await?.status(), 200);
    for call in started.iter().rev() {
        rig.run.settle(&call.id, HostResult::text(call.arguments.text()));
    }
    for (id, wire) in wires.iter_mut().enumerate() {
        let answer = wire.answer().await?;
        assert_eq!(answer.status(), 200, "{:?}", answer.reason());
        let json = answer.json()?;
        assert_eq!((&json["id"], text_of(&json)), (&json!(id), format!("{{\"id\":{id}}}").as_str()));
    }
    assert_eq!(rig.run.pending(), 0);
    Ok(())
}

#[tokio::test]
async fn a_thousand_clients_with_a_session_each_are_all_remembered() -> Result<()> {
    let rig = Rig::new().await?;
    let mut sessions = Vec::new();
    for _ in 0..1000 {
        sessions.push(rig.legacy().await?);
    }
    for (id, session) in sessions.iter().enumerate() {
        let answer = session.ask(&rig, &call(id as u64, "pi__echo", &json!({"id": id}))).await?;
        assert_eq!((answer.status(), text_of(&answer.json()?)), (200, format!("{{\"id\":{id}}}").as_str()));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn both_generations_at_once_from_many_clients() -> Result<()> {
    let rig = std::sync::Arc::new(Rig::new().await?);
    let session = rig.legacy().await?;
    let mut tasks = JoinSet::new();
    for client in 0..40u64 {
        let (rig, session) = (rig.clone(), session.clone());
        tasks.spawn(async move {
            for turn in 0..25 {
                let id = client * 1000 + turn;
                let bytes = if client % 2 == 0 {
                    session.post(&rig, &call(id, "pi__echo", &json!({"id": id})))
                } else {
                    let params = json!({"name": "pi__echo", "arguments": {"id": id}});
                    rig.modern(&modern(id, "tools/call", params))
                };
                let answer = rig.ask(&bytes).await?;
                anyhow::ensure!(answer.status() == 200, "{:?}", answer.reason());
                let json = answer.json()?;
                anyhow::ensure!(json["id"] == id && text_of(&json) == format!("{{\"id\":{id}}}"), "{json}");
            }
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    assert_eq!(rig.run.facts().called, 1000);
    Ok(())
}

#[tokio::test]
async fn sockets_that_are_open_for_nothing_shut_nobody_out() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut working = Wire::open(rig.port).await?;
    working.send(&session.post(&rig, &list(1))).await?;
    working.answer().await?;
    // More than there is room for; some say a little.
    let mut silent = Vec::new();
    for number in 0..5000 {
        let Ok(mut wire) = Wire::open(rig.port).await else { break };
        if number % 2 == 0 {
            wire.send(b"POST / HTTP/1.1\r\nHost: ").await.ok();
        }
        silent.push(wire);
    }
    for wire in [&mut working, &mut Wire::open(rig.port).await?] {
        wire.send(&session.post(&rig, &list(2))).await?;
        assert_eq!(wire.answer().await?.status(), 200, "{} sockets are open", silent.len());
    }
    Ok(())
}
