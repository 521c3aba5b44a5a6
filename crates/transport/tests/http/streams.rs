//! Event streams that break, and the server's own stream.

use crate::client::{Client, Got, INITIALIZE, INITIALIZED, answer_initialize, event, result};
use crate::server::Server;

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}"#;

#[tokio::test(start_paused = true)]
async fn a_stream_with_ids_is_resumed_where_it_broke() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.stream().await;
    request.raw(format!("id: e1\nretry: 2500\n{}id: e2\ndata: {{\"jsonrpc\"", event(NOTE))).await;
    assert_eq!(client.next().await, Got::Message(NOTE.to_owned()));
    request.close().await;
    let began = tokio::time::Instant::now();
    assert_eq!(client.next().await, Got::Aborted, "half an event is taken back");
    let request = server.next().await;
    assert_eq!(began.elapsed().as_millis(), 2500, "the server's delay is kept");
    assert_eq!((request.method.as_str(), request.header("last-event-id")), ("GET", Some("e1")));
    assert_eq!(request.header("mcp-session-id"), Some("S1"));
    request.stream().await;
    request.raw(event(&result(1))).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_polls_is_followed_as_long_as_it_moves_on() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let mut request = server.next().await;
    for round in 0..5 {
        request.stream().await;
        request.raw(format!("id: e{round}\ndata:\n\n")).await;
        request.close().await;
        request = server.next().await;
        assert_eq!(request.header("last-event-id"), Some(format!("e{round}").as_str()));
    }
    request.stream().await;
    request.close().await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("ended before the answer: the server closed it"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_ids_fails_its_requests_at_once() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.stream().await;
    request.raw(event(NOTE)).await;
    assert_eq!(client.next().await, Got::Message(NOTE.to_owned()));
    let began = tokio::time::Instant::now();
    request.close().await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("the request may have run"), "{text}");
    assert_eq!(began.elapsed().as_millis(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resumption_that_is_refused_is_told() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.stream().await;
    request.raw("id: e1\ndata:\n\n").await;
    request.close().await;
    server.next().await.answer("405 Method Not Allowed", "", "").await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("it was not resumed (HTTP 405 Method Not Allowed)"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn t07d_a_server_without_a_stream_of_its_own_stays_usable() {
    for status in [
        "404 Not Found",
        "405 Method Not Allowed",
        "406 Not Acceptable",
        "415 Unsupported Media Type",
        "501 Not Implemented",
        "400 Bad Request",
        "401 Unauthorized",
        "200 OK",
    ] {
        let mut server = Server::memory();
        let mut client = Client::http(&server).unwrap();
        client.send(INITIALIZE).unwrap();
        answer_initialize(&server.next().await, "S1").await;
        client.next().await;
        client.send(INITIALIZED).unwrap();
        server.next().await.accepted().await;
        let request = server.next().await;
        assert_eq!(request.method, "GET");
        request.answer(status, "content-type: text/html\r\n", "<p>no</p>").await;
        tokio::time::sleep(std::time::Duration::from_mins(10)).await;
        client.call(1).unwrap();
        let request = server.next().await;
        assert_eq!(request.method, "POST", "{status}: asked for once");
        request.json(&result(1)).await;
        assert_eq!(client.next().await, Got::Message(result(1)), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_stream_passes_on_and_is_opened_again() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(INITIALIZE).unwrap();
    answer_initialize(&server.next().await, "S1").await;
    client.next().await;
    client.send(INITIALIZED).unwrap();
    server.next().await.accepted().await;
    let request = server.next().await;
    request.stream().await;
    let ask = r#"{"jsonrpc":"2.0","id":"s1","method":"roots/list"}"#;
    request.raw(format!("id: g1\n{}{}", event(NOTE), event(ask))).await;
    assert_eq!(client.next().await, Got::Message(NOTE.to_owned()));
    assert_eq!(client.next().await, Got::Message(ask.to_owned()));
    let mut began = tokio::time::Instant::now();
    request.close().await;
    for millis in [1000, 1500, 2250, 3375] {
        let request = server.next().await;
        assert_eq!(began.elapsed().as_millis(), millis, "the delays grow");
        assert_eq!(request.header("last-event-id"), Some("g1"));
        began = tokio::time::Instant::now();
        request.answer("503 Service Unavailable", "", "").await;
    }
    let request = server.next().await;
    request.stream().await;
    began = tokio::time::Instant::now();
    let request = server.next().await;
    assert_eq!(began.elapsed().as_secs(), 300, "a silent stream is opened anew");
    request.stream().await;
    request.raw(event(NOTE)).await;
    assert_eq!(client.next().await, Got::Message(NOTE.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_on_after_the_answer_takes_no_room() {
    use toolway_transport::Transport;
    let mut server = Server::memory();
    let mut narrow = crate::client::config(&server).unwrap();
    narrow.max_in_flight = 1;
    let mut client = Client::with(&narrow).unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.stream().await;
    request.raw(event(&result(1))).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    while !client.transport.ready() {
        tokio::task::yield_now().await;
    }
    request.raw(event(NOTE)).await;
    assert_eq!(client.next().await, Got::Message(NOTE.to_owned()), "what follows is passed on");
    request.gone.cancelled().await;
}
