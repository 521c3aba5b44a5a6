//! Requests in forms that HTTP allows and few clients use, and in some that it does not.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use toolway_bridge::HostResult;

use crate::rig::{Rig, call, initialize, text_of};
use crate::wire::{Wire, request};

fn text(rig: &Rig, version: &str, more: &str) -> String {
    format!(
        "POST {} HTTP/{version}\r\nHost: localhost:{}\r\nContent-Type: application/json\r\n{more}\r\n",
        rig.path, rig.port
    )
}

#[tokio::test]
async fn requests_that_come_ahead_are_answered_in_order() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = Wire::open(rig.port).await?;
    let mut ahead = session.post(&rig, &call(1, "pi__slow", &json!({})));
    for id in 2..6 {
        ahead.extend(session.post(&rig, &call(id, "pi__echo", &json!({"n": id}))));
    }
    wire.send(&ahead).await?;
    let started = rig.started().await?;
    rig.run.settle(&started.id, HostResult::text("first"));
    assert_eq!(text_of(&wire.answer().await?.json()?), "first");
    for id in 2..6 {
        let answer = wire.answer().await?.json()?;
        assert_eq!(
            (answer["id"].clone(), text_of(&answer)),
            (json!(id), format!(r#"{{"n":{id}}}"#).as_str())
        );
    }
    Ok(())
}

#[tokio::test]
async fn http_1_0_is_answered_where_it_says_its_host() -> Result<()> {
    let rig = Rig::new().await?;
    let body = initialize("2025-11-25").to_string();
    let length = format!("Content-Length: {}\r\n", body.len());
    let mut wire = Wire::open(rig.port).await?;
    wire.send(format!("{}{body}", text(&rig, "1.0", &length)).as_bytes()).await?;
    let answer = wire.answer().await?;
    assert_eq!((answer.status(), answer.json()?["id"].clone()), (200, json!(0)));
    assert!(wire.is_closed().await?);
    let hostless = text(&rig, "1.0", &length).replace(&format!("Host: localhost:{}\r\n", rig.port), "");
    let answer = rig.ask(format!("{hostless}{body}").as_bytes()).await?;
    assert_eq!(answer.status(), 403);
    Ok(())
}

#[tokio::test]
async fn chunks_with_extensions_and_trailers_are_one_body() -> Result<()> {
    let rig = Rig::new().await?;
    let body = initialize("2025-11-25").to_string();
    let (one, two) = body.split_at(10);
    for trailer in ["", "X-Sum: 1\r\nMcp-Session-Id: x\r\nHost: evil.example\r\n"] {
        let head = text(&rig, "1.1", "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n");
        let chunks = format!("A;a=b\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n{trailer}\r\n", two.len());
        let mut wire = Wire::open(rig.port).await?;
        wire.send(format!("{head}{chunks}{head}{chunks}").as_bytes()).await?;
        for _ in 0..2 {
            let answer = wire.answer().await?;
            assert_eq!((answer.status(), answer.json()?["id"].clone()), (200, json!(0)));
        }
    }
    Ok(())
}

#[tokio::test]
async fn who_asks_before_it_sends_is_told_to_go_on_or_why_not() -> Result<()> {
    let rig = Rig::new().await?;
    let body = initialize("2025-11-25").to_string();
    let expect = |length: usize| format!("Expect: 100-continue\r\nContent-Length: {length}\r\n");
    let mut wire = Wire::open(rig.port).await?;
    wire.send(text(&rig, "1.1", &expect(body.len())).as_bytes()).await?;
    assert_eq!(wire.head().await?.status, 100);
    wire.send(body.as_bytes()).await?;
    assert_eq!(wire.answer().await?.status(), 200);
    // What is refused anyway is not sent at all.
    let large = text(&rig, "1.1", &expect(100 << 20));
    for (request, status) in [
        (large.clone(), 413),
        (large.replace("localhost", "evil.example"), 403),
        (large.replace("application/json", "text/plain"), 415),
        (large.replace("/mcp HTTP", "/mcp/ HTTP"), 404),
    ] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(request.as_bytes()).await?;
        assert_eq!(wire.answer().await?.status(), status);
        assert!(wire.is_closed().await?, "the body cannot be left out on an open connection");
    }
    Ok(())
}

