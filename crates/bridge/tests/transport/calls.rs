//! Calls from a client's request to the host and back, over real sockets.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use toolway_bridge::{
    Bridge, BridgeConfig, BridgeError, CallId, Deadlines, DiagnosticEvent, DiagnosticSink, Diagnostics,
    DiagnosticsConfig, HostResult, Profile, RawJson, Rejection, RejectionKind, Settlement,
};

use crate::rig::{Legacy, Rig, Told, address, call, list, modern, snapshot, text_of, tool};
use crate::wire::Wire;

fn config(call_timeout_ms: f64) -> BridgeConfig {
    let deadlines = Deadlines::new(None, Some(call_timeout_ms), None).0;
    BridgeConfig { deadlines, ..BridgeConfig::new(Profile::PI) }
}

async fn send(rig: &Rig, session: &Legacy, message: &Value) -> Result<Wire> {
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&session.post(rig, message)).await?;
    Ok(wire)
}

fn error_of(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn statement_20_an_unknown_name_is_a_failed_result_and_the_host_hears_nothing() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    for (name, meant) in
        [("pi__x", None), ("slow", Some("pi__slow")), ("mcp__pi_tools__pi__echo", Some("pi__echo"))]
    {
        let answer = session.ask(&rig, &call(1, name, &json!({}))).await?.json()?;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = text_of(&answer);
        assert!(text.contains(name) && meant.is_none_or(|meant| text.contains(meant)), "{text}");
        let bytes = rig.modern(&modern(1, "tools/call", json!({"name": name, "arguments": {}})));
        assert_eq!(text_of(&rig.ask(&bytes).await?.json()?), text);
    }
    assert!(rig.told.try_recv().is_err());
    Ok(())
}

#[tokio::test]
async fn statement_21_results_keep_their_bytes_and_lose_the_hosts_details() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let image = r#"{"type":"image","data":"aGk=","mimeType":"image/png"}"#;
    let odd = r#"{"type":"rows","rows":[9007199254740993]}"#;
    for (content, mapped) in [
        (format!("[{image}]"), format!("[{image}]")),
        (
            r#"[{"type":"text","text":"9007199254740993 \u00e9"}]"#.to_owned(),
            r#"[{"type":"text","text":"9007199254740993 \u00e9"}]"#.to_owned(),
        ),
        (format!("[{odd}]"), json!([{"type": "text", "text": odd}]).to_string()),
        (r#""text""#.to_owned(), r#"[{"type":"text","text":"text"}]"#.to_owned()),
        ("[]".to_owned(), r#"[{"type":"text","text":""}]"#.to_owned()),
        (
            r#"[{"type":"text","text":"t","details":{"k":1}}]"#.to_owned(),
            r#"[{"type":"text","text":"t"}]"#.to_owned(),
        ),
    ] {
        let mut wire = send(&rig, &session, &call(1, "pi__slow", &json!({}))).await?;
        let started = rig.started().await?;
        let content = RawJson::new(content)?;
        rig.run.settle(&started.id, HostResult { content, is_error: false });
        let body = String::from_utf8(wire.answer().await?.body)?;
        if mapped.contains("rows") {
            let answer: Value = serde_json::from_str(&body)?;
            assert_eq!(answer["result"]["content"], serde_json::from_str::<Value>(&mapped)?);
            assert!(body.contains("9007199254740993"));
        } else {
            assert_eq!(body, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":{mapped}}}}}"#));
        }
    }
    Ok(())
}

#[tokio::test]
async fn statement_22_a_failed_and_a_blocked_tool_are_failed_results_with_the_reason() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    for reason in ["ENOENT: no such file", "the user did not allow it"] {
        let mut wire = send(&rig, &session, &call(1, "pi__slow", &json!({}))).await?;
        let started = rig.started().await?;
        rig.run.settle(&started.id, HostResult::error(reason));
        let answer = wire.answer().await?.json()?;
        assert_eq!((answer["result"]["isError"].clone(), text_of(&answer)), (json!(true), reason));
    }
    Ok(())
}

#[tokio::test]
async fn statement_23_results_with_old_and_foreign_ids_change_nothing() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let mut wire = send(&rig, &session, &call(1, "pi__slow", &json!({}))).await?;
    let first = rig.started().await?;
    rig.run.settle(&first.id, HostResult::text("first"));
    assert_eq!(text_of(&wire.answer().await?.json()?), "first");
    let mut wire = send(&rig, &session, &call(1, "pi__slow", &json!({}))).await?;
    let second = rig.started().await?;
    // A run that was opened later numbers its calls from one as well.
    let fork =
        rig.bridge.open(snapshot(&Profile::PI, vec![tool("slow")])).await?.context("nothing exposed")?;
    for run in [&rig.run, &fork] {
        for id in [&first.id, &CallId::new("cursor-pi-bridge-run-x-t1"), &CallId::new("toolu_1")] {
            assert_eq!(run.settle(id, HostResult::text("old")), Settlement::Unknown);
        }
    }
    assert_eq!(fork.settle(&second.id, HostResult::text("of the parent")), Settlement::Unknown);
    assert_eq!(rig.run.settle(&second.id, HostResult::text("second")), Settlement::Delivered);
    assert_eq!(text_of(&wire.answer().await?.json()?), "second");
    Ok(())
}

