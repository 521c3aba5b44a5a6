//! Calls from the agent to the host and back.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use toolway_testkit::peak_memory;

use crate::host::{Host, home};

#[test]
fn statement_18_a_call_reaches_the_host_under_its_real_name_and_its_result_the_agent() -> Result<()> {
    for (profile, prefix, id) in
        [("pi", "pi__", "cursor-pi-bridge-run-"), ("host", "host__", "toolway-bridge-run-")]
    {
        let mut host = Host::start(profile)?;
        let (run, agent) = host.with_agent(&["load", "read.file"])?;
        assert_eq!(agent.tools()?, [format!("{prefix}load"), format!("{prefix}read_file")]);
        let arguments = json!({"path": "a.txt", "big": 12_345_678_901_234_567_i64});
        let pending = agent.call_later(1, &format!("{prefix}read_file"), &arguments);
        let call = host.call()?;
        assert_eq!(call["tool"], "read.file");
        assert_eq!(call["name"], format!("{prefix}read_file"));
        assert_eq!(call["arguments"], arguments);
        let told = call["call"].as_str().unwrap_or_default();
        assert!(told.starts_with(id) && told.len() <= 64, "{told}");
        assert_eq!(host.ask("call/admit", json!({"call": told}))?, json!({"admitted": true}));
        assert!(host.answer(&call, "what the file says")?);
        assert_eq!(pending.answer()?.text()?, "what the file says");
        let facts = host.ask("run/facts", json!({"run": run.id}))?;
        assert_eq!(facts, json!({"exposed": 2, "connected": 1, "listed": 1, "called": 1}));
        assert_eq!(host.shut_down()?.code(), Some(0));
    }
    Ok(())
}

#[test]
fn the_first_answer_counts_and_later_ones_are_told_so() -> Result<()> {
    let mut host = Host::start("host")?;
    let (run, agent) = host.with_agent(&["add"])?;
    let pending = agent.call_later(1, "host__add", &json!({}));
    let call = host.call()?;
    assert!(host.answer(&call, "one")?);
    assert!(!host.answer(&call, "two")?, "an answer was taken twice");
    assert_eq!(pending.answer()?.text()?, "one");
    assert!(!host.answer(&json!({"call": "toolway-bridge-run-0-t1"}), "never asked")?);
    let admitted = host.ask("call/admit", json!({"call": call["call"]}))?;
    assert_eq!(admitted["admitted"], false, "{admitted}");
    assert_eq!(host.ask("call/admit", json!({"call": "call_of_the_host"}))?, json!({"admitted": true}));
    host.ask("run/close", json!({"run": run.id}))?;
    assert!(!host.answer(&call, "three")?);
    Ok(())
}

#[test]
fn results_failures_and_progress_take_their_ways() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["work"])?;
    let pending = agent.call_later(1, "host__work", &json!({}));
    let call = host.call()?;
    for n in 1..=2 {
        let progress =
            json!({"call": call["call"], "progress": n, "total": 2, "message": format!("step {n}")});
        assert_eq!(host.ask("call/progress", progress)?, json!({"accepted": true}));
    }
    let content =
        json!([{"type": "image", "data": "QUJD", "mimeType": "image/png"}, {"type": "odd", "n": 1}]);
    host.ask("call/result", json!({"call": call["call"], "content": content, "isError": true}))?;
    let answer = pending.answer()?;
    let result = &answer.response()?["result"];
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0], json!({"type": "image", "data": "QUJD", "mimeType": "image/png"}));
    assert_eq!(result["content"][1]["type"], "text");
    let progress: Vec<&Value> =
        answer.messages.iter().filter(|message| message["method"] == "notifications/progress").collect();
    assert_eq!(progress.len(), 2, "{answer:?}");
    assert_eq!(progress[1]["params"]["progressToken"], "p1");
    let late = json!({"call": call["call"], "progress": 3});
    assert_eq!(host.ask("call/progress", late)?, json!({"accepted": false}));

    let pending = agent.call_later(2, "host__work", &json!({}));
    let call = host.call()?;
    host.ask("call/fail", json!({"call": call["call"], "reason": "the tool's program is missing"}))?;
    assert!(pending.answer()?.error()?.contains("the tool's program is missing"));

    let unknown = agent.call(3, "host__other", &json!({}))?;
    assert_eq!(unknown.response()?["result"]["isError"], true);
    Ok(())
}