#[tokio::test]
async fn headers_that_stand_twice_are_not_chosen_from() -> Result<()> {
    let rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let host = format!("127.0.0.1:{}", rig.port);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let basic = [
        ("Host", host.as_str()),
        ("Content-Type", "application/json"),
        ("Mcp-Session-Id", session.session.as_str()),
    ];
    let with = |more: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> = basic.iter().chain(more).copied().collect();
        request("POST", &rig.path, &headers, ping.as_bytes())
    };
    for (more, status) in [
        (vec![], 200),
        (vec![("Accept", "application/json"), ("Accept", "text/event-stream")], 200),
        (vec![("Host", host.as_str())], 403),
        (vec![("Content-Type", "text/plain")], 415),
        (vec![("Content-Type", "application/json")], 415),
        (vec![("Origin", "http://localhost"), ("Origin", "http://localhost")], 403),
        (vec![("Mcp-Session-Id", "another")], 400),
        (vec![("MCP-Protocol-Version", "2025-11-25"), ("MCP-Protocol-Version", "2025-06-18")], 400),
    ] {
        let answer = rig.ask(&with(&more)).await?;
        assert_eq!(answer.status(), status, "{more:?}");
    }
    Ok(())
}

#[tokio::test]
async fn targets_and_methods_in_other_spellings() -> Result<()> {
    let rig = Rig::new().await?;
    let body = initialize("2025-11-25").to_string();
    let plain = format!("{}{body}", text(&rig, "1.1", &format!("Content-Length: {}\r\n", body.len())));
    let target = |target: &str| plain.replacen(&rig.path, target, 1);
    let (path, port) = (rig.path.as_str(), rig.port);
    let token = path.split('/').nth(2).context("no token")?;
    for (request, status) in [
        (target(&format!("http://127.0.0.1:{port}{path}")), 200),
        (target(&format!("http://localhost:{port}{path}")), 200),
        (target(&format!("http://LOCALHOST:{port}{path}")), 200),
        (target(&format!("http://evil.example:{port}{path}")), 403),
        (target(&format!("http://user@127.0.0.1:{port}{path}")), 403),
        (target(&format!("http://127.0.0.1{path}")), 403),
        (target(&format!("{path}?x=y")), 200),
        (target(&format!("/{path}")), 404),
        (target(&path.replace(token, &token.replace('-', "%2d"))), 404),
        (target(&path.replace(token, &"0".repeat(token.len()))), 404),
        (plain.replacen("POST", "post", 1), 405),
        (plain.replacen("POST", "PATCH", 1), 405),
        (plain.replacen("Host", "hOST", 1), 200),
        (plain.replacen("localhost", "localhost.", 1), 403),
        (plain.replacen("localhost", "127.0.0.1", 1), 200),
        (plain.replacen("localhost", "127.0.0.001", 1), 403),
        (plain.replacen("localhost", "[::1]", 1), 403),
        (plain.replacen("localhost", "0x7f000001", 1), 403),
    ] {
        let mut wire = Wire::open(rig.port).await?;
        wire.send(request.as_bytes()).await?;
        let answer = wire.answer().await?;
        assert_eq!(answer.status(), status, "{}", request.lines().next().unwrap_or_default());
    }
    // Two requests of which the first is refused: the second stands for itself.
    let mut wire = Wire::open(rig.port).await?;
    let refused = plain.replacen("localhost", "evil.example", 1);
    wire.send(format!("{refused}{plain}").as_bytes()).await?;
    assert_eq!(wire.answer().await?.status(), 403);
    if let Ok(answer) = tokio::time::timeout(Duration::from_secs(20), wire.answer()).await? {
        assert_eq!(answer.status(), 200);
    }
    Ok(())
}