#[tokio::test]
async fn statement_25_a_client_that_cancels_a_running_tool_aborts_it_once() -> Result<()> {
    let mut rig = Rig::new().await?;
    // The modern generation: closing the answer cancels.
    let mut wire = Wire::open(rig.port).await?;
    wire.send(&rig.modern(&modern(1, "tools/call", json!({"name": "pi__slow", "arguments": {}})))).await?;
    let started = rig.started().await?;
    drop(wire);
    assert_eq!(rig.cancelled().await?.0, started.id);
    // The legacy one: the notification does.
    let session = rig.legacy().await?;
    let _wire = send(&rig, &session, &call(7, "pi__slow", &json!({}))).await?;
    let started = rig.started().await?;
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    for _ in 0..2 {
        session.ask(&rig, &cancel).await?;
    }
    assert_eq!(rig.cancelled().await?.0, started.id);
    assert_eq!((rig.run.pending(), rig.told.try_recv().is_err()), (0, true));
    Ok(())
}

#[tokio::test]
async fn statement_26_a_stuck_tool_gives_an_error_that_names_the_deadline() -> Result<()> {
    let mut rig = Rig::of(config(500.0), vec![tool("slow")]).await?;
    let session = rig.legacy().await?;
    let begun = Instant::now();
    let answer = session.ask(&rig, &call(1, "pi__slow", &json!({}))).await?.json()?;
    let took = begun.elapsed();
    assert!((500..5000).contains(&took.as_millis()), "{took:?}");
    assert!(error_of(&answer).contains("500 ms"), "{answer}");
    let started = rig.started().await?;
    let (id, reason) = rig.cancelled().await?;
    assert_eq!((id, reason.contains("500 ms")), (started.id.clone(), true));
    // The host, too late: it must not run it, and its result goes nowhere.
    assert!(rig.bridge.admit(&started.id).unwrap_err().contains("no longer pending"));
    assert_eq!(rig.run.settle(&started.id, HostResult::text("late")), Settlement::Unknown);
    Ok(())
}

#[tokio::test]
async fn statement_30_a_shutdown_rejects_every_call_before_the_server_closes() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    let child =
        rig.bridge.open(snapshot(&Profile::PI, vec![tool("slow")])).await?.context("nothing exposed")?;
    let mut waiting = Vec::new();
    for id in 0..20 {
        waiting.push(send(&rig, &session, &call(id, "pi__slow", &json!({}))).await?);
        rig.started().await?;
    }
    // One that only queued: nobody takes the calls of that run.
    let (port, path) = address(&child)?;
    let mut queued = Wire::open(port).await?;
    let bytes = String::from_utf8(rig.modern(&modern(
        1,
        "tools/call",
        json!({"name": "pi__slow", "arguments": {}}),
    )))?;
    queued.send(bytes.replace(&rig.path, &path).as_bytes()).await?;
    while child.pending() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    waiting.push(queued);
    rig.bridge.shutdown("the session was closed").await;
    for mut wire in waiting {
        let answer = wire.answer().await?.json()?;
        assert!(error_of(&answer).contains("the session was closed"), "{answer}");
    }
    assert!(Wire::open(rig.port).await.is_err());
    assert_eq!((rig.bridge.pending(), rig.bridge.runs().len()), (0, 0));
    let mut cancelled = 0;
    while let Ok(Told::Cancelled(..)) = rig.told.try_recv() {
        cancelled += 1;
    }
    assert_eq!(cancelled, 20, "each that was started is stopped once");
    let again = rig.bridge.open(snapshot(&Profile::PI, vec![tool("slow")])).await;
    assert!(matches!(again, Err(BridgeError::Closed)));
    Ok(())
}

