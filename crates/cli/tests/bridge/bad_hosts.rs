//! Hosts that do not keep to the protocol, or to any measure.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use toolway_testkit::{SOON, peak_memory};

use crate::host::{Host, home};

fn error_of(line: &[u8]) -> (Value, i64, String) {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let error = &message["error"];
    (
        message["id"].clone(),
        error["code"].as_i64().unwrap_or_default(),
        error["message"].as_str().unwrap_or_default().to_owned(),
    )
}

#[test]
fn what_is_no_request_is_answered_and_the_session_goes_on() -> Result<()> {
    let mut host = Host::start("host")?;
    for (line, id, code) in [
        ("{\"jsonrpc\":\"2.0\",", Value::Null, -32700),
        ("\u{1}\u{2}", Value::Null, -32700),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run/open\"}]", Value::Null, -32600),
        ("{\"id\":70,\"method\":\"run/open\"}", json!(70), -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"run/never\"}", json!("x"), -32601),
        ("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"tools/declare\"}", Value::Null, -32602),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"run/close\",\"params\":{\"run\":\"r\"}}",
            json!(1.5),
            -32001,
        ),
        ("{\"jsonrpc\":\"2.0\",\"id\":71,\"result\":{}}", Value::Null, -32600),
    ] {
        host.client.send_uncaptured(format!("{line}\n").as_bytes())?;
        let answer = host.client.line_that(SOON, line, |line| error_of(line).1 != 0)?;
        let (told, number, text) = error_of(&answer);
        assert_eq!((told, number), (id, code), "{line} {text}");
    }
    // Bytes that are no UTF-8, a notification that fails, and a blank line: no answer but the first.
    host.client.send_uncaptured(b"{\"a\":\"\xff\"}\n\n{\"jsonrpc\":\"2.0\",\"method\":\"run/never\"}\n")?;
    let answer = host.client.line_that(SOON, "error", |line| error_of(line).1 != 0)?;
    assert_eq!(error_of(&answer).1, -32700);
    host.declare(&["a"])?;
    assert!(host.client.kept().is_empty(), "{:?}", host.client.kept());
    Ok(())
}

#[test]
fn a_wrong_field_is_named() -> Result<()> {
    let mut host = Host::start("host")?;
    let error =
        host.refused("tools/declare", json!({"tools": [{"name": "a"}, {"name": "b", "guidelines": "x"}]}))?;
    assert_eq!(error["data"]["field"], "tools[1].guidelines");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("expected a sequence")), "{error}");
    let error = host.refused("run/open", json!({"calls": "sometimes"}))?;
    assert_eq!(error["data"]["field"], "calls");
    let error = host.refused("run/open", json!({"sesion": "main"}))?;
    assert!(error["message"].as_str().is_some_and(|text| text.contains("`sesion`")), "{error}");
    let error = host.refused("settings/write", json!({"changes": {"tools.bridge.enabled": "yes"}}))?;
    assert_eq!(error["data"]["field"], "changes.tools.bridge.enabled");
    assert!(
        error["message"].as_str().is_some_and(|text| text.ends_with("is neither true nor false")),
        "{error}"
    );
    // A group of settings is none: the others in it would go.
    let error = host.refused("settings/write", json!({"changes": {"tools.bridge": {"enabled": true}}}))?;
    assert_eq!(error["data"]["field"], "changes.tools.bridge");
    host.client.send("{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"method\":\"run/open\",\"params\":[]}")?;
    let answer: Value = serde_json::from_slice(&host.client.answer("\"list\"")?)?;
    assert_eq!(answer["error"]["data"], json!({"field": "", "wanted": "an object is wanted"}));
    Ok(())
}

#[test]
fn versions_and_the_order_of_the_handshake_are_held() -> Result<()> {
    let mut host = Host::silent(home()?)?;
    let error = host.refused("tools/declare", json!({"tools": []}))?;
    assert_eq!((error["code"].as_i64(), &error["data"]), (Some(-32000), &json!({"spoken": [1]})));
    let newer = json!({"protocolVersion": 2, "host": {"name": "h"}, "later": 1});
    let error = host.refused("initialize", newer)?;
    assert_eq!((error["code"].as_i64(), &error["data"]), (Some(-32000), &json!({"spoken": [1]})), "{error}");
    let result = host.ask("initialize", json!({"protocolVersion": 1, "host": {"name": "h"}}))?;
    assert_eq!((&result["protocolVersion"], &result["profile"]["id"]), (&json!(1), &json!("pi")));
    let error = host.refused("initialize", json!({"protocolVersion": 1, "host": {"name": "h"}}))?;
    assert_eq!(error["code"], -32000);
    Ok(())
}

