//! Requests of the modern generation over HTTP.

use std::time::Duration;

use super::hub::Played;
use super::peer::{Peer, request};
use crate::gateway::front::HttpFrontConfig;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn call(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{META}{params}}}}}"#)
}

async fn post(port: u16, method: &str, body: &str) -> Peer {
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    Peer::send(port, &request("POST", port, &headers, body)).await
}

#[tokio::test]
async fn each_request_is_whole_in_itself() {
    let mut played = Played::http(HttpFrontConfig::default()).await;
    let port = played.port;
    let mut peer = post(port, "tools/list", &call("1", "tools/list", "")).await;
    assert_eq!((peer.status, peer.header("mcp-session-id")), (200, None));
    assert!(peer.body().await.contains("tools/list"));
    played.saw("opened passing=true").await;
    played.saw("closed").await;
    let mut events = post(port, "progress", &call("1", "progress", "")).await;
    let body = events.body().await;
    assert!(body.contains("progress/2") && body.contains("\"done\":1") && !body.contains("id: "), "{body}");
    let mut unknown = post(port, "unknown", &call("\"a\"", "unknown", "")).await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.body().await.contains(r#""id":"a","error":{"code":-32601"#));
    for removed in ["initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        let mut peer = post(port, removed, &call("1", removed, "")).await;
        assert_eq!(peer.status, 404, "{removed}");
        assert!(peer.body().await.contains("-32601"));
    }
    for method in ["GET", "DELETE"] {
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Accept", "text/event-stream")];
        assert_eq!(Peer::send(port, &request(method, port, &headers, "")).await.status, 405, "{method}");
    }
    let headers = [("MCP-Protocol-Version", "2026-07-28")];
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(Peer::send(port, &request("POST", port, &headers, note)).await.status, 202);
    let response = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(Peer::send(port, &request("POST", port, &headers, response)).await.status, 400);
    played.stop().await;
}

#[tokio::test]
async fn headers_say_what_the_body_says_or_the_request_is_refused() {
    let played = Played::http(HttpFrontConfig::default()).await;
    let port = played.port;
    let named = call("1", "tools/call", r#","name":"t""#);
    let read = call("1", "resources/read", r#","uri":"f:\u00e9""#);
    let list = call("1", "tools/list", "");
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let other = list.replace("2026-07-28", "1900-01-01");
    let bare = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;
    let half = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let discover = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    for (headers, body, status, text) in [
        (vec![version, ("Mcp-Method", "tools/list")], list.as_str(), 200, "result"),
        (vec![("Mcp-Method", "tools/list")], &list, 400, "-32020"),
        (vec![version], &list, 400, "-32020"),
        (vec![version, ("Mcp-Method", "tools/call")], &list, 400, "-32020"),
        (vec![("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/list")], &list, 400, "-32020"),
        (vec![version, version, ("Mcp-Method", "tools/list")], &list, 400, "-32020"),
        (vec![("MCP-Protocol-Version", "1900-01-01"), ("Mcp-Method", "tools/list")], &other, 400, "-32022"),
        (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "t")], &named, 200, "result"),
        (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?dA==?=")], &named, 200, "result"),
        (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?!?=")], &named, 400, "-32020"),
        (vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "T")], &named, 400, "-32020"),
        (vec![version, ("Mcp-Method", "tools/call")], &named, 400, "-32020"),
        (
            vec![version, ("Mcp-Method", "resources/read"), ("Mcp-Name", "=?base64?ZjrDqQ==?=")],
            &read,
            200,
            "result",
        ),
        (vec![version, ("Mcp-Method", "tools/list")], bare, 400, "-32602"),
        (vec![version, ("Mcp-Method", "tools/list")], half, 400, "-32602"),
        (vec![version, ("Mcp-Method", "server/discover")], discover, 400, "-32602"),
    ] {
        let mut peer = Peer::send(port, &request("POST", port, &headers, body)).await;
        let answer = peer.body().await;
        assert_eq!(peer.status, status, "{headers:?} {body}: {answer}");
        assert!(answer.contains(text), "{headers:?}: {answer}");
    }
    played.stop().await;
}

#[tokio::test]
async fn closing_an_answer_gives_the_request_up() {
    let config = HttpFrontConfig { patience: Duration::from_millis(20), ..HttpFrontConfig::default() };
    let mut played = Played::http(config).await;
    let port = played.port;
    let begun = post(port, "never", &call("1", "never", "")).await;
    assert_eq!(begun.header("content-type").as_deref(), Some("text/event-stream"));
    drop(begun);
    played.saw("closed").await;
    let mut listening = post(port, "begin", &call("1", "begin", "")).await;
    listening.until("progress/1").await;
    drop(listening);
    played.saw("closed").await;
    played.stop().await;
    // Before a byte was sent.
    let mut played = Played::http(HttpFrontConfig::default()).await;
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "never")];
    let text = request("POST", played.port, &headers, &call("1", "never", ""));
    let silent = Peer::open(played.port, &text).await;
    played.saw("never").await;
    drop(silent);
    played.saw("closed").await;
    played.stop().await;
}
