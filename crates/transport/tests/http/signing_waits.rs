//! Requests that wait for a signature: in order, cancellable, bounded, and for as long as it takes somebody to sign in.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use toolway_transport::{Retry, Transport};

use crate::client::{Client, Got, INITIALIZE, INITIALIZED, answer_initialize, call, event, result};
use crate::server::Server;
use crate::signer::{Script, bearer, dead, signed, sse, started};

/// What is under way goes as far as it can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn cancel(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

fn modern_call(id: u32) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"prompts/get","params":{{"name":"p",{meta}}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_token_leaves_in_order_and_its_time_counts_from_then() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = started(&mut server, &script).await.unwrap();
    script.set_ready(false);
    script.set_gate(false);
    for id in 1..=3 {
        client.call(id).unwrap();
    }
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(server.already().is_none());
    script.set_gate(true);
    let mut requests = Vec::new();
    for id in 1..=3 {
        let request = server.next().await;
        assert_eq!(request.body, call(id), "in the order they came");
        requests.push(request);
    }
    tokio::time::sleep(Duration::from_secs(100)).await;
    for request in requests {
        request.json(&result(request.id())).await;
        assert!(matches!(client.next().await, Got::Message(_)), "within 120 s of its own");
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_together_share_one_failure() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = started(&mut server, &script).await.unwrap();
    script.set_ready(false);
    script.set_gate(false);
    for id in 0..20 {
        client.call(id).unwrap();
    }
    settle().await;
    script.fail_to_authorize(dead("the issuer is not there"));
    script.set_gate(true);
    for id in 0..20 {
        let text = client.failure(&[&id.to_string()]).await.unwrap();
        assert!(text.contains("the issuer is not there"), "{text}");
    }
    assert_eq!(script.authorizes(), 1);
    client.call(21).unwrap();
    client.failure(&["21"]).await.unwrap();
    assert_eq!(script.authorizes(), 2, "who comes later asks again");
}

#[tokio::test(start_paused = true)]
async fn a_held_request_can_be_cancelled_and_the_server_hears_of_neither() {
    for modern in [false, true] {
        let mut server = Server::memory();
        let script = Script::new([Ok(Retry::Again)]);
        let mut client = started(&mut server, &script).await.unwrap();
        let message = |id| if modern { modern_call(id) } else { call(id) };
        script.set_gate(false);
        // One waits after a refusal, one before it was ever sent.
        client.send(&message(1)).unwrap();
        server.next().await.answer("401 Unauthorized", "", "").await;
        settle().await;
        script.set_ready(false);
        client.send(&message(2)).unwrap();
        client.send(&message(3)).unwrap();
        settle().await;
        client.send(&cancel(1)).unwrap();
        client.send(&cancel(2)).unwrap();
        settle().await;
        script.set_gate(true);
        let request = server.next().await;
        assert_eq!(request.body, message(3), "modern: {modern}");
        request.json(&result(3)).await;
        let mut got = client.next().await;
        while got == Got::Aborted {
            got = client.next().await;
        }
        assert_eq!(got, Got::Message(result(3)));
        settle().await;
        assert!(server.already().is_none(), "modern: {modern}");
        assert!(client.transport.ready());
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_the_server_has_is_cancelled_there() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = started(&mut server, &script).await.unwrap();
    client.call(1).unwrap();
    let running = server.next().await;
    client.send(&cancel(1)).unwrap();
    let note = server.next().await;
    assert_eq!(note.body, cancel(1));
    assert!(!running.gone.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_not_given_up_for_one_of_its_requests() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = started(&mut server, &script).await.unwrap();
    script.set_ready(false);
    script.set_gate(false);
    let batch = format!("[{},{}]", call(1), call(2));
    client.send(&batch).unwrap();
    settle().await;
    client.send(&cancel(1)).unwrap();
    settle().await;
    script.set_gate(true);
    let mut bodies = [server.next().await.body, server.next().await.body];
    bodies.sort_unstable();
    assert_eq!(bodies, [batch, cancel(1)]);
}

#[tokio::test(start_paused = true)]
async fn a_held_message_of_the_legacy_transport_can_be_cancelled() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = sse(&server, &script).unwrap();
    client.call(1).unwrap();
    let stream = server.next().await;
    stream.stream().await;
    stream.raw("event: endpoint\ndata: /message\n\n").await;
    let post = server.next().await;
    post.accepted().await;
    script.set_ready(false);
    script.set_gate(false);
    client.call(2).unwrap();
    client.call(3).unwrap();
    settle().await;
    client.send(&cancel(2)).unwrap();
    settle().await;
    script.set_gate(true);
    let post = server.next().await;
    assert_eq!(post.body, call(3));
    post.accepted().await;
    settle().await;
    assert!(server.already().is_none());
    stream.raw(format!("{}{}", event(&result(1)), event(&result(3)))).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    assert_eq!(client.next().await, Got::Message(result(3)));
    // And nothing is owed for the one that was cancelled: an idle session stays.
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!stream.gone.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn an_authorizer_that_never_comes_back_holds_nobody_up_for_ever() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = started(&mut server, &script).await.unwrap();
    script.set_ready(false);
    script.set_gate(false);
    let began = Instant::now();
    client.call(1).unwrap();
    let text = client.failure(&["1"]).await.unwrap();
    assert!(text.contains("nobody signed in within 10 minutes. To sign in, run:"), "{text}");
    assert_eq!(began.elapsed().as_secs(), 600);
    assert!(client.transport.ready());
    assert!(server.already().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_transport_closes_while_requests_wait_and_starts_no_login_to_do_so() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    script.set_ready(false);
    script.set_gate(false);
    client.call(1).unwrap();
    settle().await;
    let ended = async {
        let request = server.next().await;
        assert_eq!((request.method.as_str(), request.header("authorization")), ("DELETE", None));
        request.answer("401 Unauthorized", "", "").await;
    };
    let ((), ()) = tokio::join!(client.transport.close(), ended);
    assert_eq!((script.challenges().len(), client.next().await), (0, Got::Closed));
}

#[tokio::test(start_paused = true)]
async fn the_servers_own_stream_disturbs_nobody_and_comes_when_somebody_has_signed_in() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again), Err(dead("nobody has signed in"))]);
    let mut client = Client::with(&signed(&server, &script).unwrap()).unwrap();
    client.send(INITIALIZE).unwrap();
    answer_initialize(&server.next().await, "S1").await;
    client.next().await;
    client.send(INITIALIZED).unwrap();
    server.next().await.accepted().await;
    server.next().await.answer("401 Unauthorized", "", "").await;
    let stream = server.next().await;
    assert_eq!((stream.method.as_str(), stream.header("authorization")), ("GET", Some(&*bearer(2))));
    stream.stream().await;
    stream.raw(event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)).await;
    assert!(matches!(client.next().await, Got::Message(_)));
    stream.close().await;
    let stream = server.next().await;
    stream.answer("401 Unauthorized", "", "").await;
    let all = [(401, Some("1".to_owned()), false), (401, Some("2".to_owned()), false)];
    tokio::time::sleep(Duration::from_hours(5)).await;
    assert_eq!(script.challenges(), all, "it is asked for once");
    assert!(server.already().is_none());
    script.set_token(7);
    let stream = server.next().await;
    assert_eq!((stream.method.as_str(), stream.header("authorization")), ("GET", Some(&*bearer(7))));
    stream.stream().await;
    stream.raw(event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)).await;
    let Got::Message(message) = client.next().await else { panic!("no message") };
    assert!(serde_json::from_str::<Value>(&message).is_ok());
}
