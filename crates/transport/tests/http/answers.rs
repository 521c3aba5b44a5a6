//! Answers of success: JSON and event streams, whole, in pieces, odd, cut short.

use proptest::prelude::*;

use crate::client::{Client, Got, INITIALIZE, call, event, result};
use crate::server::Server;

#[tokio::test(start_paused = true)]
async fn a_json_answer_arrives_as_it_was_sent() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/mcp?key=hidden"));
    assert_eq!(request.body, call(1));
    assert_eq!(request.header("host"), Some("server.example"));
    assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert!(request.header("user-agent").unwrap().starts_with("toolway/"));
    let body = "{\n  \"id\" : 1.0,\r\n  \"jsonrpc\": \"2.0\",\n  \"result\": {\"n\": 1e2, \"x\": null}\n}\n";
    request.json(body).await;
    assert_eq!(client.next().await, Got::Message(body.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_event_stream_gives_messages_and_then_the_answer() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#;
    request.stream().await;
    request.raw(format!(": hi\n\n{}event: ping\ndata: {{}}\n\n{}", event(note), event(ask))).await;
    assert_eq!(client.next().await, Got::Message(note.to_owned()));
    assert_eq!(client.next().await, Got::Message(ask.to_owned()));
    request.raw("data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\"result\":{}}\n\n").await;
    assert_eq!(
        client.next().await,
        Got::Message("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn content_types_are_taken_leniently_when_the_body_is_clear() {
    let answer = result(1);
    for (kind, body, expected) in [
        ("", answer.clone(), &answer),
        ("content-type: text/plain\r\n", answer.clone(), &answer),
        ("content-type: Application/JSON; charset=utf-8\r\n", answer.clone(), &answer),
        ("", event(&answer), &answer),
        ("content-type: text/plain\r\n", format!("data: {answer}\n\n"), &answer),
    ] {
        let mut server = Server::memory();
        let mut client = Client::started(&mut server).await.unwrap();
        client.call(1).unwrap();
        server.next().await.answer("200 OK", kind, &body).await;
        assert_eq!(client.next().await, Got::Message(expected.clone()), "{kind}{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_fails_the_request_and_says_what_it_was() {
    for (kind, body, expected) in [
        ("text/html", "<p>Log in</p>", "answered HTML, not MCP (HTTP 200 OK from http://server.example/mcp)"),
        ("application/json", "<!doctype html>", "answered HTML, not MCP"),
        ("application/json", "", "answered nothing (HTTP 200 OK with an empty body"),
        (
            "text/plain",
            "hello there",
            "answered what is not MCP (HTTP 200 OK from http://server.example/mcp, text/plain): hello there",
        ),
        ("application/json", "{\"a\":1}", "answered what is not MCP"),
        ("application/json", "{\"jsonrpc\":\"2.0\",\"id\":1,\"res", "was cut short after 28 bytes"),
        (
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}",
            "answered, but not this request",
        ),
        (
            "application/json",
            "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}",
            "answered, but not this request",
        ),
        ("text/event-stream", ": nothing\n\n", "ended before the answer: the server closed it"),
        ("text/event-stream", "data: not json\n\n", "ended before the answer"),
    ] {
        let mut server = Server::memory();
        let mut client = Client::started(&mut server).await.unwrap();
        client.call(1).unwrap();
        server.next().await.answer("200 OK", &format!("content-type: {kind}\r\n"), body).await;
        let text = loop {
            match client.failure(&["1"]).await {
                Ok(text) => break text,
                Err(other) if other.to_string().contains("Failed") => panic!("{other}"),
                Err(_) => {}
            }
        };
        assert!(text.contains(expected), "{kind} {body}: {text}");
        client.call(2).unwrap();
        server.next().await.json(&result(2)).await;
        assert_eq!(client.next().await, Got::Message(result(2)), "still usable after {body}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_without_id_belongs_to_the_only_request() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    for (status, id) in
        [("200 OK", "null"), ("400 Bad Request", "null"), ("500 Internal Server Error", "null")]
    {
        client.call(1).unwrap();
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"no \u00fc","data":[1.0]}}}}"#
        );
        server.next().await.answer(status, "content-type: application/json\r\n", &body).await;
        loop {
            match client.next().await {
                Got::Aborted => {}
                got => {
                    let (ids, data) = (vec!["1".to_owned()], Some("[1.0]".to_owned()));
                    assert_eq!(got, Got::Failed { ids, code: -32600, text: "no \u{fc}".to_owned(), data });
                    break;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_body_is_taken_back_and_the_call_is_not_sent_again() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.raw("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1").await;
    request.close().await;
    assert_eq!(client.next().await, Got::Aborted);
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("was cut short after 23 bytes"), "{text}");
    client.call(2).unwrap();
    let request = server.next().await;
    assert_eq!(request.id(), "2");
    request.json(&result(2)).await;
    assert_eq!(client.next().await, Got::Message(result(2)));
}

#[tokio::test(start_paused = true)]
async fn the_members_of_a_batch_are_judged_one_by_one() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.send(&format!("[{},{},{}]", call(1), call(2), INITIALIZE.replace("initialize", "ping"))).unwrap();
    let answer = format!("[{},{}]", result(2), result(1));
    server.next().await.json(&answer).await;
    assert_eq!(client.next().await, Got::Message(answer));
    let text = client.failure(&["\"init\""]).await.unwrap();
    assert!(text.contains("but not this request of it"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_comes_in_bounded_pieces_before_it_is_complete() {
    use toolway_transport::{Inbound, Transport};
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    let text = "x".repeat(3_000_000);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{text}"}}}}"#);
    request.raw(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len())).await;
    let mut got = Vec::new();
    let mut writing = std::pin::pin!(request.raw(body.clone()));
    let mut written = false;
    loop {
        tokio::select! {
            () = &mut writing, if !written => written = true,
            event = client.transport.receive() => match event.unwrap() {
                Inbound::Data { bytes, .. } => {
                    assert!(bytes.len() <= 256 * 1024);
                    got.extend_from_slice(&bytes);
                    assert!(written || got.len() < body.len());
                }
                Inbound::End { .. } => break,
                other => panic!("{other:?}"),
            },
        }
    }
    assert_eq!(got, body.as_bytes());
}

#[tokio::test(start_paused = true)]
async fn t07e_a_login_page_is_named_with_status_and_url_without_query() {
    let mut server = Server::memory();
    let mut client = Client::started(&mut server).await.unwrap();
    client.call(1).unwrap();
    let page = "<!DOCTYPE html><title>Log in</title>";
    server.next().await.answer("200 OK", "content-type: text/html\r\n", page).await;
    let text = client.failure(&["1"]).await.unwrap();
    assert_eq!(text, "answered HTML, not MCP (HTTP 200 OK from http://server.example/mcp)");
}

#[tokio::test(start_paused = true)]
async fn every_shape_of_answer_works_in_every_era() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}"#.to_owned();
    let answer = result(1);
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n0\r\n\r\n", text.len());
    let json = "content-type: application/json\r\n";
    let stream = "content-type: text/event-stream\r\n";
    for modern in [false, true] {
        for (status, headers, body, expected) in [
            ("200 OK", format!("{json}content-length: {}\r\n", answer.len()), answer.clone(), vec![&answer]),
            ("200 OK", format!("{json}transfer-encoding: chunked\r\n"), chunk(&answer), vec![&answer]),
            ("200 OK", format!("{json}connection: close\r\n"), answer.clone(), vec![&answer]),
            (
                "200 OK",
                format!("{stream}transfer-encoding: chunked\r\n"),
                chunk(&event(&answer)),
                vec![&answer],
            ),
            (
                "200 OK",
                format!("{stream}connection: close\r\n"),
                event(note) + &event(&answer),
                vec![&note.to_owned(), &answer],
            ),
            (
                "400 Bad Request",
                format!("{json}content-length: {}\r\n", error.len()),
                error.clone(),
                vec![&error],
            ),
        ] {
            let mut server = Server::memory();
            let mut client = Client::http(&server).unwrap();
            let params = if modern { meta } else { "" };
            client
                .send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{{{params}}}}}"#))
                .unwrap();
            let request = server.next().await;
            assert_eq!(request.header("mcp-method").is_some(), modern);
            request.raw(format!("HTTP/1.1 {status}\r\n{headers}\r\n{body}")).await;
            if headers.contains("close") {
                request.close().await;
            }
            for message in expected {
                assert_eq!(client.next().await, Got::Message(message.clone()), "{modern} {headers}");
            }
            client
                .send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"x/y","params":{{{params}}}}}"#))
                .unwrap();
            server.next().await.json(&result(2)).await;
            assert_eq!(client.next().await, Got::Message(result(2)), "{modern} {headers}");
        }
    }
}

