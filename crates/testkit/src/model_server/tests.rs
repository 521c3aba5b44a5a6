use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use super::*;

fn ask(server: &ModelServer, path: &str, body: &Value) -> String {
    let mut connection = TcpStream::connect(server.address).unwrap();
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    // A connection that breaks is part of some scripts.
    connection.read_to_end(&mut answer).unwrap_or_default();
    String::from_utf8_lossy(&answer).into_owned()
}

fn user(text: &str, stream: bool) -> Value {
    json!({ "stream": stream, "messages": [{ "role": "user", "content": text }], "input": text })
}

#[test]
fn rules_come_before_replies_and_fit_as_often_as_they_may() {
    let script = ModelScript::of(&json!({
        "rules": [
            { "when": { "user": "weather" }, "times": 1, "reply": { "text": "first" } },
            { "when": { "user": "weather" }, "replies": [{ "text": "second" }, { "text": "third" }] },
        ],
        "replies": [{ "text": "one" }, { "text": "two" }],
        "otherwise": { "text": "none" },
    }));
    let server = ModelServer::start(script.unwrap()).unwrap();
    let said = ["weather", "weather", "weather", "weather", "a", "b", "c"].map(|text| {
        let answer = ask(&server, "/v1/chat/completions", &user(text, false));
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        body["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    });
    assert_eq!(said, ["first", "second", "third", "third", "one", "two", "none"]);
    assert_eq!(server.requests().len(), 7);
}

#[test]
fn every_protocol_streams_to_its_mark_of_the_end_unless_it_is_cut() {
    let paths = [
        ("/v1/chat/completions", "data: [DONE]"),
        ("/v1/responses", "response.completed"),
        ("/v1/messages", "message_stop"),
        ("/v1beta/models/m:streamGenerateContent", "finishReason"),
        ("/api/chat", "\"done\":true"),
    ];
    for (path, end) in paths {
        let cut = ModelReply::of(&json!({ "text": "Good morning to you", "cut": "end" })).unwrap();
        let server = ModelServer::replies([ModelReply::text("Good morning to you"), cut]).unwrap();
        let (whole, part) = (ask(&server, path, &user("x", true)), ask(&server, path, &user("x", true)));
        assert!(whole.contains(end) && whole.ends_with("0\r\n\r\n"), "{path}: {whole}");
        assert!(
            part.contains("Good morni") && !part.contains(end) && !part.ends_with("0\r\n\r\n"),
            "{path}: {part}"
        );
    }
}

#[test]
fn a_part_of_a_result_can_be_given_back() {
    let reply = json!({
        "capture": { "id": { "after": "saved as ", "until": "." } },
        "calls": [{ "name": "read", "arguments": { "id": "${id}" } }],
    });
    let server = ModelServer::replies([ModelReply::of(&reply).unwrap()]).unwrap();
    let body = json!({ "messages": [
        { "role": "user", "content": "go" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "x", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1", "content": "it is saved as r7. Fine" }] },
    ]});
    let answer = ask(&server, "/v1/messages", &body);
    assert!(answer.contains(r#""input":{"id":"r7"}"#), "{answer}");
    assert_eq!(server.requests()[0].results(), ["it is saved as r7. Fine"]);
}

#[test]
fn a_script_with_an_unknown_member_is_refused() {
    for script in [
        json!({ "reply": {} }),
        json!({ "replies": [{ "txt": "x" }] }),
        json!({ "rules": [{ "when": { "x": "y" }, "reply": {} }] }),
    ] {
        assert!(ModelScript::of(&script).is_err(), "{script}");
    }
}
