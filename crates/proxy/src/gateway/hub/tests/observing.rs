//! Observers: what they hear of requests, clients and servers.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::rig::Rig;
use crate::gateway::hub::{ClientEvent, Event, Hub};
use crate::gateway::message::SessionId;
use crate::gateway::observe::{AuditConfig, MetricsConfig, ObserveConfig, Observer};
use crate::gateway::state::{ServerState, Stage};
use crate::gateway::upstream::UpstreamEvent;

/// A rig whose hub is observed, and what was heard of calls: `outcome server target`.
async fn heard(mut rig: Rig, play: impl FnOnce(&mut Rig)) -> (Vec<Value>, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ObserveConfig {
        audit: Some(AuditConfig::new(path.clone())),
        metrics: Some(MetricsConfig { listen, open: false }),
        traces: None,
    };
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let observer = Observer::start(&config, &tasks, &end).unwrap();
    let empty = Hub::new(rig.hub.config.clone(), rig.now);
    rig.hub = std::mem::replace(&mut rig.hub, empty).observed_by(observer.clone());
    play(&mut rig);
    observer.close().await;
    let text = observer.metrics_text();
    end.cancel();
    let lines = std::fs::read_to_string(path).unwrap();
    (lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), text)
}

fn short(lines: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines
        .iter()
        .map(|line| [&line["outcome"], &line["server"], &line["method"], &line["target"]].map(text).join(" "))
        .collect()
}

#[tokio::test]
async fn every_request_to_a_server_is_heard_of_once_with_its_end() {
    let (lines, metrics) = heard(Rig::ready(&["a", "b"]), |rig| {
        let mut call = |answer: &str| {
            rig.sent();
            let id = rig.call(1, "1", "a__t");
            rig.server("a", &format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
        };
        call(r#""result":{"content":[]}"#);
        call(r#""result":{"content":[],"isError":true}"#);
        call(r#""error":{"code":-32602,"message":"no"}"#);
        rig.sent();
        rig.call(1, "2", "b__t");
        rig.client(1, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
        rig.sent();
        rig.call(1, "3", "b__t");
        rig.after(Duration::from_secs(61));
        rig.sent();
        rig.call(1, "4", "b__t");
        let lost = ServerState::Failed { stage: Stage::Run, reason: "gone".to_owned(), hint: None };
        rig.upstream("b", UpstreamEvent::State(lost));
        rig.upstream("b", UpstreamEvent::Down { reason: "gone".to_owned() });
        // What is for no server is no call of a server.
        rig.client(1, r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#);
        rig.client(1, r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x__y"}}"#);
    })
    .await;
    assert_eq!(
        short(&lines),
        [
            "ok a tools/call t",
            "tool_error a tools/call t",
            "error a tools/call t",
            "cancelled b tools/call t",
            "timeout b tools/call t",
            "lost b tools/call t",
        ]
    );
    assert_eq!((&lines[2]["code"], &lines[4]["code"]), (&Value::from(-32602), &Value::from(-32000)));
    assert_eq!((&lines[0]["client"], &lines[0]["session"]), (&Value::from("c 1"), &Value::from(1)));
    assert_eq!(lines[4]["durationMs"], 61_000.0);
    assert!(lines[0]["requestBytes"].as_u64() > Some(50) && lines[0]["responseBytes"].as_u64() > Some(30));
    for line in [
        r#"toolway_server_state{server="a",state="connected"} 1"#,
        r#"toolway_server_state{server="b",state="failed"} 1"#,
        r#"toolway_calls_total{server="b",method="tools/call",target="t",outcome="timeout"} 1"#,
    ] {
        assert!(metrics.lines().any(|one| one == line), "no {line} in {metrics}");
    }
}

#[tokio::test]
async fn the_end_of_a_client_ends_its_calls_and_is_counted() {
    let (lines, metrics) = heard(Rig::ready(&["a", "b"]), |rig| {
        rig.open(2);
        rig.open(3);
        rig.hello(2);
        rig.sent();
        rig.call(2, "1", "a__t");
        rig.event(Event::Client(ClientEvent::Closed { session: SessionId(2) }));
    })
    .await;
    assert_eq!(short(&lines), ["cancelled a tools/call t"]);
    assert!(metrics.contains("\ntoolway_sessions 1\n") && metrics.contains("\ntoolway_sessions_total 2\n"));
}