/// What comes out when the answer's bytes are cut so, as chunks of HTTP.
fn delivered(body: &str, kind: &str, cuts: &[usize]) -> Vec<Got> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut server = Server::memory();
        let mut client = Client::http(&server).unwrap();
        client.call(1).unwrap();
        let request = server.next().await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n");
        request.raw(head).await;
        let mut ends: Vec<usize> =
            cuts.iter().map(|cut| cut % (body.len() + 1)).chain([0, body.len()]).collect();
        ends.sort_unstable();
        for pair in ends.windows(2).filter(|pair| pair[0] < pair[1]) {
            let part = &body.as_bytes()[pair[0]..pair[1]];
            request.raw([format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()).await;
            tokio::task::yield_now().await;
        }
        request.raw("0\r\n\r\n").await;
        let mut got = vec![client.next().await];
        while !matches!(got.last(), Some(Got::Message(text)) if text.contains("result")) {
            got.push(client.next().await);
        }
        got
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 5))]
    #[test]
    fn chunks_never_change_what_comes_out(cuts in proptest::collection::vec(0usize..400, 0..20)) {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"grüße 漢"}}"#;
        let answer = "{ \"jsonrpc\":\"2.0\",\"id\":1,\n\"result\":{\"t\":\"漢字 \\u00fc\"} }";
        prop_assert_eq!(delivered(answer, "application/json", &cuts), [Got::Message(answer.to_owned())]);
        let stream = format!("\u{feff}id: 1\r\nevent: message\r\ndata: {note}\r\n\r\n: c\r\rdata: {}\n\n", answer.replace('\n', "\ndata:"));
        let expected = [Got::Message(note.to_owned()), Got::Message(answer.to_owned())];
        prop_assert_eq!(delivered(&stream, "text/event-stream", &cuts), expected);
    }
}
