use std::net::Ipv4Addr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

fn call(outcome: Outcome) -> CallRecord<'static> {
    CallRecord {
        session: 1,
        client: "c",
        server: "fs",
        method: "tools/call",
        target: "read \"x\"",
        request_bytes: 100,
        response_bytes: 2000,
        duration: Duration::from_millis(30),
        outcome,
        code: None,
        traceparent: None,
    }
}

fn local() -> ObserveConfig {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    ObserveConfig { metrics: Some(MetricsConfig { listen, open: false }), ..ObserveConfig::default() }
}

async fn get(address: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn numbers_are_read_over_http() {
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let observer = Observer::start(&local(), &tasks, &end).unwrap();
    assert!(observer.is_on());
    observer.session_opened();
    observer.session_opened();
    observer.session_closed();
    observer.server_states(&[("fs", "starting"), ("gone", "starting")]);
    observer.server_states(&[("fs", "connected"), ("db", "failed")]);
    observer.call_finished(&call(Outcome::OK));
    observer.call_finished(&call(Outcome::OK));
    observer.call_finished(&call(Outcome::TIMEOUT));
    observer.call_finished(&CallRecord {
        method: "resources/read",
        target: "file:///secret",
        ..call(Outcome::OK)
    });
    let address = observer.metrics_address().unwrap();
    let answer = get(address, &format!("GET /metrics HTTP/1.1\r\nHost: {address}")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    for line in [
        "content-type: text/plain; version=0.0.4; charset=utf-8",
        "toolway_sessions 1",
        "toolway_sessions_total 2",
        r#"toolway_server_state{server="fs",state="connected"} 1"#,
        r#"toolway_servers{state="failed"} 1"#,
        r#"toolway_calls_total{server="fs",method="tools/call",target="read \"x\"",outcome="ok"} 2"#,
        r#"toolway_calls_total{server="fs",method="tools/call",target="read \"x\"",outcome="timeout"} 1"#,
        r#"toolway_calls_total{server="fs",method="resources/read",target="",outcome="ok"} 1"#,
        r#"toolway_request_bytes_total{server="fs"} 400"#,
        r#"toolway_call_duration_seconds_bucket{server="fs",le="0.025"} 0"#,
        r#"toolway_call_duration_seconds_bucket{server="fs",le="0.05"} 4"#,
        r#"toolway_call_duration_seconds_bucket{server="fs",le="+Inf"} 4"#,
        r#"toolway_call_duration_seconds_count{server="fs"} 4"#,
    ] {
        assert!(answer.lines().any(|one| one == line), "no {line} in {answer}");
    }
    assert!(!answer.contains("secret") && !answer.contains(r#"state="starting""#));
    for (head, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost".to_owned(), "404"),
        ("POST /metrics HTTP/1.1\r\nHost: localhost".to_owned(), "405"),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example".to_owned(), "403"),
        ("GET /metrics HTTP/1.1\r\nHost: [::1]:80".to_owned(), "200"),
        ("GET /metrics HTTP/1.1".to_owned(), "403"),
    ] {
        let answer = get(address, &head).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head}: {answer}");
    }
    end.cancel();
    tasks.close();
    tasks.wait().await;
    assert!(TcpStream::connect(address).await.is_err(), "the port is free again");
}

#[tokio::test]
async fn metrics_for_others_have_to_be_asked_for() {
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let config =
        ObserveConfig { metrics: Some(MetricsConfig { listen, open: false }), ..ObserveConfig::default() };
    let error = Observer::start(&config, &tasks, &end).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot serve metrics on 0.0.0.0:0: others could read them; give a loopback address, or allow it"
    );
    assert!(tasks.is_empty());
    let nothing = Observer::start(&ObserveConfig::default(), &tasks, &end).unwrap();
    assert!(!nothing.is_on());
    nothing.call_finished(&call(Outcome::OK));
    nothing.close().await;
}

#[test]
fn invented_names_make_no_labels_without_end() {
    let metrics = Metrics::default();
    for number in 0..20_000 {
        let (target, method) = (format!("t{number}"), format!("m{number}"));
        metrics.call(&CallRecord { target: &target, ..call(Outcome::OK) });
        metrics.call(&CallRecord { method: &method, target: "", ..call(Outcome::OK) });
        metrics.server_states(&[(&target, "starting")]);
    }
    let text = metrics.text();
    assert!(text.lines().filter(|line| line.starts_with("toolway_calls_total")).count() < 5010);
    assert!(text.contains(r#"toolway_calls_total{server="fs",method="other",target="",outcome="ok"} 20000"#));
    assert!(text.lines().filter(|line| line.starts_with("toolway_server_state")).count() <= 1);
}

/// A collector that answers with these, one connection each, and keeps what it was sent.
async fn collector(answers: Vec<&'static str>) -> (String, tokio::task::JoinSet<Vec<Value>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let mut collector = tokio::task::JoinSet::new();
    collector.spawn(async move {
        let mut bodies = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            bodies.push(received(&mut stream).await);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        bodies
    });
    (url, collector)
}

async fn received(stream: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        stream.read_buf(&mut bytes).await.unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let Ok(body) = serde_json::from_str(body) else { continue };
        assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
        assert!(head.contains("content-type: application/json") && head.contains("x-key: k"), "{head}");
        return body;
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
const BUSY: &str = "HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BAD: &str = "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

fn tracing_to(url: String) -> ObserveConfig {
    let headers = vec![("x-key".to_owned(), toolway_secret::Secret::new("k"))];
    ObserveConfig {
        traces: Some(TracesConfig { headers, ..TracesConfig::new(url) }),
        ..ObserveConfig::default()
    }
}

#[tokio::test]
async fn spans_are_sent_at_the_end_at_the_latest_and_again_when_asked() {
    let (url, mut bodies) = collector(vec![BUSY, OK]).await;
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let mut config = tracing_to(url);
    config.metrics = local().metrics;
    let observer = Observer::start(&config, &tasks, &end).unwrap();
    for _ in 0..600 {
        observer.call_finished(&call(Outcome::OK));
    }
    // More than one batch: the first is sent at once.
    let bodies = bodies.join_next().await.unwrap().unwrap();
    assert_eq!(bodies[0], bodies[1]);
    let spans = bodies[1]["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!((spans.len(), spans[0]["name"].as_str().unwrap()), (512, "tools/call read \"x\""));
    end.cancel();
    tasks.close();
    tasks.wait().await;
    let dropped = observer.0.as_ref().unwrap().traces.as_ref().unwrap().dropped();
    assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 88, "the collector is gone");
}

#[tokio::test]
async fn what_a_collector_refuses_is_dropped_and_counted() {
    let (url, mut bodies) = collector(vec![BAD]).await;
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let observer = Observer::start(&tracing_to(url), &tasks, &end).unwrap();
    observer.call_finished(&call(Outcome::OK));
    end.cancel();
    tasks.close();
    tasks.wait().await;
    assert_eq!(bodies.join_next().await.unwrap().unwrap().len(), 1);
    let dropped = observer.0.as_ref().unwrap().traces.as_ref().unwrap().dropped();
    assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_the_spans_only() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (tasks, end) = (TaskTracker::new(), CancellationToken::new());
    let observer = Observer::start(&tracing_to(url), &tasks, &end).unwrap();
    for _ in 0..5000 {
        observer.call_finished(&call(Outcome::OK));
    }
    let dropped = observer.0.as_ref().unwrap().traces.as_ref().unwrap().dropped();
    assert!(dropped.load(std::sync::atomic::Ordering::Relaxed) >= 5000 - 2048);
    tokio::time::pause();
    end.cancel();
    tasks.close();
    tasks.wait().await;
    assert_eq!(dropped.load(std::sync::atomic::Ordering::Relaxed), 5000);
}
