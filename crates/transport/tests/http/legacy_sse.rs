//! The legacy HTTP+SSE transport.

use toolway_transport::{HttpConfig, SseTransport, Transport};

use crate::client::{Client, Got, INITIALIZE, INITIALIZED, TOKEN, call, config, event, result};
use crate::server::{Request, Server};

fn sse(server: &Server) -> Client<SseTransport> {
    let mut config = config(server).unwrap();
    config.url.set_path("/sse");
    Client::sse(&config).unwrap()
}

/// Answers the GET with a stream whose endpoint is `endpoint`.
async fn open(server: &mut Server, endpoint: &str) -> Request {
    let stream = server.next().await;
    assert_eq!((stream.method.as_str(), stream.path.as_str()), ("GET", "/sse?key=hidden"));
    stream.stream().await;
    stream.raw(format!("event: endpoint\ndata: {endpoint}\n\n")).await;
    stream
}

async fn started(server: &mut Server) -> (Client<SseTransport>, Request) {
    let mut client = sse(server);
    client.send(INITIALIZE).unwrap();
    let stream = open(server, "/message?s=1").await;
    let post = server.next().await;
    assert_eq!((post.path.as_str(), post.body.as_str()), ("/message?s=1", INITIALIZE));
    post.accepted().await;
    stream.raw(event(&result("\"init\""))).await;
    assert_eq!(client.next().await, Got::Message(result("\"init\"")));
    client.send(INITIALIZED).unwrap();
    server.next().await.accepted().await;
    (client, stream)
}

#[tokio::test(start_paused = true)]
async fn messages_go_to_the_endpoint_and_answers_come_on_the_stream() {
    let mut server = Server::memory();
    let (mut client, stream) = started(&mut server).await;
    assert_eq!(stream.header("accept"), Some("text/event-stream"));
    client.call(1).unwrap();
    client.call(2).unwrap();
    let (one, two) = (server.next().await, server.next().await);
    assert_eq!((one.body.as_str(), two.body.as_str()), (call(1).as_str(), call(2).as_str()));
    for request in [&stream, &one, &two] {
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
        assert_eq!(request.header("x-team"), Some("blue"));
    }
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    stream.raw(format!("{}{}{}", event(&result(2)), event(note), event(&result(1)))).await;
    one.accepted().await;
    two.answer("200 OK", "", "Accepted").await;
    for expected in [result(2), note.to_owned(), result(1)] {
        assert_eq!(client.next().await, Got::Message(expected));
    }
}

#[tokio::test(start_paused = true)]
async fn the_endpoint_is_resolved_against_the_stream() {
    for (endpoint, path) in [
        ("message?s=1", "/message?s=1"),
        ("/a/b", "/a/b"),
        ("?s=2", "/sse?s=2"),
        ("http://server.example/abs", "/abs"),
        ("http://SERVER.example:80/abs", "/abs"),
    ] {
        let mut server = Server::memory();
        let mut client = sse(&server);
        client.call(1).unwrap();
        let _stream = open(&mut server, endpoint).await;
        let post = server.next().await;
        assert_eq!((post.method.as_str(), post.path.as_str()), ("POST", path), "{endpoint}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_elsewhere_is_refused_before_anything_goes_there() {
    for endpoint in [
        "http://evil.example/x?s=hidden",
        "https://server.example/x",
        "//evil.example/x",
        "http://server.example:81/",
    ] {
        let mut server = Server::memory();
        let mut client = sse(&server);
        client.call(1).unwrap();
        let stream = open(&mut server, endpoint).await;
        let text = client.failure(&["1"]).await.unwrap();
        assert!(text.contains("is at another origin"), "{endpoint}: {text}");
        stream.gone.cancelled().await;
        assert!(server.already().is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_stream_fails_what_waits_and_the_next_message_begins_anew() {
    let mut server = Server::memory();
    let (mut client, stream) = started(&mut server).await;
    client.call(1).unwrap();
    server.next().await.accepted().await;
    stream.raw("data: {\"jsonrpc\":\"2.0\",\"id\":1,").await;
    stream.close().await;
    assert_eq!(client.next().await, Got::Aborted);
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("ended before the answer: the server closed it"), "{text}");
    client.call(2).unwrap();
    let stream = open(&mut server, "/message?s=2").await;
    let post = server.next().await;
    assert_eq!((post.path.as_str(), post.body.as_str()), ("/message?s=2", INITIALIZE));
    post.accepted().await;
    stream.raw(event(&result("\"init\""))).await;
    let post = server.next().await;
    assert_eq!(post.body, INITIALIZED);
    post.accepted().await;
    let post = server.next().await;
    assert_eq!((post.path.as_str(), post.body.as_str()), ("/message?s=2", call(2).as_str()));
    post.accepted().await;
    stream.raw(event(&result(2))).await;
    assert_eq!(client.next().await, Got::Message(result(2)), "the second handshake is not seen");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_fails_answers_the_first_request() {
    for (status, headers, body, expected) in [
        (
            "401 Unauthorized",
            "www-authenticate: Bearer\r\n",
            "",
            "HTTP 401 Unauthorized from http://server.example/sse",
        ),
        ("404 Not Found", "", "gone", "HTTP 404 Not Found from http://server.example/sse: gone"),
        ("200 OK", "content-type: text/html\r\n", "<p>", "answered HTML, not MCP"),
        ("200 OK", "content-type: application/json\r\n", "{}", "answered what is not MCP"),
    ] {
        let mut server = Server::memory();
        let mut client = sse(&server);
        client.send(INITIALIZE).unwrap();
        server.next().await.answer(status, headers, body).await;
        let text = client.failure(&["\"init\""]).await.unwrap();
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_post_that_is_refused_fails_its_request_only() {
    let mut server = Server::memory();
    let (mut client, stream) = started(&mut server).await;
    client.call(1).unwrap();
    client.call(2).unwrap();
    let (one, two) = (server.next().await, server.next().await);
    one.answer("500 Oops", "", "broken").await;
    let text = client.failure(&["1"]).await.unwrap();
    assert_eq!(text, "HTTP 500 Internal Server Error from http://server.example/message: broken");
    two.accepted().await;
    stream.raw(event(&result(2))).await;
    assert_eq!(client.next().await, Got::Message(result(2)));
}

#[tokio::test(start_paused = true)]
async fn silence_while_somebody_waits_ends_the_session_and_idling_does_not() {
    let mut server = Server::memory();
    let (mut client, stream) = started(&mut server).await;
    tokio::time::sleep(std::time::Duration::from_hours(1)).await;
    assert!(!stream.gone.is_cancelled());
    client.call(1).unwrap();
    let began = tokio::time::Instant::now();
    server.next().await.accepted().await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("--sse-read-timeout"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 300);
    stream.gone.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_that_never_comes_is_told() {
    let mut server = Server::memory();
    let mut client = sse(&server);
    client.call(1).unwrap();
    let stream = server.next().await;
    stream.stream().await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("sent no endpoint event in time"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn closing_leaves_no_connection() {
    let mut server = Server::memory();
    let (mut client, stream) = started(&mut server).await;
    client.call(1).unwrap();
    let post = server.next().await;
    client.transport.close().await;
    stream.gone.cancelled().await;
    post.gone.cancelled().await;
    assert_eq!(client.next().await, Got::Closed);
    assert!(client.call(2).is_err());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut client = Client::sse(&HttpConfig::new(&format!("http://{address}/sse")).unwrap()).unwrap();
    client.send(INITIALIZE).unwrap();
    let text = client.failure(&["\"init\""]).await.unwrap();
    assert_eq!(text, format!("cannot connect to http://{address}: connection refused"));
}
