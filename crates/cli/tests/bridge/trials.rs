//! Trials through the real binary, with bounds ten times wider than those of the demands.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use crate::agent::Agent;
use crate::host::{Host, home};

#[test]
fn trial_21_deadline_abort_late_answer_and_concurrency() -> Result<()> {
    let house = home()?;
    let settings = json!({"tools": {"bridge": {"callTimeoutMs": 1000}}});
    std::fs::write(house.path().join(".pi/agent/cursor-sdk.json"), settings.to_string())?;
    let mut host = Host::start_with(house, "pi", json!({}))?;
    let (run, agent) = host.with_agent(&["slow", "ask", "fast", "prog"])?;
    let slow = agent.call_later(1, "pi__slow", &json!({}));
    let slow_call = host.call()?;
    let fast = agent.call_later(2, "pi__fast", &json!({}));
    let fast_call = host.call()?;
    let asked = agent.call_later(3, "pi__ask", &json!({}));
    let ask_call = host.call()?;
    let prog = agent.call_later(4, "pi__prog", &json!({}));
    let prog_call = host.call()?;
    host.ask("call/progress", json!({"call": prog_call["call"], "progress": 1}))?;
    assert!(host.answer(&fast_call, "fast")?);
    assert!(host.answer(&ask_call, "yes")?);
    assert_eq!((fast.answer()?.text()?, asked.answer()?.text()?), ("fast".to_owned(), "yes".to_owned()));
    // Progress extends nothing: both end by the deadline, which the error names, and each is told to stop once.
    for (pending, call) in [(slow, &slow_call), (prog, &prog_call)] {
        let answer = pending.answer()?;
        let error = answer.error()?;
        assert!(error.contains("1000 ms"), "{error}");
        assert!(answer.after >= Duration::from_millis(900) && answer.after < Duration::from_secs(10));
        let cancelled = host.told("call/cancelled")?;
        assert!(cancelled["call"] == slow_call["call"] || cancelled["call"] == prog_call["call"]);
        assert!(!host.answer(call, "too late")?);
    }
    assert_eq!(host.ask("call/admit", json!({"call": slow_call["call"]}))?["admitted"], false);

    // Nothing leaks into the next run.
    host.ask("run/close", json!({"run": run.id}))?;
    let next = host.open(json!({}))?;
    let agent = Agent::connect(&next.url)?;
    let pending = agent.call_later(1, "pi__fast", &json!({}));
    let call = host.call()?;
    assert!(!host.answer(&slow_call, "much too late")?);
    assert!(host.answer(&call, "mine")?);
    assert_eq!(pending.answer()?.text()?, "mine");
    Ok(())
}

#[test]
fn trial_21_a_deadline_above_the_clients_is_lowered_with_a_warning() -> Result<()> {
    let mut host = Host::start("pi")?;
    host.declare(&["a"])?;
    let settings = json!({"tools": {"bridge": {"callTimeoutMs": 120_000}, "mcp": {"callTimeoutMs": 60_000}}});
    let shown = host.ask("settings/declare", json!({"settings": settings}))?;
    assert_eq!(shown["deadlines"]["bridgeMs"], 60_000);
    let run = host.open(json!({}))?;
    assert_eq!(run.opened["deadlines"]["bridgeMs"], 60_000);
    assert_eq!(run.opened["warnings"].as_array().map(Vec::len), Some(1), "{}", run.opened);
    Ok(())
}

#[test]
fn trial_22_names_lists_and_manifest_agree_and_each_name_reaches_its_tool() -> Result<()> {
    let long = |last: char| format!("{}{last}", "n".repeat(70));
    let (a, b) = (long('a'), long('b'));
    let names = ["read.file", "read_file", "read file", &a, &b, "数据库", "UPPER", "x__y"];
    let mut host = Host::start("pi")?;
    let (run, agent) = host.with_agent(&names)?;
    let listed = agent.tools()?;
    assert_eq!(listed.len(), 8, "{listed:?}");
    for name in &listed {
        assert!(
            name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)),
            "{name}"
        );
    }
    let manifest = host.ask("manifest/read", json!({"run": run.id}))?;
    assert_eq!(manifest["names"], json!(listed));
    for (id, name) in (1..).zip(&listed) {
        let pending = agent.call_later(id, name, &json!({}));
        let call = host.call()?;
        let exposed = run.opened["exposed"].as_array().cloned().unwrap_or_default();
        let pair = exposed.iter().find(|pair| pair["name"] == *name).cloned().unwrap_or_default();
        assert_eq!(call["tool"], pair["tool"]);
        host.answer(&call, "ok")?;
        pending.answer()?;
    }
    // Another order, and another process: the same names.
    let mut again = Host::start("pi")?;
    let mut turned = names;
    turned.reverse();
    assert_eq!(again.with_agent(&turned)?.1.tools()?, listed);
    // A name without its prefix is answered with the one to use.
    let answer = agent.call(99, "UPPER", &json!({}))?;
    assert!(answer.text()?.contains("pi__UPPER"), "{answer:?}");
    Ok(())
}