#[tokio::test]
async fn statement_31_a_call_after_the_turn_ended_is_rejected_at_once() -> Result<()> {
    let mut rig = Rig::new().await?;
    let session = rig.legacy().await?;
    rig.run.detach();
    let answer = session.ask(&rig, &call(1, "pi__slow", &json!({}))).await?.json()?;
    assert!(error_of(&answer).contains("no active live run"), "{answer}");
    assert_eq!((rig.run.pending(), rig.told.try_recv().is_err()), (0, true));
    // The list is there still: the agent lives.
    assert_eq!(session.ask(&rig, &list(2)).await?.status(), 200);
    Ok(())
}

#[tokio::test]
async fn lesson_18_a_bridge_that_was_shut_down_does_not_block_the_calls_of_its_successor() -> Result<()> {
    let mut old = Rig::new().await?;
    let session = old.legacy().await?;
    let _wire = send(&old, &session, &call(1, "pi__slow", &json!({}))).await?;
    let of_old = old.started().await?.id;
    assert_eq!(old.bridge.admit(&of_old), Ok(()));
    old.bridge.shutdown("the adapter is loaded anew").await;
    let mut new = Rig::new().await?;
    let session = new.legacy().await?;
    let _wire = send(&new, &session, &call(1, "pi__slow", &json!({}))).await?;
    let of_new = new.started().await?.id;
    for bridge in [&old.bridge, &new.bridge] {
        assert_eq!(bridge.admit(&of_new), Ok(()));
        assert!(bridge.admit(&of_old).is_err(), "nobody waits for it");
        assert_eq!(bridge.admit(&CallId::new("toolu_1")), Ok(()));
    }
    Ok(())
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().map_err(|_| io::Error::other("broken"))?.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Costs no call anything.
struct Throwing;

impl DiagnosticSink for Throwing {
    fn record(&mut self, event: &DiagnosticEvent) -> io::Result<()> {
        assert_eq!(event.name(), "never", "the recorder throws");
        Ok(())
    }
}

#[tokio::test]
async fn statement_35_diagnostics_have_no_secret_of_arguments_results_reasons_or_url() -> Result<()> {
    const SECRET: &str = "sk-hunter2-5f1c";
    let (directory, stderr) = (tempfile::tempdir()?, Shared::default());
    let file = directory.path().join("log");
    let diagnostics = Diagnostics::new(DiagnosticsConfig {
        stderr: Some((Profile::PI, Box::new(stderr.clone()))),
        file: Some(file.clone()),
        sinks: vec![Box::new(Throwing)],
    });
    let config = BridgeConfig { diagnostics: diagnostics.clone(), ..BridgeConfig::new(Profile::PI) };
    let mut rig = Rig::of(config, vec![tool("slow")]).await?;
    let session = rig.legacy().await?;
    session.ask(&rig, &list(1)).await?;
    let mut message = call(1, "pi__slow", &json!({"token": SECRET}));
    message["id"] = json!(format!("id-{SECRET}"));
    for end in 0..3 {
        let mut wire = send(&rig, &session, &message).await?;
        let id = rig.started().await?.id;
        match end {
            0 => drop(rig.run.settle(&id, HostResult::text(SECRET))),
            1 => drop(rig.run.fail(&id, Rejection { kind: RejectionKind::Error, reason: SECRET.to_owned() })),
            _ => rig.run.cancel_all(SECRET),
        }
        assert!(String::from_utf8(wire.answer().await?.body)?.contains(SECRET), "the agent reads it");
    }
    let token = rig.path.split('/').nth(2).context("no token")?.to_owned();
    let run = rig.run.id().to_owned();
    rig.bridge.shutdown(SECRET).await;
    diagnostics.flush(Duration::from_mins(1)).await;
    let written = std::fs::read_to_string(&file)?;
    let lines = String::from_utf8(stderr.0.lock().map_err(|_| io::Error::other("broken"))?.clone())?;
    for text in [&written, &lines, &format!("{:?}", diagnostics.last())] {
        for secret in [SECRET, &token, "127.0.0.1", "http", "cursor-pi-tool-bridge/"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert!(text.contains(&run) && text.contains("pi__slow"));
    }
    let names: Vec<Value> = written.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let names: Vec<&str> = names.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(
        names,
        [
            "run_created",
            "tools_exposed",
            "mcp_initialized",
            "mcp_tools_list",
            "request_queued",
            "request_resolved",
            "request_queued",
            "request_rejected",
            "request_queued",
            "run_cancelled",
            "request_rejected",
            "run_disposed",
        ]
    );
    Ok(())
}

#[tokio::test]
async fn nothing_to_serve_is_told_and_opens_nothing() -> Result<()> {
    let diagnostics = Diagnostics::new(DiagnosticsConfig::default());
    let bridge =
        Bridge::new(BridgeConfig { diagnostics: diagnostics.clone(), ..BridgeConfig::new(Profile::HOST) });
    assert!(bridge.open(snapshot(&Profile::HOST, vec![tool("read")])).await?.is_none());
    let last = diagnostics.last();
    assert!(last.iter().any(|event| event.to_json().contains(r#""reason":"no_exposed_tools""#)), "{last:?}");
    Ok(())
}

#[tokio::test]
async fn trial_21_four_calls_at_once_over_real_sockets_in_both_generations() -> Result<()> {
    let tools = ["slow", "ask", "fast", "prog"].map(tool).to_vec();
    let mut rig = Rig::of(config(1000.0), tools).await?;
    let session = rig.legacy().await?;
    for modern_era in [false, true] {
        let bytes = |id, name: &str, token: Option<&str>| {
            let mut params = json!({"name": name, "arguments": {}});
            if let Some(token) = token {
                params["_meta"] = json!({"progressToken": token});
            }
            if modern_era {
                return rig.modern(&modern(id, "tools/call", params));
            }
            let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
            session.post(&rig, &message)
        };
        let requests = [
            bytes(1, "pi__slow", None),
            bytes(2, "pi__fast", None),
            bytes(3, "pi__ask", None),
            bytes(4, "pi__prog", Some("p")),
        ];
        let begun = Instant::now();
        let (mut wires, mut started) = (Vec::new(), Vec::new());
        for request in requests {
            let mut wire = Wire::open(rig.port).await?;
            wire.send(&request).await?;
            wires.push(wire);
            started.push(rig.started().await?.id);
        }
        let [slow, fast, ask, prog] = &mut wires[..] else { bail!("four") };
        rig.run.settle(&started[1], HostResult::text("fast"));
        assert_eq!(text_of(&fast.answer().await?.json()?), "fast");
        rig.run.settle(&started[2], HostResult::text("ask"));
        assert_eq!(text_of(&ask.answer().await?.json()?), "ask");
        for n in 1..=3 {
            rig.run.progress(&started[3], &toolway_bridge::Progress::new(n));
        }
        assert!(prog.head().await?.is_events());
        for n in 1..=3 {
            let note = prog.event().await?.context("no progress")?;
            assert_eq!(note["params"], json!({"progressToken": "p", "progress": n}));
        }
        let answer = slow.answer().await?.json()?;
        let took = begun.elapsed();
        assert!(error_of(&answer).contains("1000 ms"), "{answer}");
        assert!((1000..10_000).contains(&took.as_millis()), "{took:?}");
        let answer = prog.event().await?.context("no answer")?;
        assert!(error_of(&answer).contains("1000 ms"), "{answer}");
        assert_eq!(prog.event().await?, None);
        let stopped = [rig.cancelled().await?.0, rig.cancelled().await?.0];
        assert_eq!(stopped, [started[0].clone(), started[3].clone()]);
        assert_eq!(rig.run.settle(&started[0], HostResult::text("late")), Settlement::Unknown);
        assert_eq!((rig.run.pending(), rig.told.try_recv().is_err()), (0, true));
    }
    Ok(())
}
