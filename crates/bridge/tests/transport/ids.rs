//! Ids and progress tokens of every kind, cancellations of what was and was not asked, the same ids in many places.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_bridge::{
    Bridge, BridgeConfig, CallId, CallSink, Deadlines, HostCall, HostResult, Profile, Progress, RawJson,
    Settlement,
};

use crate::rig::{Legacy, Rig, call, initialize, list, snapshot, text_of, tool};
use crate::wire::Wire;

async fn send(rig: &Rig, session: &Legacy, body: &str) -> Result<Wire> {
    let headers = [("Mcp-Session-Id", session.session.as_str())];
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.post(&headers, body.as_bytes())).await?;
    Ok(wire)
}

fn raw_call(id: &str, name: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{}}{meta}}}}}"#
    )
}

fn cancel(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

#[tokio::test]
async fn ids_of_every_kind_come_back_as_they_were_spelled_and_can_be_cancelled() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let long = format!("\"{}\"", "i".repeat(200));
    for (id, other, same) in [
        ("0", "\"0\"", "0"),
        ("7", "\"7\"", "7.0"),
        ("-3", "3", "-3"),
        ("1.5", "1", "15e-1"),
        ("9007199254740993", "9007199254740992", "9007199254740993"),
        (
            "123456789012345678901234567890",
            "123456789012345678901234567891",
            "123456789012345678901234567890",
        ),
        ("\"a\\u0062\"", "\"a\"", "\"ab\""),
        ("\"\"", "0", "\"\""),
        ("\"null\"", "null", "\"null\""),
        (long.as_str(), "\"i\"", long.as_str()),
    ] {
        let mut wire = send(&rig, &session, &raw_call(id, "pi__slow", "")).await?;
        let started = rig.started().await?;
        assert_eq!(send(&rig, &session, &cancel(other)).await?.answer().await?.status(), 202, "{other}");
        assert_eq!(rig.run.pending(), 1, "{other} is not {id}");
        rig.run.settle(&started.id, HostResult::text("x"));
        let body = String::from_utf8(wire.answer().await?.body)?;
        assert!(body.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)), "{body}");
        let mut wire = send(&rig, &session, &raw_call(id, "pi__slow", "")).await?;
        let started = rig.started().await?;
        assert_eq!(send(&rig, &session, &cancel(same)).await?.answer().await?.status(), 202);
        assert_eq!(rig.cancelled().await?.0, started.id, "{same} is {id}");
        assert_eq!((wire.answer().await?.body.len(), rig.run.pending()), (0, 0));
    }
    for id in ["null", "{}", "[1]", "true"] {
        let answer = send(&rig, &session, &raw_call(id, "pi__slow", "")).await?.answer().await?;
        assert_eq!((answer.status(), answer.json()?["error"]["code"].clone()), (400, json!(-32600)), "{id}");
    }
    assert!(rig.told.try_recv().is_err());
    Ok(())
}

#[tokio::test]
async fn cancellations_of_what_cannot_be_cancelled_change_nothing() -> Result<()> {
    let mut rig = Rig::new().await?;
    let answer = rig.ask(&rig.post(&[], initialize("2025-11-25").to_string().as_bytes())).await?;
    let session = Legacy { session: answer.head.header("mcp-session-id").context("no session")?.to_owned() };
    // initialize had the id 0, and the list has 5: neither waits, and no later call is meant.
    session.ask(&rig, &list(5)).await?;
    for id in ["0", "5", "\"0\"", "null", "{}", "[0]", "99"] {
        let answer = send(&rig, &session, &cancel(id)).await?.answer().await?;
        assert_eq!(answer.status(), 202, "{id}");
    }
    for odd in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[0]}"#,
    ] {
        let answer = send(&rig, &session, odd).await?.answer().await?;
        assert!(matches!(answer.status(), 202 | 400), "{odd}: {}", answer.status());
    }
    for id in [0, 5] {
        let mut wire = send(&rig, &session, &call(id, "pi__slow", &json!({})).to_string()).await?;
        let started = rig.started().await?;
        rig.run.settle(&started.id, HostResult::text("not cancelled"));
        assert_eq!(text_of(&wire.answer().await?.json()?), "not cancelled", "{id}");
    }
    // A cancellation that overtook its call, on another connection, is meant for it.
    let answer = send(&rig, &session, &raw_call("99", "pi__slow", "")).await?.answer().await?;
    assert_eq!((answer.status(), answer.body.len()), (202, 0));
    assert!(rig.told.try_recv().is_err(), "the host was not asked");
    Ok(())
}