#[test]
fn a_message_of_100_mb_fails_alone_and_is_not_held() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["a"])?;
    let pending = agent.call_later(1, "host__a", &json!({}));
    let call = host.call()?;
    let head = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":900,\"method\":\"call/result\",\"params\":{{\"call\":{},\"content\":\"",
        call["call"]
    );
    host.client.send_uncaptured(head.as_bytes())?;
    let piece = vec![b'y'; 1 << 20];
    for _ in 0..100 {
        host.client.send_uncaptured(&piece)?;
    }
    host.client.send_uncaptured(b"\"}}\n")?;
    let answer = host.client.line_that(SOON, "the error", |line| error_of(line).1 != 0)?;
    let (id, code, text) = error_of(&answer);
    assert_eq!((id, code), (json!(900), -32600), "{text}");
    assert!(text.contains("33554432"), "{text}");
    // The session is alive, and the call is still open.
    assert!(host.answer(&call, "shorter")?);
    assert_eq!(pending.answer()?.text()?, "shorter");
    // A host that does not care: its agent hears of it all the same.
    let pending = agent.call_later(2, "host__a", &json!({}));
    let next = host.call()?;
    let name = |call: &Value| call["call"].to_string();
    host.client.send_uncaptured(head.replace("900", "901").replace(&name(&call), &name(&next)).as_bytes())?;
    for _ in 0..40 {
        host.client.send_uncaptured(&piece)?;
    }
    host.client.send_uncaptured(b"\"}}\n")?;
    assert!(pending.answer()?.error()?.contains("33554432"));
    assert_eq!(host.told("call/cancelled")?["call"], next["call"]);
    let peak = peak_memory(host.client.pid()).unwrap_or(u64::MAX);
    assert!(peak < 110 << 20, "{peak} bytes");
    Ok(())
}

#[test]
fn a_host_that_floods_is_served_in_order() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["a"])?;
    let many = 20_000;
    let mut flood = String::new();
    for n in 0..many {
        let admit =
            json!({"jsonrpc": "2.0", "id": format!("f{n}"), "method": "call/admit", "params": {"call": "x"}});
        flood.extend([
            admit.to_string(),
            "
"
            .to_owned(),
        ]);
    }
    host.client.send_uncaptured(flood.as_bytes())?;
    for n in 0..many {
        let line = host.client.next_line(SOON)?.unwrap_or_default();
        let answer: Value = serde_json::from_slice(&line)?;
        assert_eq!(answer["id"], format!("f{n}"));
    }
    let peak = peak_memory(host.client.pid()).unwrap_or(u64::MAX);
    assert!(peak < 64 << 20, "{peak} bytes");
    host.declare(&["b"])?;
    Ok(())
}

#[test]
fn a_host_that_does_not_read_is_not_read_from_either_and_loses_nothing() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["a"])?;
    host.client.stop_reading();
    let report = |n: u64| format!("{{\"jsonrpc\":\"2.0\",\"id\":\"r{n}\",\"method\":\"report/read\"}}\n");
    let many = 20_000;
    let flood: String = (0..many).map(report).collect();
    host.client.send_uncaptured(flood.as_bytes())?;
    host.client.settle(Duration::from_mins(1))?;
    let peak = peak_memory(host.client.pid()).unwrap_or(u64::MAX);
    assert!(peak < 96 << 20, "{peak} bytes");
    host.client.read_on();
    for _ in 0..many {
        host.client.next_line(SOON)?;
    }
    host.declare(&["b"])?;
    Ok(())
}

#[test]
fn an_explicit_profile_is_not_overruled() -> Result<()> {
    let house = home()?;
    let mut client =
        toolway_testkit::Client::start(&mut crate::host::command(house.path(), &["--profile", "pi"]))?;
    let hello = |profile: &str| {
        json!({"jsonrpc": "2.0", "id": profile, "method": "initialize",
            "params": {"protocolVersion": 1, "host": {"name": "h"}, "profile": profile}})
    };
    client.send(&hello("host").to_string())?;
    assert_eq!(error_of(&client.answer("\"host\"")?).1, -32602);
    client.send(&hello("pi").to_string())?;
    assert_eq!(error_of(&client.answer("\"pi\"")?).1, 0);
    Ok(())
}
