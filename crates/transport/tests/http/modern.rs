//! The modern era over HTTP: headers that mirror the message, cancellation by closing, no session and no stream.

use toolway_transport::Transport;

use crate::client::{Client, Got, event};
use crate::server::{Request, Server};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":7}"#;

fn request(id: u32, method: &str, params: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}{META}}}}}"#)
}

fn result(id: impl std::fmt::Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete"}}}}"#)
}

fn mirrored(request: &Request) -> Vec<(&str, &str)> {
    request.headers_of("mcp-")
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[tokio::test(start_paused = true)]
async fn method_and_name_are_mirrored_into_headers() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.transport.learn_tools(br#"{"tools":[]}"#);
    for (method, params, name) in [
        ("server/discover", "", None),
        ("tools/call", r#""name":"get_weather","arguments":{}"#, Some("get_weather")),
        ("prompts/get", r#""name":"\u4e16\u754c""#, Some("=?base64?5LiW55WM?=")),
        ("resources/read", r#""uri":"file:///a b""#, Some("file:///a b")),
        ("completion/complete", r#""name":"x""#, None),
    ] {
        client.send(&request(1, method, params)).unwrap();
        let seen = server.next().await;
        let mut expected = vec![("mcp-method", method)];
        expected.extend(name.map(|name| ("mcp-name", name)));
        expected.push(VERSION);
        assert_eq!(mirrored(&seen), expected, "{method}");
        assert_eq!(seen.body, request(1, method, params));
        seen.json(&result(1)).await;
        assert_eq!(client.next().await, Got::Message(result(1)));
    }
    let long = "n".repeat(3000);
    client.send(&request(2, "prompts/get", &format!(r#""name":"{long}""#))).unwrap();
    assert_eq!(server.next().await.header("mcp-name"), Some(long.as_str()));
}

const LIST: &str = r#"{"resultType":"complete","tools":[{"name":"sql","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}"#;

#[tokio::test(start_paused = true)]
async fn parameters_are_mirrored_as_the_list_that_passed_says() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(&request(1, "tools/list", "")).unwrap();
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{LIST}}}"#);
    server.next().await.json(&list).await;
    assert_eq!(client.next().await, Got::Message(list));
    client.send(&request(2, "tools/call", r#""name":"sql","arguments":{"region":"us"}"#)).unwrap();
    let seen = server.next().await;
    let expected = [("mcp-method", "tools/call"), ("mcp-name", "sql"), ("mcp-param-region", "us"), VERSION];
    assert_eq!(mirrored(&seen), expected);
}

#[tokio::test(start_paused = true)]
async fn when_no_list_has_passed_it_is_asked_for_once() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    let call = |id| request(id, "tools/call", r#""name":"sql","arguments":{"region":"us"}"#);
    client.send(&call(1)).unwrap();
    client.send(&call(2)).unwrap();
    for (cursor, next) in [(None, r#""nextCursor":"p2","#), (Some("p2"), "")] {
        let asked = server.next().await;
        assert_eq!(mirrored(&asked), [("mcp-method", "tools/list"), VERSION]);
        let body: serde_json::Value = serde_json::from_str(&asked.body).unwrap();
        assert_eq!(body["params"]["cursor"].as_str(), cursor);
        assert_eq!(body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(body["params"]["_meta"]["progressToken"], serde_json::Value::Null);
        let tools = if cursor.is_some() { LIST.trim_start_matches('{') } else { r#""tools":[]}"# };
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{{next}{tools}}}"#, body["id"]);
        asked.stream().await;
        asked.raw(event(&answer)).await;
    }
    for id in [1, 2] {
        let seen = server.next().await;
        assert_eq!((seen.body.as_str(), seen.header("mcp-param-region")), (call(id).as_str(), Some("us")));
        seen.json(&result(id)).await;
        assert_eq!(client.next().await, Got::Message(result(id)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_list_gets_the_call_all_the_same() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(&request(1, "tools/call", r#""name":"sql""#)).unwrap();
    server.next().await.answer("404 Not Found", "", "").await;
    server.next().await.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    client.send(&request(2, "tools/call", r#""name":"sql""#)).unwrap();
    assert_eq!(server.next().await.header("mcp-method"), Some("tools/call"), "not asked again");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_headers_are_stale_is_sent_again_with_new_ones() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.transport.learn_tools(br#"{"tools":[]}"#);
    client.send(&request(1, "tools/call", r#""name":"sql","arguments":{"region":"us"}"#)).unwrap();
    let refused = server.next().await;
    assert_eq!(refused.header("mcp-param-region"), None);
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}}"#;
    refused.answer("400 Bad Request", "content-type: application/json\r\n", error).await;
    let asked = server.next().await;
    asked.json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{LIST}}}"#, asked.id())).await;
    let seen = server.next().await;
    assert_eq!(seen.header("mcp-param-region"), Some("us"));
    seen.answer("400 Bad Request", "content-type: application/json\r\n", error).await;
    let got = client.next().await;
    assert!(
        matches!(&got, Got::Failed { code: -32020, text, .. } if text == "Mcp-Param-Region is missing"),
        "{got:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn cancelling_closes_the_stream_and_sends_nothing() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.transport.learn_tools(br#"{"tools":[]}"#);
    client.send(&request(1, "tools/call", r#""name":"slow""#)).unwrap();
    client.send(&request(2, "subscriptions/listen", "")).unwrap();
    let (call, listen) = (server.next().await, server.next().await);
    call.stream().await;
    call.raw("data: {\"jsonrpc\":\"2.0\",\"id\":1,").await;
    listen.stream().await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).unwrap();
    call.gone.cancelled().await;
    assert_eq!(client.next().await, Got::Aborted);
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert!(!listen.gone.is_cancelled(), "a subscription is idle by nature");
    listen.raw(event(&result(2))).await;
    assert_eq!(client.next().await, Got::Message(result(2)));
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).unwrap();
    client.send(&request(3, "server/discover", "")).unwrap();
    assert_eq!(server.next().await.id(), "3", "no cancellation was posted");
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_not_resumed_and_there_is_no_session_to_end() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(&request(1, "server/discover", "")).unwrap();
    let seen = server.next().await;
    seen.stream().await;
    seen.raw("id: e1\ndata:\n\n").await;
    seen.close().await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("ended before the answer"), "{text}");
    client.transport.close().await;
    assert!(server.already().is_none());
}

#[tokio::test(start_paused = true)]
async fn the_specifications_errors_are_handed_on_with_their_bytes() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    for (status, code) in
        [("400 Bad Request", -32020), ("400 Bad Request", -32022), ("404 Not Found", -32601)]
    {
        client.send(&request(1, "server/discover", "")).unwrap();
        let body = format!(
            r#"{{"jsonrpc":"2.0", "id":1,"error":{{"code":{code},"message":"m","data":{{"supported":[]}}}}}}"#
        );
        server.next().await.answer(status, "content-type: application/json\r\n", &body).await;
        assert_eq!(client.next().await, Got::Message(body));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_probes_and_then_initializes_is_legacy_from_then_on() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(&request(1, "server/discover", "")).unwrap();
    let seen = server.next().await;
    assert_eq!(mirrored(&seen), [("mcp-method", "server/discover"), VERSION]);
    seen.answer("400 Bad Request", "", "Bad Request: Unsupported protocol version").await;
    assert!(matches!(client.next().await, Got::Failed { .. }));
    client.start(&mut server, "S1").await.unwrap();
    client.call(2).unwrap();
    let seen = server.next().await;
    assert_eq!(mirrored(&seen), [("mcp-protocol-version", "2025-06-18"), ("mcp-session-id", "S1")]);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).unwrap();
    let cancel = server.next().await;
    assert!(cancel.body.contains("notifications/cancelled"), "in this era it is posted");
    assert!(!seen.gone.is_cancelled());
}