#[test]
fn a_number_of_progress_that_is_none_is_named() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["work"])?;
    let pending = agent.call_later(1, "host__work", &json!({}));
    let call = host.call()?;
    for odd in [json!("1"), json!(true), json!([1]), json!({})] {
        let error = host.refused("call/progress", json!({"call": call["call"], "progress": odd}))?;
        assert_eq!(
            (&error["code"], &error["data"]["field"]),
            (&json!(-32602), &json!("progress")),
            "{error}"
        );
        let error =
            host.refused("call/progress", json!({"progress": 1, "total": odd, "call": call["call"]}))?;
        assert_eq!(error["data"]["field"], "total", "{error}");
    }
    let number = "123456789012345678901234567890.10";
    host.client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":"n","method":"call/progress","params":{{"call":{},"progress":{number}}}}}"#,
        call["call"]
    ))?;
    host.client.answer("\"n\"")?;
    host.answer(&call, "done")?;
    assert_eq!(pending.answer()?.messages.len(), 2);
    Ok(())
}

#[test]
fn only_calls_that_an_agent_waits_for_are_admitted_among_the_bridges_own() -> Result<()> {
    let hex = "0123456789abcdef0123456789abcdef";
    for profile in ["pi", "host"] {
        let mut host = Host::start(profile)?;
        // Also before there is any run.
        for opened in [false, true] {
            if opened {
                host.declare(&["work"])?;
                host.open(json!({}))?;
            }
            for prefix in ["cursor-pi-bridge-run-", "toolway-bridge-run-"] {
                for id in [format!("{prefix}{hex}-t1"), format!("{prefix}{hex}-tool-1"), format!("{prefix}x")]
                {
                    let admitted = host.ask("call/admit", json!({"call": id}))?;
                    assert_eq!(admitted["admitted"], false, "{id}");
                    assert!(
                        admitted["reason"].as_str().is_some_and(|text| text.contains("no longer pending"))
                    );
                    assert!(!host.answer(&json!({"call": id}), "never asked")?);
                }
            }
            for id in ["toolu_1", "", "call-t1", "cursor-replay-1"] {
                assert_eq!(host.ask("call/admit", json!({"call": id}))?, json!({"admitted": true}), "{id}");
            }
        }
    }
    Ok(())
}

#[test]
fn arguments_that_are_no_object_come_as_an_empty_one() -> Result<()> {
    let mut host = Host::start("pi")?;
    let (_, agent) = host.with_agent(&["work"])?;
    let mut odd: Vec<Value> = [json!(null), json!("x"), json!(7), json!([1]), json!(true)]
        .into_iter()
        .map(|arguments| json!({"name": "pi__work", "arguments": arguments}))
        .collect();
    odd.push(json!({"name": "pi__work"}));
    for (id, params) in (1..).zip(odd) {
        let pending =
            agent.post_later(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
        let call = host.call()?;
        assert_eq!(call["arguments"], json!({}), "{params}");
        assert!(host.answer(&call, "ran")?);
        assert_eq!(pending.answer()?.text()?, "ran");
    }
    Ok(())
}

#[test]
fn a_cancelled_call_is_told_once_and_its_result_counts_nothing() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["work"])?;
    let _pending = agent.call_later(1, "host__work", &json!({}));
    let call = host.call()?;
    agent.cancel(1)?;
    let cancelled = host.told("call/cancelled")?;
    assert_eq!(cancelled["call"], call["call"]);
    assert!(!host.answer(&call, "late")?);
    host.shut_down()?;
    assert!(host.client.kept().is_empty(), "{:?}", host.client.kept());
    Ok(())
}

#[test]
fn batches_bring_calls_together_and_a_removed_call_is_left_out() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["a", "b", "c"])?;
    let run = host.open(json!({"calls": "batch"}))?;
    let agent = crate::agent::Agent::connect(&run.url)?;
    let first = agent.call_later(1, "host__a", &json!({}));
    let second = agent.call_later(2, "host__b", &json!({}));
    let started = host.told("calls/started")?;
    let calls = started["calls"].as_array().cloned().unwrap_or_default();
    assert_eq!(calls.len(), 2, "{started}");
    for call in &calls {
        assert!(host.answer(call, call["tool"].as_str().unwrap_or_default())?);
    }
    assert_eq!((first.answer()?.text()?, second.answer()?.text()?), ("a".to_owned(), "b".to_owned()));
    Ok(())
}

