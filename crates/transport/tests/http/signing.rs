//! Requests that an authorizer signs: which of them, what becomes of a refusal, and what a client reads when nobody can
//! sign.

use std::io::Write as _;

use serde_json::{Value, json};
use toolway_secret::Secret;
use toolway_transport::{Outbound, Payload, Retry, SignInError, Transport as _};

use crate::client::{Client, Got, INITIALIZE, INITIALIZED, TOKEN, answer_initialize, call, outbound, result};
use crate::server::{Request, Server};
use crate::signer::{HINT, Script, bearer, dead, signed, sse, started};

const UNAUTHORIZED: &str = "www-authenticate: Bearer error=\"invalid_token\"\r\n";
const SCOPE: &str = "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"read write\"\r\n";

async fn refuse(request: &Request) {
    request.answer("401 Unauthorized", UNAUTHORIZED, "").await;
}

fn token(request: &Request) -> Option<&str> {
    request.header("authorization")
}

/// The text and the data of the failure of request `id`.
async fn failed(client: &mut Client<impl toolway_transport::Transport>, id: &str) -> (String, Value) {
    match client.next().await {
        Got::Failed { ids, code: -32000, text, data } if ids == [id] => {
            let shown = format!("{text} {data:?}");
            assert!(!shown.contains(TOKEN) && !shown.contains("hidden"), "leaks: {shown}");
            (text, serde_json::from_str(&data.unwrap_or_default()).unwrap_or_default())
        }
        other => (format!("{other:?}"), Value::Null),
    }
}

#[tokio::test(start_paused = true)]
async fn every_verb_is_signed_with_the_token_of_the_moment() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = Client::with(&signed(&server, &script).unwrap()).unwrap();
    client.send(INITIALIZE).unwrap();
    let request = server.next().await;
    assert_eq!((token(&request), request.header("x-team")), (Some(&*bearer(1)), Some("blue")));
    answer_initialize(&request, "S1").await;
    client.next().await;
    client.send(INITIALIZED).unwrap();
    let request = server.next().await;
    assert_eq!(token(&request), Some(&*bearer(1)));
    script.set_token(2);
    request.accepted().await;
    let stream = server.next().await;
    assert_eq!((stream.method.as_str(), token(&stream)), ("GET", Some(&*bearer(2))));
    stream.stream().await;
    let ended = async {
        let request = server.next().await;
        request.answer("200 OK", "", "").await;
        request
    };
    let ((), ended) = tokio::join!(client.transport.close(), ended);
    assert_eq!((ended.method.as_str(), token(&ended)), ("DELETE", Some(&*bearer(2))));
    assert_eq!(script.challenges(), []);
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_is_replaced_once_and_the_same_request_sent_again() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again), Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    client.call(7).unwrap();
    refuse(&server.next().await).await;
    let again = server.next().await;
    assert_eq!((again.body.as_str(), token(&again)), (call(7).as_str(), Some(&*bearer(2))));
    assert_eq!(again.header("mcp-session-id"), Some("S1"));
    again.json(&result(7)).await;
    assert_eq!(client.next().await, Got::Message(result(7)), "only the good answer");
    assert_eq!(script.challenges(), [(401, Some("1".to_owned()), true)]);
    assert_eq!(script.last_challenge().unwrap().challenges, ["Bearer error=\"invalid_token\""]);

    // And a second refusal is one: it is not asked for ever.
    client.call(8).unwrap();
    refuse(&server.next().await).await;
    let again = server.next().await;
    assert_eq!(token(&again), Some(&*bearer(3)));
    refuse(&again).await;
    let (text, data) = failed(&mut client, "8").await;
    assert_eq!(
        text,
        format!(
            "HTTP 401 Unauthorized from http://server.example/mcp (WWW-Authenticate: Bearer error=\"invalid_token\"). \
             To sign in, {HINT}"
        )
    );
    assert_eq!(
        (&data["status"], &data["needs_auth"], &data["hint"]),
        (&json!(401), &json!(true), &json!(HINT))
    );
    assert_eq!(script.refreshes(), 2);
    client.call(9).unwrap();
    assert_eq!(server.next().await.body, call(9), "the refused call does not come again");
}

#[tokio::test(start_paused = true)]
async fn a_missing_scope_is_stepped_up_once_and_then_named_with_the_command() {
    let hint = "run: toolway login server --scope \"read write\"";
    let refusal =
        SignInError { hint: Some(hint.to_owned()), ..dead("the server wants more than was granted") };
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again), Ok(Retry::Again), Err(refusal)]);
    let mut client = started(&mut server, &script).await.unwrap();
    client.call(1).unwrap();
    // One request may have both: an old token, and then one with too few rights.
    refuse(&server.next().await).await;
    server.next().await.answer("403 Forbidden", SCOPE, "").await;
    let again = server.next().await;
    assert_eq!((again.body.as_str(), token(&again)), (call(1).as_str(), Some(&*bearer(3))));
    again.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    client.call(2).unwrap();
    server.next().await.answer("403 Forbidden", SCOPE, "").await;
    let (text, data) = failed(&mut client, "2").await;
    assert!(
        text.contains("scope=\"read write\"): the server wants more than was granted. To sign in, run:"),
        "{text}"
    );
    assert!(text.ends_with(hint), "{text}");
    assert_eq!((&data["scope"], &data["hint"]), (&json!("read write"), &json!(hint)));
    assert_eq!(script.challenges().iter().map(|(status, ..)| *status).collect::<Vec<_>>(), [401, 403, 403]);
}

