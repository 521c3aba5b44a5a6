//! Connections: reuse, ones that died, servers that are not there, files as bodies.

use std::io::Write as _;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use toolway_transport::{Connector, HttpConfig, HttpTransport, Members, Outbound, Payload, Transport};

use crate::client::{Client, Got, call, config, event, outbound, result};
use crate::server::Server;

#[tokio::test(start_paused = true)]
async fn one_connection_serves_calls_in_turn_and_several_serve_them_at_once() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    for id in 0..10 {
        client.call(id).unwrap();
        let request = server.next().await;
        assert_eq!(request.connection, 0);
        if id % 2 == 0 {
            request.json(&result(id)).await;
        } else {
            let answer = event(&result(id));
            request.raw("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n").await;
            request.raw(format!("{:x}\r\n{answer}\r\n0\r\n\r\n", answer.len())).await;
        }
        assert_eq!(client.next().await, Got::Message(result(id)));
        tokio::task::yield_now().await;
    }
    for id in 0..5 {
        client.call(id).unwrap();
    }
    let mut waiting = Vec::new();
    while waiting.len() < 5 {
        waiting.push(server.next().await);
    }
    let mut connections: Vec<usize> = waiting.iter().map(|request| request.connection).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 1, 2, 3, 4]);
    for request in waiting.iter().rev() {
        request.json(&result(request.id())).await;
        assert_eq!(client.next().await, Got::Message(result(request.id())));
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_server_closed_is_not_used_again() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    request.close().await;
    client.call(2).unwrap();
    let request = server.next().await;
    assert_eq!((request.connection, request.id().as_str()), (1, "2"));
    request.json(&result(2)).await;
    assert_eq!(client.next().await, Got::Message(result(2)));
}

#[tokio::test(start_paused = true)]
async fn idle_connections_are_closed_in_time() {
    for (headers, seconds) in [("", 31), ("keep-alive: timeout=5, max=100\r\n", 16)] {
        let mut server = Server::memory();
        let mut client = Client::http(&server).unwrap();
        client.call(1).unwrap();
        let request = server.next().await;
        request.answer("200 OK", headers, &result(1)).await;
        client.next().await;
        tokio::time::timeout(Duration::from_secs(seconds), request.gone.cancelled()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_run_is_not_sent_twice_but_a_list_is() {
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    for (message, again) in [(call(2), false), (list.to_owned(), true)] {
        let mut server = Server::memory();
        let mut client = Client::http(&server).unwrap();
        client.call(1).unwrap();
        server.next().await.json(&result(1)).await;
        client.next().await;
        client.send(&message).unwrap();
        let request = server.next().await;
        assert_eq!(request.connection, 0, "on the connection that was idle");
        request.close().await;
        if again {
            let request = server.next().await;
            assert_eq!((request.connection, &request.body), (1, &message));
            request.json(&result(2)).await;
            assert_eq!(client.next().await, Got::Message(result(2)));
        } else {
            let text = client.failure(&["2"]).await.unwrap();
            assert!(text.contains("may have run and is not sent again"), "{text}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once_and_found_when_it_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut client =
        Client::with(&HttpConfig::new(&format!("http://{address}/mcp?key=hidden")).unwrap()).unwrap();
    client.call(1).unwrap();
    let text = client.failure(&["1"]).await.unwrap();
    assert_eq!(text, format!("cannot connect to http://{address}: connection refused"));
    let mut server = Server::on(TcpListener::bind(address).await.unwrap()).unwrap();
    client.call(2).unwrap();
    server.next().await.json(&result(2)).await;
    assert_eq!(client.next().await, Got::Message(result(2)));
    server.kill().await;
    client.call(3).unwrap();
    let text = client.failure(&["3"]).await.unwrap();
    assert!(text.contains("connection refused"), "{text}");
    let mut server = Server::on(TcpListener::bind(address).await.unwrap()).unwrap();
    client.call(4).unwrap();
    server.next().await.json(&result(4)).await;
    assert_eq!(client.next().await, Got::Message(result(4)));
    client.transport.close().await;
}

#[tokio::test]
async fn a_name_that_does_not_resolve_and_a_server_without_tls_are_told() {
    let mut client = Client::with(&HttpConfig::new("http://no-such-host.invalid/mcp").unwrap()).unwrap();
    client.call(1).unwrap();
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("cannot resolve no-such-host.invalid"), "{text}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    };
    let mut client = Client::with(&HttpConfig::new(&url).unwrap()).unwrap();
    client.call(2).unwrap();
    let (text, ()) = tokio::join!(client.failure(&["2"]), server);
    let text = text.unwrap();
    assert!(text.contains("the TLS handshake failed"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_never_made_ends_in_time() {
    let server = Server::memory();
    let mut stuck = config(&server).unwrap();
    let (full, _held) = tokio::sync::mpsc::channel(1);
    let (near, _far) = tokio::io::duplex(1);
    full.try_send(near).unwrap();
    stuck.connector = Connector::Memory(full);
    let mut client = Client::with(&stuck).unwrap();
    client.call(1).unwrap();
    let text = client.failure(&["1"]).await.unwrap();
    assert_eq!(text, "cannot connect to http://server.example: no connection within 120 s");
}

#[tokio::test(start_paused = true)]
async fn a_message_in_a_file_is_sent_whole_and_again_after_a_redirect() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"x":"{}"}}}}}}"#,
        "y".repeat(500_000)
    );
    let Outbound { members: Members::One(envelope), .. } = outbound(&text).unwrap() else {
        panic!("one message")
    };
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let payload = Payload::File { file, len: text.len() as u64 };
    client.transport.send(Outbound { payload, members: Members::One(envelope) }).unwrap();
    let request = server.next().await;
    assert_eq!(request.body, text);
    request.answer("308 Permanent Redirect", "location: /b\r\n", "").await;
    let request = server.next().await;
    assert_eq!((request.path.as_str(), request.body == text), ("/b", true));
    request.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_http_is_told() {
    let mut server = Server::memory();
    let mut client = Client::http(&server).unwrap();
    client.call(1).unwrap();
    let request = server.next().await;
    request.raw("SSH-2.0-OpenSSH_9.9\r\n\r\n").await;
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("the answer is not HTTP"), "{text}");
}

#[test]
fn unusable_urls_are_refused_without_their_secrets() {
    for url in ["", "mcp", "ftp://h/x", "http://user:hunter2@h/mcp", "http://"] {
        let made = HttpConfig::new(url).and_then(|config| HttpTransport::new(&config));
        let refusal = made.map(|_| ()).unwrap_err().to_string();
        assert!(refusal.starts_with("cannot use the URL: ") && !refusal.contains("hunter2"), "{refusal}");
    }
}
