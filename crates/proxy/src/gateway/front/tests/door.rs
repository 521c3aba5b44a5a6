//! Who is turned away at the door, and what bad clients cost.

use std::time::Duration;

use toolway_secret::Secret;

use super::hub::Played;
use super::peer::{Legacy, Peer, call, request};
use crate::gateway::front::HttpFrontConfig;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

#[tokio::test]
async fn who_may_not_call_is_turned_away_before_anything_is_read() {
    let config = HttpFrontConfig { token: Some(Secret::new("tok")), ..HttpFrontConfig::default() };
    let played = Played::http(config).await;
    let port = played.port;
    let token = ("Authorization", "Bearer tok");
    let local = format!("localhost:{port}");
    let v6 = format!("[::1]:{port}");
    let here = format!("http://localhost:{port}");
    for (headers, status) in [
        (vec![token], 200),
        (vec![token, ("Host", &local)], 200),
        (vec![token, ("Host", "evil.example")], 403),
        (vec![token, ("Host", "")], 400),
        (vec![token, ("Host", &v6)], 403),
        (vec![token, ("Origin", &here)], 200),
        (vec![token, ("Host", &local), ("Origin", "http://evil.example")], 403),
        (vec![token, ("Origin", "null")], 403),
        (vec![], 401),
        (vec![("Authorization", "Bearer tok2")], 401),
        (vec![("Authorization", "Bearer tot")], 401),
        (vec![token, ("Content-Type", "text/plain")], 415),
        (vec![token, ("Accept", "text/html")], 406),
    ] {
        let peer = Peer::send(port, &request("POST", port, &headers, INITIALIZE)).await;
        assert_eq!(peer.status, status, "{headers:?}");
        assert!(!peer.head.to_lowercase().contains("access-control"), "{}", peer.head);
    }
    // What is turned away is never parsed: the body is not even JSON, and half of it is missing.
    let bad =
        request("POST", port, &[("Origin", "http://evil.example"), ("Content-Length", "50")], "{nonsense");
    assert_eq!(Peer::send(port, &bad).await.status, 403);
    for (method, status) in [("OPTIONS", 405), ("PUT", 405), ("HEAD", 405)] {
        let headers = [token, ("Origin", here.as_str()), ("Access-Control-Request-Method", "POST")];
        let peer = Peer::send(port, &request(method, port, &headers, "")).await;
        assert_eq!(peer.status, status, "{method}");
        assert!(!peer.head.to_lowercase().contains("access-control"), "{}", peer.head);
    }
    let other = request("POST", port, &[token], INITIALIZE).replace("POST /mcp ", "POST /other ");
    assert_eq!(Peer::send(port, &other).await.status, 404);
    let refused = Peer::send(port, &request("POST", port, &[], INITIALIZE)).await;
    assert_eq!(refused.header("www-authenticate").as_deref(), Some("Bearer realm=\"toolway\""));
    played.stop().await;
}

#[tokio::test]
async fn large_bodies_are_refused_whether_they_say_so_or_not() {
    let config = HttpFrontConfig { max_body: 1 << 20, ..HttpFrontConfig::default() };
    let played = Played::http(config).await;
    let port = played.port;
    let announced = request("POST", port, &[("Content-Length", "104857600")], "{");
    assert_eq!(Peer::send(port, &announced).await.status, 413);
    let chunked = request("POST", port, &[("Transfer-Encoding", "chunked"), ("Content-Length", "")], "");
    let mut peer = Peer::open(port, &chunked).await;
    let piece = [b"10000\r\n\"".as_slice(), &vec![b'x'; 0xFFFF], b"\r\n"].concat();
    for _ in 0..17 {
        if !peer.more(&piece).await {
            break;
        }
    }
    peer.head().await;
    assert_eq!(peer.status, 413);
    // One that is below the bound but above what is held in memory is taken in.
    let legacy = Legacy::new(port, "2025-11-25").await;
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"large","params":{{"x":"{}"}}}}"#, "z".repeat(900_000));
    assert!(legacy.post(&large).await.body().await.contains("\"bytes\":9000"));
    played.stop().await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused_alone() {
    let played = Played::http(HttpFrontConfig::default()).await;
    let port = played.port;
    let legacy = Legacy::new(port, "2025-11-25").await;
    for (body, code) in [
        ("{", "-32700"),
        ("nonsense", "-32700"),
        ("[]", "-32600"),
        ("{}", "-32600"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, "-32600"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}"#, "-32700"),
        (" \n ", "-32600"),
    ] {
        let mut peer = legacy.post(body).await;
        let text = peer.body().await;
        assert_eq!(peer.status, 400, "{body}: {text}");
        assert!(text.contains(code), "{body}: {text}");
    }
    assert!(legacy.post(&call("1", "on")).await.body().await.contains("\"method\":\"on\""));
    played.stop().await;
}

#[tokio::test]
async fn clients_that_stall_or_vanish_cost_their_own_connection_only() {
    let config = HttpFrontConfig { stall: Duration::from_millis(200), ..HttpFrontConfig::default() };
    let mut played = Played::http(config).await;
    let port = played.port;
    let legacy = Legacy::new(port, "2025-11-25").await;
    // Half a head, and half a body.
    let mut half = Peer::open(port, "POST /mcp HTTP/1.1\r\nHost: loc").await;
    assert!(half.is_closed().await);
    let mut half = Peer::open(port, &request("POST", port, &[("Content-Length", "100")], "{\"a\":")).await;
    half.head().await;
    assert_eq!(half.status, 408);
    // Gone in the middle of a call, before and after the answer has begun.
    let open = request("POST", port, &[("Mcp-Session-Id", &legacy.session)], &call("5", "never"));
    let gone = Peer::open(port, &open).await;
    played.saw("never").await;
    drop(gone);
    let mut begun = legacy.post(&call("6", "begin")).await;
    begun.until("progress/1").await;
    drop(begun);
    let other = Legacy::new(port, "2025-06-18").await;
    for client in [&legacy, &other] {
        assert!(client.post(&call("7", "on")).await.body().await.contains("\"method\":\"on\""));
    }
    played.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_no_events_is_given_up_and_costs_no_memory() {
    let config = HttpFrontConfig { stall: Duration::from_millis(300), ..HttpFrontConfig::default() };
    let played = Played::http(config).await;
    let legacy = Legacy::new(played.port, "2025-11-25").await;
    for id in 10..14 {
        let open = request(
            "POST",
            played.port,
            &[("Mcp-Session-Id", &legacy.session)],
            &call(&id.to_string(), "flood"),
        );
        let mut deaf = Peer::open(played.port, &open).await;
        deaf.head().await;
        let text = deaf.body().await;
        assert!(text.ends_with("\n\n"), "whole events only");
        assert!(text.contains("after"), "the answer is never dropped");
    }
    played.stop().await;
}
