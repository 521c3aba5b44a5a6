//! Values of servers go from texts and JSON; everything else stays byte for byte.

use super::*;
use crate::inline::{McpServer, McpServers};
use crate::options::{AgentOptions, Machine};

fn redactor() -> AgentRedactor {
    let mut options = AgentOptions::local(Machine::new(Vec::new(), "/w".into()));
    options.api_key = Some(Secret::new("key-of-the-model"));
    options.mcp_servers = McpServers::from([
        (
            "db",
            McpServer::command("x")
                .env("PW", "s3cr3t")
                .env("DEBUG", "true")
                .env("PATH", "/usr/bin")
                .env("Q", "a\"b\\c"),
        ),
        (
            "web",
            McpServer::url("http://127.0.0.1:9/mcp?token=inthequery")
                .header("Authorization", "Bearer tok-123"),
        ),
    ]);
    Redactors::new(given(&options, None)).kept
}

#[test]
fn values_go_and_plain_words_stay() {
    let redactor = redactor();
    for (text, clean) in [
        ("pw s3cr3t!", "pw [redacted]!"),
        ("sent tok-123 to http://127.0.0.1:9/mcp?token=inthequery", "sent [redacted] to [redacted]"),
        ("the key is key-of-the-model", "the key is [redacted]"),
        ("inthequery", "[redacted]"),
        ("true is in /usr/bin", "true is in /usr/bin"),
        ("a\"b\\c", "[redacted]"),
    ] {
        assert_eq!(redactor.text(text), clean);
    }
}

#[test]
fn json_keeps_its_numbers_and_its_form() {
    let redactor = redactor();
    let json = |text: &str| redactor.json(&RawJson::new(text.to_owned()).unwrap()).text().to_owned();
    for (text, clean) in [
        (
            r#"{"n":9007199254740993.10,"t":"x s3cr3t\n"}"#,
            r#"{"n":9007199254740993.10,"t":"x [redacted]\n"}"#,
        ),
        (r#"{"a" : [1e400, "\u00733cr3t"]}"#, r#"{"a" : [1e400, "[redacted]"]}"#),
        (r#"{"inner":"{\"q\":\"a\\\"b\\\\c\"}"}"#, r#"{"inner":"{\"q\":\"[redacted]\"}"}"#),
        (r#"{"password":"hunter22","n":1}"#, r#"{"password":"[redacted]","n":1}"#),
        (r#"{"password":123456789}"#, r#"{"password":123456789}"#),
        (r#"{"s3cr3t":"\ud83d\ude00"}"#, r#"{"[redacted]":"\ud83d\ude00"}"#),
        (r#"["nothing here", -0.0]"#, r#"["nothing here", -0.0]"#),
    ] {
        assert_eq!(json(text), clean);
    }
}

#[test]
fn conversations_are_cleaned_in_every_form() {
    let redactor = redactor();
    for (text, clean) in [
        ("{\"a\":\"s3cr3t\",\"n\":1.50}", "{\"a\":\"[redacted]\",\"n\":1.50}"),
        ("{\"a\":\"s3cr3t\"}\n{\"b\":2}\n", "{\"a\":\"[redacted]\"}\n{\"b\":2}\n"),
        ("plain s3cr3t", "plain [redacted]"),
        ("{\"clean\": 1}", "{\"clean\": 1}"),
    ] {
        assert_eq!(redactor.checkpoint(&Bytes::from_static(text.as_bytes())), clean);
    }
}

#[test]
fn states_and_names_stay_whatever_is_secret() {
    let redactor = AgentRedactor::new([Secret::new("running"), Secret::new("connected")]);
    let call = ToolCallEvent {
        call_id: "running".into(),
        name: "running".into(),
        status: crate::event::ToolCallStatus::Running,
        args: Some(RawJson::new(r#"["running"]"#).unwrap()),
        result: None,
        truncated: crate::event::Truncated::default(),
    };
    let EventKind::ToolCall(clean) = redactor.event(EventKind::ToolCall(call.clone())) else { panic!() };
    assert_eq!(clean.args.unwrap().text(), r#"["[redacted]"]"#);
    assert_eq!((clean.call_id, clean.name), (call.call_id, call.name));
}