#[test]
fn a_run_that_is_not_attached_keeps_calls_and_one_that_is_detached_refuses_them() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["a"])?;
    let run = host.open(json!({"attach": false}))?;
    let agent = crate::agent::Agent::connect(&run.url)?;
    let pending = agent.call_later(1, "host__a", &json!({}));
    host.ask("run/attach", json!({"run": run.id}))?;
    let call = host.call()?;
    assert!(host.answer(&call, "now")?);
    assert_eq!(pending.answer()?.text()?, "now");

    let pending = agent.call_later(2, "host__a", &json!({}));
    host.call()?;
    assert_eq!(host.ask("run/detach", json!({"run": run.id}))?, json!({"rejectedCalls": 1}));
    host.told("call/cancelled")?;
    pending.answer()?.error()?;
    assert!(agent.call(3, "host__a", &json!({}))?.error()?.contains("no active live run"));
    host.ask("run/attach", json!({"run": run.id}))?;
    let pending = agent.call_later(4, "host__a", &json!({}));
    let call = host.call()?;
    host.answer(&call, "again")?;
    assert_eq!(pending.answer()?.text()?, "again");
    Ok(())
}

#[test]
fn a_result_over_the_limit_is_saved_whole_and_previewed() -> Result<()> {
    let house = home()?;
    let saved = house.path().join("saved");
    let options = ["--max-response-chars", "5000", "--output-dir", &saved.display().to_string()];
    let mut host = Host::silent_with(house, &options)?;
    host.ask("initialize", json!({"protocolVersion": 1, "host": {"name": "h"}, "profile": "host"}))?;
    let (_, agent) = host.with_agent(&["log"])?;
    let long: String = (0..5000).flat_map(|n| ["line ".to_owned(), n.to_string(), "\n".to_owned()]).collect();
    let pending = agent.call_later(1, "host__log", &json!({}));
    let call = host.call()?;
    assert!(host.answer(&call, &long)?);
    let text = pending.answer()?.text()?;
    assert!(text.chars().count() <= 5000 && text.contains(&saved.display().to_string()), "{text}");
    let files = std::fs::read_dir(&saved)?.flatten().map(|entry| std::fs::read_to_string(entry.path()));
    assert!(files.flatten().any(|content| content.contains("line 4999")), "nothing was saved");
    Ok(())
}

#[test]
fn a_real_client_lists_and_calls() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["add"])?;
    let run = host.open(json!({}))?;
    let mut client = std::process::Command::new(env!("CARGO_BIN_EXE_toolway"));
    client.args(["call", "--url", &run.url, "host__add", "a=1"]).env("HOME", host.home());
    let running = client.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn()?;
    let call = host.call()?;
    assert_eq!(call["tool"], "add");
    host.answer(&call, "one and nothing")?;
    let output = running.wait_with_output()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains("one and nothing"), "{out} {err}");
    Ok(())
}

#[test]
fn lesson_02_a_thousand_calls_in_flight_are_all_taken_and_none_is_answered_busy() -> Result<()> {
    const CALLS: usize = 1000;
    let mut host = Host::start("host")?;
    let (run, agent) = host.with_agent(&["wait"])?;
    let pending: Vec<_> =
        (1..=CALLS as u64).map(|n| agent.call_later(n, "host__wait", &json!({"n": n}))).collect();
    let mut calls: Vec<Value> = Vec::new();
    while calls.len() < CALLS {
        let started = host.told("calls/started").with_context(|| format!("{} came", calls.len()))?;
        calls.extend(started["calls"].as_array().cloned().unwrap_or_default());
    }
    // All of them wait at once; each gets its own result, in another order than they came.
    for call in calls.iter().rev() {
        host.send("call/result", json!({"call": call["call"], "content": call["arguments"]["n"]}))?;
    }
    for (n, pending) in (1..).zip(pending) {
        let answer = pending.answer()?;
        assert_eq!((answer.status, answer.text()?), (200, format!("{n}")));
    }
    let facts = host.ask("run/facts", json!({"run": run.id}))?;
    assert_eq!(facts["called"], CALLS);
    let peak = peak_memory(host.client.pid()).unwrap_or(u64::MAX);
    assert!(peak < 64 << 20, "{peak} bytes");
    Ok(())
}
