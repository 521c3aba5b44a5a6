//! Answers of refusal, redirects, time limits: each ends in an error that says what happened and what to do.

use std::time::Duration;

use crate::client::{Client, Got, INITIALIZE, TOKEN, answer_initialize, call, config, result};
use crate::server::Server;

#[tokio::test(start_paused = true)]
async fn t07a_a_refusal_names_status_and_scope_and_is_not_retried() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(7).unwrap();
    let body = format!(r#"{{"error":"insufficient_scope","error_description":"need repo, not {TOKEN}"}}"#);
    let headers = "content-type: application/json\r\nwww-authenticate: Bearer scope=\"repo\"\r\n";
    server.next().await.answer("403 Forbidden", headers, &body).await;
    let text = client.failure(&["7"]).await.unwrap();
    for part in [
        "HTTP 403 Forbidden",
        "insufficient_scope",
        "need repo, not [redacted]",
        "Bearer scope=\"repo\"",
        "--header Authorization=",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    client.call(8).unwrap();
    assert_eq!(server.next().await.id(), "8", "the refused call did not come again");
}

#[tokio::test(start_paused = true)]
async fn an_unauthorized_start_answers_the_first_request() {
    let mut server = Server::memory();
    let mut plain = config(&server).unwrap();
    plain.headers.clear();
    let mut client = Client::with(&plain).unwrap();
    client.send(INITIALIZE).unwrap();
    server.next().await.answer("401 Unauthorized", "www-authenticate: Bearer\r\n", "").await;
    let text = client.failure(&["\"init\""]).await.unwrap();
    assert_eq!(
        text,
        "HTTP 401 Unauthorized from http://server.example/mcp (WWW-Authenticate: Bearer). \
         To log in, pass --oauth, or a token with --header Authorization=\"Bearer TOKEN\""
    );
    client.send(INITIALIZE).unwrap();
    answer_initialize(&server.next().await, "S1").await;
    assert!(matches!(client.next().await, Got::Message(_)), "usable once the server agrees");
}

#[tokio::test(start_paused = true)]
async fn a_json_rpc_error_with_the_id_is_handed_on_whatever_the_status() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    for status in ["400 Bad Request", "404 Not Found", "422 Odd", "500 Internal Server Error"] {
        client.call(3).unwrap();
        let body = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such method"}}"#;
        server.next().await.answer(status, "content-type: application/json\r\n", body).await;
        assert_eq!(client.next().await, Got::Message(body.to_owned()), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_errors_are_named_and_the_transport_stays_usable() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    server.next().await.answer("500 Bench", "content-type: text/plain\r\n", "stack trace\nline 2").await;
    let text = client.failure(&["1"]).await.unwrap();
    assert_eq!(text, "HTTP 500 Internal Server Error from http://server.example/mcp: stack trace line 2");
    client.call(2).unwrap();
    let page = "<html><body>Bad gateway</body></html>";
    server.next().await.answer("502 Bad Gateway", "content-type: text/html\r\n", page).await;
    let text = client.failure(&["2"]).await.unwrap();
    assert_eq!(text, "HTTP 502 Bad Gateway from http://server.example/mcp: answered HTML, not MCP");
    client.call(3).unwrap();
    server.next().await.json(&result(3)).await;
    assert_eq!(client.next().await, Got::Message(result(3)));
}

#[tokio::test(start_paused = true)]
async fn redirects_within_the_origin_keep_method_body_and_headers() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        client.call(1).unwrap();
        server.next().await.answer(status, "location: /v2/mcp?a=b\r\n", "").await;
        let request = server.next().await;
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v2/mcp?a=b"));
        assert_eq!(request.body, call(1));
        assert_eq!(request.header("x-team"), Some("blue"));
        assert_eq!(request.header("mcp-session-id"), Some("S1"));
        request.json(&result(1)).await;
        assert_eq!(client.next().await, Got::Message(result(1)));
    }
}

#[tokio::test(start_paused = true)]
async fn redirects_to_another_origin_carry_no_secret() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    server.next().await.answer("307 Temporary Redirect", "location: http://other.example/mcp\r\n", "").await;
    let request = server.next().await;
    assert_eq!((request.header("host"), request.body.as_str()), (Some("other.example"), call(1).as_str()));
    for name in ["authorization", "x-team", "mcp-session-id"] {
        assert_eq!(request.header(name), None, "{name}");
    }
    assert_eq!(request.header("mcp-protocol-version"), Some("2025-06-18"));
    request.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    client.call(2).unwrap();
    let request = server.next().await;
    assert_eq!(
        (request.header("host"), request.header("mcp-session-id")),
        (Some("server.example"), Some("S1"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_redirect_that_loses_the_body_or_the_encryption_is_refused() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    for (status, location, expected) in [
        (
            "301 Moved",
            "/new?key=hidden2",
            "HTTP 301: http://server.example/mcp redirects to http://server.example/new; use that URL",
        ),
        (
            "302 Found",
            "https://login.example/start?state=1",
            "redirects to https://login.example/start; use that URL",
        ),
        ("303 See Other", "/x", "use that URL"),
        ("307 Temporary Redirect", "ftp://x/", "redirects to where one cannot go: its scheme is ftp"),
        ("307 Temporary Redirect", "http://user:hidden@x/", "it holds a user or a password"),
    ] {
        client.call(1).unwrap();
        server.next().await.answer(status, &format!("location: {location}\r\n"), "").await;
        let text = client.failure(&["1"]).await.unwrap();
        assert!(text.contains(expected), "{text}");
    }
    client.call(1).unwrap();
    for _ in 0..6 {
        server.next().await.answer("308 Permanent Redirect", "location: /again\r\n", "").await;
    }
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("more than 5 redirects"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn silence_before_the_answer_ends_with_the_option_to_raise() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    let began = tokio::time::Instant::now();
    client.call(1).unwrap();
    let request = server.next().await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("within 120 s (raise --timeout"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 120);
    request.gone.cancelled().await;
    client.call(2).unwrap();
    let request = server.next().await;
    request.raw("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{\"jsonrpc\"").await;
    assert_eq!(client.next().await, Got::Aborted);
    let text = client.failure(&["2"]).await.unwrap();
    assert!(text.contains("sent nothing for 120 s in the middle of its answer"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_that_keeps_coming_is_awaited() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    let body = result(1);
    request.raw(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len())).await;
    let drip = async {
        for byte in body.bytes() {
            tokio::time::sleep(Duration::from_secs(100)).await;
            request.raw([byte]).await;
        }
    };
    let (got, ()) = tokio::join!(client.next(), drip);
    assert_eq!(got, Got::Message(result(1)));
}

#[tokio::test(start_paused = true)]
async fn a_silent_event_stream_ends_but_comments_keep_it_alive() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.stream().await;
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(200)).await;
        request.raw(": keep-alive\n\n").await;
    }
    let began = tokio::time::Instant::now();
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("for 300 s (raise --sse-read-timeout"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 300);
}
