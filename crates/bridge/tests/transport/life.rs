//! When a listener opens and closes, and what its end leaves behind: nothing.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use toolway_bridge::{Bridge, BridgeConfig, Profile};

use crate::rig::{Rig, address, call, initialize, snapshot, tool};
use crate::wire::Wire;

#[tokio::test]
async fn statement_13_the_port_is_closed_with_the_last_run() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    // An idle connection, one that waits for a call, one with half a request, one that reads a stream.
    let mut idle = Wire::open(rig.port).await?;
    idle.send(&session.post(&rig, &call(1, "pi__echo", &json!({})))).await?;
    idle.answer().await?;
    let mut waiting = Wire::open(rig.port).await?;
    waiting.send(&session.post(&rig, &call(2, "pi__slow", &json!({})))).await?;
    let started = rig.started().await?;
    let mut half = Wire::open(rig.port).await?;
    half.send(b"POST / HTTP/1.1\r\n").await?;
    let mut stream = Wire::open(rig.port).await?;
    let events = [("Mcp-Session-Id", session.session.as_str()), ("Accept", "text/event-stream")];
    let message = call(3, "pi__slow", &json!({})).to_string();
    let only_events = String::from_utf8(rig.post(&events, message.as_bytes()))?
        .replace("Accept: application/json, text/event-stream\r\n", "");
    stream.send(only_events.as_bytes()).await?;
    assert!(stream.head().await?.is_events());
    rig.started().await?;

    let begun = Instant::now();
    rig.run.dispose("the session is over").await;
    let took = begun.elapsed();
    assert!(took < Duration::from_millis(2500), "{took:?}, and 250 ms without this machine's load");
    assert!(TcpStream::connect(("127.0.0.1", rig.port)).await.is_err(), "the port is closed");
    // What waited got its rejection before the server closed.
    assert!(waiting.answer().await?.reason()?.contains("the session is over"));
    let last = stream.event().await?.context("no last event")?;
    assert!(last["error"]["message"].as_str().unwrap_or_default().contains("the session is over"), "{last}");
    for wire in [&mut idle, &mut waiting, &mut half] {
        assert!(wire.is_closed().await?);
    }
    assert_eq!(rig.cancelled().await?.0, started.id);
    Ok(())
}

#[tokio::test]
async fn the_end_does_not_wait_for_clients_that_take_nothing() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut stuck = Vec::new();
    for id in 0..2 {
        let mut wire = Wire::open(rig.port).await?;
        // Answers that fill every buffer on the way, and that nobody reads.
        let text = "x".repeat(12 << 20);
        wire.send(&session.post(&rig, &call(id, "pi__echo", &json!({"text": text})))).await?;
        stuck.push(wire);
    }
    let begun = Instant::now();
    rig.run.dispose("over").await;
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
    assert!(TcpStream::connect(("127.0.0.1", rig.port)).await.is_err());
    Ok(())
}

#[tokio::test]
async fn statement_14_runs_that_come_and_go_at_once_lose_no_listener() -> Result<()> {
    let bridge = Bridge::new(BridgeConfig::new(Profile::HOST));
    let surface = snapshot(&Profile::HOST, vec![tool("echo")]);
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (bridge, surface) = (bridge.clone(), surface.clone());
        tasks.spawn(async move {
            for _ in 0..8 {
                let run = bridge.open(surface.clone()).await?.context("nothing is exposed")?;
                let (port, path) = address(&run)?;
                let mut wire = Wire::open(port).await?;
                let host = format!("127.0.0.1:{port}");
                let headers = [("Host", host.as_str()), ("Content-Type", "application/json")];
                let body = initialize("2025-06-18").to_string();
                wire.send(&crate::wire::request("POST", &path, &headers, body.as_bytes())).await?;
                anyhow::ensure!(wire.answer().await?.status() == 200);
                run.dispose("done").await;
            }
            Ok(())
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    assert!(bridge.runs().is_empty());
    // And the next one opens a new listener.
    let run = bridge.open(surface).await?.context("nothing is exposed")?;
    let (port, _) = address(&run)?;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_ok());
    bridge.shutdown("over").await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_bridge_that_is_dropped_leaves_no_port() -> Result<()> {
    let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
    let run = bridge.open(snapshot(&Profile::PI, vec![tool("echo")])).await?.context("nothing is exposed")?;
    let (port, _) = address(&run)?;
    drop((run, bridge));
    for _ in 0..1000 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
    anyhow::bail!("the port is still open")
}

/// Keeps what is logged.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn trial_23_the_token_is_in_no_log() -> Result<()> {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let rig = Rig::new().await?;
    let token = rig.path.split('/').nth(2).unwrap().to_owned();
    let session = rig.legacy().await?;
    session.ask(&rig, &call(1, "pi__echo", &json!({}))).await?;
    session.ask(&rig, &call(2, "pi__nothing", &json!({}))).await?;
    for broken in [
        "Content-Length: x\r\n\r\n",
        "Content-Length: 9\r\n\r\n{",
        "Host: evil.example\r\n\r\n",
        ": \r\n\r\n",
    ] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(format!("POST {} HTTP/1.1\r\n{broken}", rig.path).as_bytes()).await?;
        wire.answer().await.ok();
    }
    tracing::info!("the end of the log");
    rig.run.dispose("over").await;
    let log = String::from_utf8(log.0.lock().unwrap_or_else(PoisonError::into_inner).clone())?;
    assert!(log.contains("the end of the log") && log.contains("a connection to the bridge ended"), "{log}");
    assert!(!log.contains(&token) && !log.contains(Profile::PI.path_segment), "{log}");
    Ok(())
}

#[tokio::test]
async fn lesson_10_the_endpoint_is_in_nothing_that_can_be_printed() -> Result<()> {
    let rig = Rig::new().await?;
    let token = rig.path.split('/').nth(2).unwrap().to_owned();
    let shown = format!("{:?} {:?} {:?} {:?}", rig.run, rig.bridge, rig.run.server(), rig.bridge.config());
    assert!(!shown.contains(&token), "{shown}");
    assert!(!rig.run.id().contains(&token) && !token.contains(rig.run.id()));
    // Nor in what a caller is told, whatever it asks.
    let session = rig.legacy().await?;
    let names = json!({"jsonrpc": "2.0", "id": 1, "method": rig.path});
    for message in [names, call(2, &rig.path, &json!({"path": token}))] {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let answer = String::from_utf8(session.ask(&rig, &message).await?.body)?;
        // A caller that writes the path itself may read it again; the server adds nothing to it.
        assert!(answer.matches(&token).count() <= 1, "{method}: {answer}");
    }
    Ok(())
}