#[tokio::test(start_paused = true)]
async fn what_no_token_would_help_is_not_asked_for() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    for (status, headers) in [
        (
            "403 Forbidden",
            "www-authenticate: Bearer error=\"access_denied\", error_description=\"insufficient_scope\"\r\n",
        ),
        ("403 Forbidden", ""),
        ("400 Bad Request", SCOPE),
        ("500 Internal Server Error", UNAUTHORIZED),
    ] {
        client.call(1).unwrap();
        server.next().await.answer(status, headers, "").await;
        let (text, data) = failed(&mut client, "1").await;
        assert!(text.starts_with(&format!("HTTP {status}")) && !text.contains("sign in"), "{text}");
        assert_eq!(data.get("needs_auth"), None);
    }
    assert_eq!(script.challenges(), []);
}

#[tokio::test(start_paused = true)]
async fn no_other_origin_gets_a_token_or_is_asked_what_it_wants() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    client.call(1).unwrap();
    server.next().await.answer("307 Temporary Redirect", "location: http://other.example/mcp\r\n", "").await;
    let elsewhere = server.next().await;
    assert_eq!((elsewhere.header("host"), token(&elsewhere)), (Some("other.example"), None));
    refuse(&elsewhere).await;
    let (text, _) = failed(&mut client, "1").await;
    assert!(text.starts_with("HTTP 401 Unauthorized from http://other.example/mcp"), "{text}");
    assert_eq!(script.challenges(), []);

    client.call(2).unwrap();
    server.next().await.answer("308 Permanent Redirect", "location: /v2\r\n", "").await;
    let moved = server.next().await;
    assert_eq!((moved.path.as_str(), token(&moved)), ("/v2", Some(&*bearer(1))));
    refuse(&moved).await;
    let again = server.next().await;
    assert_eq!((again.path.as_str(), token(&again)), ("/mcp?key=hidden", Some(&*bearer(2))));
    again.json(&result(2)).await;
    assert_eq!(client.next().await, Got::Message(result(2)));
}

#[tokio::test(start_paused = true)]
async fn a_configured_header_wins_and_the_authorizer_is_not_asked() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut own = signed(&server, &script).unwrap();
    own.headers.push(("AUTHORIZATION".to_owned(), Secret::new("Bearer mine-0123")));
    let mut client = Client::with(&own).unwrap();
    client.send(INITIALIZE).unwrap();
    let request = server.next().await;
    assert_eq!(request.headers_of("authorization"), [("authorization", "Bearer mine-0123")]);
    refuse(&request).await;
    let (text, _) = failed(&mut client, "\"init\"").await;
    assert!(text.contains("The configured Authorization header was not accepted"), "{text}");
    assert_eq!(script.challenges(), []);
}