#[tokio::test]
async fn the_same_id_in_two_sessions_and_twice_in_one_are_different_calls() -> Result<()> {
    let mut rig = Rig::new().await?;
    let (one, two) = (rig.legacy().await?, rig.legacy().await?);
    let mut wires = Vec::new();
    let mut ids = Vec::new();
    for session in [&one, &two, &two] {
        wires.push(send(&rig, session, &raw_call("1", "pi__slow", "")).await?);
        ids.push(rig.started().await?.id);
    }
    send(&rig, &one, &cancel("1")).await?.answer().await?;
    assert_eq!(rig.cancelled().await?.0, ids[0]);
    for (n, id) in ids.iter().enumerate() {
        let settled = rig.run.settle(id, HostResult::text(&n.to_string()));
        assert_eq!(settled, if n == 0 { Settlement::Unknown } else { Settlement::Delivered });
    }
    assert_eq!(wires[0].answer().await?.body.len(), 0);
    for (n, wire) in wires.iter_mut().enumerate().skip(1) {
        assert_eq!(text_of(&wire.answer().await?.json()?), n.to_string());
    }
    Ok(())
}

#[tokio::test]
async fn a_batch_holds_calls_their_cancellations_and_ids_of_every_kind() -> Result<()> {
    let mut rig = Rig::new().await?;
    let answer = rig.ask(&rig.post(&[], initialize("2025-03-26").to_string().as_bytes())).await?;
    let session = Legacy { session: answer.head.header("mcp-session-id").context("no session")?.to_owned() };
    let batch = [
        raw_call("1", "pi__slow", ""),
        raw_call("2", "pi__slow", ""),
        cancel("1"),
        raw_call("1e1", "pi__echo", ""),
        raw_call("{}", "pi__echo", ""),
        raw_call("\"x\"", "pi__nobody", ""),
    ];
    let mut wire = send(&rig, &session, &format!("[{}]", batch.join(","))).await?;
    let (first, second) = (rig.started().await?, rig.started().await?);
    assert_eq!(rig.cancelled().await?.0, first.id);
    rig.run.settle(&second.id, HostResult::text("two"));
    let body = String::from_utf8(wire.answer().await?.body)?;
    let answers: Vec<Value> = serde_json::from_str(&body)?;
    let mut ids: Vec<String> = answers.iter().map(|answer| answer["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["\"x\"", "10.0", "2", "null"], "{body}");
    assert!(body.contains(r#""id":1e1,"#), "{body}");
    // All of it cancelled: nothing is owed.
    let batch = format!("[{},{}]", raw_call("8", "pi__slow", ""), cancel("8"));
    assert_eq!(send(&rig, &session, &batch).await?.answer().await?.status(), 202);
    assert_eq!(rig.run.pending(), 0);
    Ok(())
}

#[tokio::test]
async fn progress_carries_the_token_as_it_was_spelled_and_other_things_are_none() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let long = format!("\"{}\"", "t".repeat(300));
    for (token, counts) in [
        ("\"p\"", true),
        ("\"\"", true),
        ("0", true),
        ("-1.50", true),
        ("123456789012345678901234567890", true),
        ("\"\\u00e9\\n\"", true),
        (long.as_str(), true),
        ("null", false),
        ("true", false),
        ("{\"a\":1}", false),
        ("[1]", false),
    ] {
        let meta = format!(r#","_meta":{{"progressToken":{token}}}"#);
        let mut wire = send(&rig, &session, &raw_call("1", "pi__slow", &meta)).await?;
        let started = rig.started().await?;
        rig.run.progress(&started.id, &Progress::new(1));
        rig.run.settle(&started.id, HostResult::text("end"));
        let head = wire.head().await?;
        assert_eq!(head.is_events(), counts, "{token}");
        if counts {
            let block = wire.block().await?.context("no progress")?;
            assert!(block.contains(&format!(r#"{{"progressToken":{token},"progress":1}}"#)), "{block}");
            assert_eq!(text_of(&wire.event().await?.context("no answer")?), "end");
        }
    }
    Ok(())
}

#[tokio::test]
async fn results_with_numbers_that_no_float_holds_pass_as_they_are() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    for content in ["1e999", "-0", "123456789012345678901234567890.000", "[1e400,{\"x\":-1E-999}]"] {
        let mut wire = send(&rig, &session, &raw_call("1", "pi__slow", "")).await?;
        let started = rig.started().await?;
        rig.run.settle(&started.id, HostResult { content: RawJson::new(content)?, is_error: false });
        let answer = wire.answer().await?.json()?;
        let blocks = answer["result"]["content"].as_array().context("no list")?;
        let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        let joined = texts.join(",");
        assert_eq!(joined, content.trim_matches(['[', ']']), "{answer}");
    }
    for odd in ["NaN", "Infinity", "-Infinity", "01", "1.", "+1", ".5", "[NaN]"] {
        assert!(RawJson::new(odd).is_err(), "{odd}");
    }
    Ok(())
}

#[tokio::test]
async fn half_characters_reach_neither_the_host_nor_the_agent() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let body = raw_call("1", "pi__slow", "").replace("{}", r#"{"cut":"\ud83d","whole":"\ud83d\ude00"}"#);
    let mut wire = send(&rig, &session, &body).await?;
    let started = rig.started().await?;
    assert_eq!(started.arguments.text(), r#"{"cut":"\ufffd","whole":"\ud83d\ude00"}"#);
    let content = RawJson::new(r#"[{"type":"text","text":"cut \ud83d"},{"type":"odd","x":"\udc00"}]"#)?;
    rig.run.settle(&started.id, HostResult { content, is_error: false });
    // A strict reader takes it.
    let answer = wire.answer().await?.json()?;
    assert_eq!(text_of(&answer), "cut \u{fffd}");
    assert_eq!(answer["result"]["content"][1]["text"], r#"{"type":"odd","x":"\udc00"}"#);
    Ok(())
}

#[tokio::test]
async fn a_deadline_of_one_millisecond_ends_every_call() -> Result<()> {
    let (deadlines, warnings) = Deadlines::new(None, Some(0.000_001), None);
    assert_eq!((deadlines.bridge, warnings.len()), (Duration::from_millis(1), 1));
    let mut rig =
        Rig::of(BridgeConfig { deadlines, ..BridgeConfig::new(Profile::HOST) }, vec![tool("slow")]).await?;
    let session = rig.legacy().await?;
    let begun = Instant::now();
    for id in 0..50 {
        let answer = session.ask(&rig, &call(id, "host__slow", &json!({}))).await?.json()?;
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("1 ms")), "{answer}");
        let started = rig.started().await?.id;
        assert_eq!(rig.cancelled().await?.0, started);
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
    Ok(())
}

#[tokio::test]
async fn a_run_that_ends_while_calls_stream_progress_ends_the_streams_with_its_reason() -> Result<()> {
    let mut rig = Rig::new().await?;
    let other = rig.bridge.open(rig.run.snapshot().clone()).await?.context("nothing is exposed")?;
    let session = rig.legacy().await?;
    let mut wires = Vec::new();
    for id in 0..20 {
        let meta = r#","_meta":{"progressToken":"p"}"#;
        let mut wire = send(&rig, &session, &raw_call(&id.to_string(), "pi__slow", meta)).await?;
        let started = rig.started().await?;
        for n in 1..10 {
            rig.run.progress(&started.id, &Progress::new(n));
        }
        assert!(wire.head().await?.is_events());
        wires.push((wire, started.id));
    }
    let run = rig.run.clone();
    let flood = async {
        for n in 10..200 {
            for (_, id) in &wires {
                run.progress(id, &Progress::new(n));
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(flood, rig.run.dispose("the agent is gone"));
    for (wire, id) in &mut wires {
        let mut last = Value::Null;
        while let Some(message) = wire.event().await? {
            assert!(last["id"].is_null(), "nothing follows the answer");
            last = message;
        }
        assert!(last["error"]["message"].as_str().is_some_and(|text| text.contains("gone")), "{last}");
        assert_eq!(rig.run.settle(id, HostResult::text("late")), Settlement::Unknown);
    }
    assert_eq!((rig.run.pending(), other.is_disposed()), (0, false));
    Ok(())
}

/// Breaks off in everything that it is told.
struct Broken;

impl CallSink for Broken {
    fn started(&mut self, call: HostCall) -> Result<(), String> {
        assert!(!call.arguments.text().contains("break"), "it breaks off");
        Ok(())
    }

    fn cancelled(&mut self, _id: &CallId, reason: &str) {
        assert!(reason.is_empty(), "it breaks off");
    }
}

#[tokio::test]
async fn a_sink_that_breaks_off_costs_no_answer_and_no_end() -> Result<()> {
    let rig = Rig::new().await?;
    rig.run.bind(Box::new(Broken));
    let session = rig.legacy().await?;
    let answer = session.ask(&rig, &call(1, "pi__slow", &json!({"break": 1}))).await?.json()?;
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("broke off")), "{answer}");
    let mut wires = Vec::new();
    for id in 2..6 {
        wires.push(send(&rig, &session, &call(id, "pi__slow", &json!({})).to_string()).await?);
    }
    while rig.run.pending() < wires.len() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    send(&rig, &session, &cancel("2")).await?.answer().await?;
    assert_eq!(wires.remove(0).answer().await?.status(), 202);
    rig.bridge.shutdown("all is over").await;
    for mut wire in wires {
        let answer = wire.answer().await?.json()?;
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("over")), "{answer}");
    }
    assert!(Wire::open(rig.port).await.is_err());
    Ok(())
}

#[tokio::test]
async fn runs_that_are_opened_while_the_bridge_shuts_down_are_shut_or_refused() -> Result<()> {
    for turn in 0..20 {
        let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
        let snapshot = snapshot(&Profile::PI, vec![tool("slow")]);
        let open = || bridge.open(snapshot.clone());
        let late = async {
            for _ in 0..turn % 4 {
                tokio::task::yield_now().await;
            }
            bridge.shutdown("over").await;
        };
        let (one, two, three, ()) = tokio::join!(open(), open(), open(), late);
        let mut opened = 0;
        for run in [one, two, three].into_iter().flatten().flatten() {
            opened += 1;
            assert!(run.is_disposed());
            let (port, _) = crate::rig::address(&run)?;
            assert!(Wire::open(port).await.is_err(), "no port is left");
        }
        assert!(opened <= 3 && bridge.runs().is_empty());
        assert!(open().await.is_err());
    }
    Ok(())
}
