//! The legacy era's session: headers, order of the handshake, a forgotten session, the end.

use toolway_transport::Transport;

use crate::client::{
    Client, Got, INITIALIZE, INITIALIZED, TOKEN, answer_initialize, call, config, event, result,
};
use crate::server::Server;

#[tokio::test(start_paused = true)]
async fn configured_headers_session_and_revision_go_with_every_verb() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(INITIALIZE).unwrap();
    let request = server.next().await;
    assert_eq!(request.headers_of("mcp-"), [], "no session yet");
    assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    answer_initialize(&request, "S1").await;
    client.next().await;
    client.send(INITIALIZED).unwrap();
    let session = [("mcp-protocol-version", "2025-06-18"), ("mcp-session-id", "S1")];
    let mut verbs = Vec::new();
    let mut requests = Vec::new();
    for number in 0..2 {
        let request = server.next().await;
        verbs.push(request.method.clone());
        if number == 0 {
            request.accepted().await;
        } else {
            assert_eq!(request.header("accept"), Some("text/event-stream"));
            assert_eq!(request.header("content-type"), None);
            request.stream().await;
        }
        requests.push(request);
    }
    let ended = async {
        let request = server.next().await;
        request.answer("200 OK", "", "").await;
        request
    };
    let ((), request) = tokio::join!(client.transport.close(), ended);
    verbs.push(request.method.clone());
    requests.push(request);
    assert_eq!(verbs, ["POST", "GET", "DELETE"]);
    for request in &requests {
        assert_eq!(request.headers_of("mcp-"), session, "{}", request.method);
        assert_eq!(request.header("x-team"), Some("blue"), "{}", request.method);
        assert_eq!(request.header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    }
    for request in requests {
        request.gone.cancelled().await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_answer_to_initialize_and_the_acknowledgement() {
    for streamed in [false, true] {
        let mut server = Server::memory();
        let mut client = Client::http(&server).unwrap();
        client.send(INITIALIZE).unwrap();
        client.send(INITIALIZED).unwrap();
        client.call(1).unwrap();
        client.call(2).unwrap();
        let request = server.next().await;
        settle().await;
        assert!(server.already().is_none(), "the handshake comes first");
        if streamed {
            request
                .raw("HTTP/1.1 200 OK\r\nmcp-session-id: S1\r\ncontent-type: text/event-stream\r\n\r\n")
                .await;
            request
                .raw(event(r#"{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-06-18"}}"#))
                .await;
        } else {
            answer_initialize(&request, "S1").await;
        }
        assert!(matches!(client.next().await, Got::Message(_)));
        let request = server.next().await;
        assert_eq!(request.body, INITIALIZED);
        assert_eq!(request.header("mcp-session-id"), Some("S1"));
        settle().await;
        assert!(server.already().is_none(), "it is acknowledged before anything else goes");
        request.accepted().await;
        let mut bodies = Vec::new();
        while bodies.len() < 2 {
            let request = server.next().await;
            if request.method == "GET" {
                request.answer("405 Method Not Allowed", "", "").await;
            } else {
                bodies.push(request.body);
            }
        }
        assert_eq!(bodies, [call(1), call(2)], "in the order they came");
    }
}

#[tokio::test(start_paused = true)]
async fn an_acknowledgement_that_never_comes_holds_nobody_up_for_long() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.send(INITIALIZE).unwrap();
    answer_initialize(&server.next().await, "S1").await;
    client.next().await;
    let began = tokio::time::Instant::now();
    client.send(INITIALIZED).unwrap();
    client.call(1).unwrap();
    let silent = server.next().await;
    let request = server.next().await;
    assert_eq!((silent.body.as_str(), request.body), (INITIALIZED, call(1)));
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn t07b_a_forgotten_session_is_begun_anew_once_and_the_call_retried_once() {
    for (status, body) in [
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":5,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        ("404 Not Found", ""),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session ID"}}"#,
        ),
    ] {
        let mut server = Server::memory();
        let mut client = Client::started(&mut server).await.unwrap();
        client.call(5).unwrap();
        let request = server.next().await;
        assert_eq!(request.header("mcp-session-id"), Some("S1"));
        request.answer(status, "content-type: application/json\r\n", body).await;
        let request = server.next().await;
        assert_eq!((request.body.as_str(), request.header("mcp-session-id")), (INITIALIZE, None));
        answer_initialize(&request, "S2").await;
        let request = server.next().await;
        assert_eq!((request.body.as_str(), request.header("mcp-session-id")), (INITIALIZED, Some("S2")));
        request.accepted().await;
        let mut retried = 0;
        while retried == 0 {
            let request = server.next().await;
            assert_eq!(request.header("mcp-session-id"), Some("S2"));
            if request.method == "GET" {
                request.answer("405 Method Not Allowed", "", "").await;
            } else {
                assert_eq!(request.body, call(5));
                request.json(&result(5)).await;
                retried += 1;
            }
        }
        assert_eq!(client.next().await, Got::Message(result(5)), "only the good answer");
        settle().await;
        assert!(server.already().is_none_or(|request| request.method == "GET"));
    }
}

#[tokio::test(start_paused = true)]
async fn t07c_a_session_that_is_forgotten_again_gives_one_error() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(5).unwrap();
    let mut handshakes = 0;
    let mut calls = 0;
    let text = loop {
        tokio::select! {
            text = client.failure(&["5"]) => break text.unwrap(),
            request = server.next() => {
                if request.body == INITIALIZE {
                    handshakes += 1;
                    answer_initialize(&request, "S2").await;
                } else if request.body == INITIALIZED {
                    request.accepted().await;
                } else {
                    calls += usize::from(request.body == call(5));
                    request.answer("404 Not Found", "", "").await;
                }
            }
        }
    };
    assert!(text.contains("HTTP 404 Not Found"), "{text}");
    assert_eq!((handshakes, calls), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_is_refused_is_told_with_its_reason() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(5).unwrap();
    server.next().await.answer("404 Not Found", "", "").await;
    server.next().await.answer("503 Service Unavailable", "", "starting").await;
    let text = client.failure(&["5"]).await.unwrap();
    assert_eq!(
        text,
        "the server forgot the session, and no new one could be begun: \
         HTTP 503 Service Unavailable from http://server.example/mcp: starting"
    );
}

#[tokio::test(start_paused = true)]
async fn many_that_find_the_session_gone_begin_one_new_one() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    for id in 0..20 {
        client.call(id).unwrap();
    }
    let mut stale = Vec::new();
    while stale.len() < 20 {
        stale.push(server.next().await);
    }
    for request in stale {
        request.answer("404 Not Found", "", "").await;
    }
    let (mut handshakes, mut answered) = (0, 0);
    while answered < 20 {
        let request = server.next().await;
        if request.body == INITIALIZE {
            handshakes += 1;
            answer_initialize(&request, "S2").await;
        } else if request.body == INITIALIZED {
            request.accepted().await;
        } else if request.method == "GET" {
            request.answer("405 Method Not Allowed", "", "").await;
        } else {
            assert_eq!(request.header("mcp-session-id"), Some("S2"));
            request.json(&result(request.id())).await;
            assert!(matches!(client.next().await, Got::Message(_)));
            answered += 1;
        }
    }
    assert_eq!(handshakes, 1);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_method_is_no_forgotten_session() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let body = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;
    server.next().await.answer("404 Not Found", "", body).await;
    assert_eq!(client.next().await, Got::Message(body.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn without_a_session_there_is_nothing_to_end_or_to_renew() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.call(1).unwrap();
    server.next().await.answer("404 Not Found", "", "nothing here").await;
    let text = client.failure(&["1"]).await.unwrap();
    assert_eq!(text, "HTTP 404 Not Found from http://server.example/mcp: nothing here");
    client.transport.close().await;
    assert!(server.already().is_none());
    assert_eq!(client.next().await, Got::Closed);
    assert!(client.call(2).is_err());
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_a_silent_server_for_two_seconds_at_most() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let pending = server.next().await;
    let began = tokio::time::Instant::now();
    client.transport.close().await;
    assert_eq!(began.elapsed().as_secs(), 2);
    pending.gone.cancelled().await;
    let request = server.next().await;
    assert_eq!(request.method, "DELETE");
    request.gone.cancelled().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_notification_answers_nobody() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    for status in ["400 Bad Request", "500 Oops"] {
        client.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap();
        server.next().await.answer(status, "", "no").await;
    }
    client.send(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).unwrap();
    let request = server.next().await;
    assert_eq!(
        request.header("mcp-session-id"),
        Some("S1"),
        "answers to the server's requests go to the session"
    );
    request.accepted().await;
    client.call(1).unwrap();
    server.next().await.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
}

#[tokio::test(start_paused = true)]
async fn when_all_room_is_taken_it_says_so_and_when_there_is_room_again() {
    let mut server = Server::memory();
    let mut narrow = config(&server).unwrap();
    narrow.max_in_flight = 2;
    let mut client = Client::with(&narrow).unwrap();
    assert!(client.transport.ready());
    client.call(1).unwrap();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#).unwrap();
    assert!(!client.transport.ready());
    let request = server.next().await;
    server.next().await.accepted().await;
    assert_eq!(client.next().await, Got::Ready);
    assert!(client.transport.ready());
    request.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
}

/// Lets everything run that can.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}