#[tokio::test(start_paused = true)]
async fn without_a_token_the_server_says_what_it_wants() {
    let mut server = Server::memory();
    let script = Script::new([Err(dead("nobody has signed in")), Ok(Retry::Again)]);
    script.set_token(0);
    let mut client = Client::with(&signed(&server, &script).unwrap()).unwrap();
    client.send(INITIALIZE).unwrap();
    let request = server.next().await;
    assert_eq!(token(&request), None);
    request.answer("401 Unauthorized", UNAUTHORIZED, "no token").await;
    let (text, data) = failed(&mut client, "\"init\"").await;
    assert!(text.contains("no token (WWW-Authenticate: "), "{text}");
    assert!(text.ends_with(&format!(": nobody has signed in. To sign in, {HINT}")), "{text}");
    assert_eq!(data["needs_auth"], json!(true));
    assert_eq!(script.challenges(), [(401, None, true)]);
    client.send(INITIALIZE).unwrap();
    refuse(&server.next().await).await;
    let request = server.next().await;
    assert_eq!(token(&request), Some(&*bearer(1)));
    answer_initialize(&request, "S1").await;
    assert!(matches!(client.next().await, Got::Message(_)), "usable once somebody has signed in");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_signed_is_not_sent() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let mut client = started(&mut server, &script).await.unwrap();
    script.set_ready(false);
    for needs_login in [true, false] {
        let message = format!("https://issuer.example cannot be reached with {}", bearer(1));
        script.fail_to_authorize(SignInError { message, hint: None, needs_login });
        client.call(1).unwrap();
        let (text, data) = failed(&mut client, "1").await;
        let begin = "cannot sign in to http://server.example: https://issuer.example cannot be reached with Bearer [redacted]";
        let end = if needs_login { format!(". To sign in, {HINT}") } else { String::new() };
        assert_eq!(text, format!("{begin}{end}"));
        assert_eq!(data["needs_auth"], json!(needs_login));
    }
    assert!(server.already().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_the_server_repeats_is_not_shown_even_after_a_refresh() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    client.call(1).unwrap();
    refuse(&server.next().await).await;
    let body = format!("not {} and not {TOKEN}-2", bearer(1));
    server
        .next()
        .await
        .answer("401 Unauthorized", &format!("www-authenticate: Bearer x=\"{TOKEN}-2\"\r\n"), &body)
        .await;
    let (text, _) = failed(&mut client, "1").await;
    assert!(text.contains("not Bearer [redacted] and not [redacted]"), "{text}");
    assert!(text.contains("Bearer x=\"[redacted]\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn many_refusals_of_one_token_lead_to_one_refresh() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    for id in 0..20 {
        client.call(id).unwrap();
    }
    let mut stale = Vec::new();
    while stale.len() < 20 {
        stale.push(server.next().await);
    }
    for request in &stale {
        assert_eq!(token(request), Some(&*bearer(1)));
        refuse(request).await;
    }
    for _ in 0..20 {
        let request = server.next().await;
        assert_eq!(token(&request), Some(&*bearer(2)));
        request.json(&result(request.id())).await;
        assert!(matches!(client.next().await, Got::Message(_)));
    }
    assert_eq!((script.refreshes(), script.challenges().len()), (1, 20));
}

#[tokio::test(start_paused = true)]
async fn a_body_from_a_file_is_sent_again_from_its_beginning() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    let text = call(1).replace("{}", &format!("{{\"x\":\"{}\"}}", "y".repeat(300_000)));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let members = outbound(&text).unwrap().members;
    let payload = Payload::File { file, len: text.len() as u64 };
    client.transport.send(Outbound { payload, members }).unwrap();
    let first = server.next().await;
    assert!(first.body == text);
    refuse(&first).await;
    let again = server.next().await;
    assert!(again.body == text && token(&again) == Some(&*bearer(2)));
    again.json(&result(1)).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_begun_anew_is_signed_too() {
    let mut server = Server::memory();
    let script = Script::new([Ok(Retry::Again)]);
    let mut client = started(&mut server, &script).await.unwrap();
    client.call(5).unwrap();
    server.next().await.answer("404 Not Found", "", "").await;
    let request = server.next().await;
    assert_eq!(request.body, INITIALIZE);
    refuse(&request).await;
    let request = server.next().await;
    assert_eq!((request.body.as_str(), token(&request)), (INITIALIZE, Some(&*bearer(2))));
    answer_initialize(&request, "S2").await;
    server.next().await.accepted().await;
    let request = loop {
        let request = server.next().await;
        assert_eq!(token(&request), Some(&*bearer(2)));
        if request.method == "POST" {
            break request;
        }
        request.answer("405 Method Not Allowed", "", "").await;
    };
    request.json(&result(5)).await;
    assert_eq!(client.next().await, Got::Message(result(5)));
}

#[tokio::test(start_paused = true)]
async fn the_legacy_transport_signs_its_stream_and_its_messages() {
    let mut server = Server::memory();
    let script =
        Script::new([Ok(Retry::Again), Ok(Retry::Again), Err(dead("the family of tokens was revoked"))]);
    let mut client = sse(&server, &script).unwrap();
    client.call(1).unwrap();
    let stream = server.next().await;
    assert_eq!((stream.method.as_str(), token(&stream)), ("GET", Some(&*bearer(1))));
    refuse(&stream).await;
    let stream = server.next().await;
    assert_eq!((stream.method.as_str(), token(&stream)), ("GET", Some(&*bearer(2))));
    stream.stream().await;
    stream.raw("event: endpoint\ndata: /message\n\n").await;
    let post = server.next().await;
    assert_eq!((post.path.as_str(), token(&post)), ("/message", Some(&*bearer(2))));
    refuse(&post).await;
    let post = server.next().await;
    assert_eq!((post.body.as_str(), token(&post)), (call(1).as_str(), Some(&*bearer(3))));
    post.accepted().await;
    stream.raw(crate::client::event(&result(1))).await;
    assert_eq!(client.next().await, Got::Message(result(1)));
    client.call(2).unwrap();
    refuse(&server.next().await).await;
    let (text, data) = failed(&mut client, "2").await;
    assert!(text.contains("the family of tokens was revoked. To sign in, "), "{text}");
    assert_eq!(data["needs_auth"], json!(true));
}

#[tokio::test(start_paused = true)]
async fn no_debug_output_shows_what_was_signed_with() {
    let mut server = Server::memory();
    let script = Script::new([]);
    let config = signed(&server, &script).unwrap();
    let mut client = Client::with(&config).unwrap();
    client.start(&mut server, "S1").await.unwrap();
    let shown = format!("{config:?} {:?}", client.transport);
    assert!(shown.contains("Signer") && !shown.contains(TOKEN), "{shown}");
}
