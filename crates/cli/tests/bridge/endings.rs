//! How it ends, and that nothing is left.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use serde_json::json;
use toolway_testkit::listening;

use crate::agent::Agent;
use crate::host::{Host, home};

fn is_open(url: &str) -> Result<bool> {
    let rest = url.strip_prefix("http://").context("no http")?;
    Ok(TcpStream::connect(rest.split('/').next().unwrap_or_default()).is_ok())
}

#[test]
fn statement_29_a_signal_rejects_the_calls_tells_the_host_and_ends_the_process() -> Result<()> {
    for (signal, name, code) in
        [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143), (Signal::HUP, "SIGHUP", 129)]
    {
        let mut host = Host::start("pi")?;
        let (run, agent) = host.with_agent(&["slow"])?;
        let pending = agent.call_later(1, "pi__slow", &json!({}));
        let call = host.call()?;
        let begun = Instant::now();
        host.client.signal(signal)?;
        let cancelled = host.told("call/cancelled")?;
        assert_eq!(cancelled["call"], call["call"]);
        let error = pending.answer()?.error()?;
        let closing = host.told("bridge/closing")?;
        for reason in [&json!(error), &cancelled["reason"], &closing["reason"]] {
            assert!(reason.as_str().is_some_and(|reason| reason.contains(name)), "{reason}");
        }
        assert_eq!(host.wait_exit()?.code(), Some(code));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert!(!is_open(&run.url)?);
    }
    Ok(())
}

#[test]
fn a_host_that_dies_leaves_no_call_no_port_and_no_process() -> Result<()> {
    let mut host = Host::start("host")?;
    let (run, agent) = host.with_agent(&["slow"])?;
    let pending = agent.call_later(1, "host__slow", &json!({}));
    host.call()?;
    // Both pipes break in the middle of it all.
    host.client.vanish();
    pending.answer()?.error()?;
    let code = host.wait_exit()?.code();
    assert!(matches!(code, Some(0 | 1)), "{code:?}");
    assert!(!is_open(&run.url)?);
    Ok(())
}

#[test]
fn the_end_of_stdin_is_the_end_and_the_last_words_are_read() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["slow"])?;
    let pending = agent.call_later(1, "host__slow", &json!({}));
    let call = host.call()?;
    host.client.close_stdin();
    assert_eq!(host.told("call/cancelled")?["call"], call["call"]);
    host.told("bridge/closing")?;
    pending.answer()?.error()?;
    assert_eq!(host.wait_exit()?.code(), Some(0));
    Ok(())
}

#[test]
fn a_host_that_stops_reading_keeps_no_signal_waiting() -> Result<()> {
    let mut host = Host::start("host")?;
    let (_, agent) = host.with_agent(&["slow"])?;
    host.client.stop_reading();
    let large = json!({"text": "x".repeat(1 << 20)});
    let pending: Vec<_> = (1..=4).map(|n| agent.call_later(n, "host__slow", &large)).collect();
    // One more line is read: from here on at least one call is open, and the others fill the pipe.
    host.call()?;
    host.client.settle(Duration::from_secs(20))?;
    host.client.signal(Signal::TERM)?;
    // One that was still on its way finds the run over, or the port closed.
    let answers = pending.into_iter().filter_map(|pending| pending.answer().ok());
    assert_ne!(answers.filter(|answer| answer.error().is_ok()).count(), 0);
    assert_eq!(host.wait_exit()?.code(), Some(143));
    Ok(())
}

#[test]
fn the_port_closes_with_the_last_run() -> Result<()> {
    let mut host = Host::start("host")?;
    host.declare(&["a"])?;
    assert!(listening(host.client.pid()).is_empty(), "a port without a run");
    let (first, second) = (host.open(json!({}))?, host.open(json!({}))?);
    assert_ne!(first.url, second.url);
    host.ask("run/close", json!({"run": first.id}))?;
    assert_eq!(Agent::new(&first.url).call(1, "host__a", &json!({}))?.status, 410);
    assert!(is_open(&second.url)?);
    host.ask("run/close", json!({"run": second.id}))?;
    assert!(!is_open(&second.url)?);
    assert!(listening(host.client.pid()).is_empty());
    Ok(())
}

#[test]
fn the_address_is_said_in_one_answer_and_nowhere_else() -> Result<()> {
    let house = home()?;
    let settings = json!({"tools": {"bridge": {"debug": {"stderr": true, "file": "diagnostics.log"}}}});
    std::fs::write(house.path().join(".config/toolway/bridge.json"), settings.to_string())?;
    let mut host = Host::start_with(house, "host", json!({"diagnostics": true}))?;
    let (run, agent) = host.with_agent(&["a"])?;
    let token = run.url.rsplit('/').nth(1).context("no token")?.to_owned();
    let pending = agent.call_later(1, "host__a", &json!({"secret": "sk-argument"}));
    let call = host.call()?;
    host.answer(&call, "sk-result")?;
    pending.answer()?;
    let report = host.ask("report/read", json!({"run": run.id}))?;
    assert_eq!(host.ask("selftest/run", json!({}))?["passed"], true);
    let commands = std::fs::read_to_string(format!("/proc/{}/cmdline", host.client.pid()))?;
    let log = std::fs::read_to_string(host.home().join("diagnostics.log"));
    let status = host.shut_down()?;
    assert_eq!(status.code(), Some(0));
    let told = host.client.kept().join("\n");
    let log = log.or_else(|_| std::fs::read_to_string(host.home().join("diagnostics.log")))?;
    let stderr = host.client.stderr();
    assert!(stderr.contains("[toolway:bridge] {\"event\":\"run_created\""), "{stderr}");
    assert!(log.contains("request_queued") && told.contains("\"method\":\"diagnostic\""), "{log} {told}");
    for place in [&report.to_string(), &commands, &log, &told, &stderr] {
        // The self-test has an address of its own.
        for secret in [&token, "/toolway-bridge/", "sk-argument", "sk-result"] {
            assert!(!place.contains(secret), "{place}");
        }
    }
    Ok(())
}

#[test]
fn logs_have_no_value_of_a_failed_notification_and_say_once_that_diagnostics_cannot_be_written() -> Result<()>
{
    let house = home()?;
    let settings = json!({"tools": {"bridge": {"debug": {"file": "no/such/folder/d.log"}}}});
    std::fs::write(house.path().join(".config/toolway/bridge.json"), settings.to_string())?;
    let mut host = Host::start_with(house, "host", json!({}))?;
    let (_, agent) = host.with_agent(&["a"])?;
    let pending = agent.call_later(1, "host__a", &json!({}));
    let call = host.call()?;
    for params in [
        json!({"call": call["call"], "content": "", "isError": "sk-value"}),
        json!({"call": "sk-value", "sk-value": 1}),
    ] {
        host.client
            .send(&json!({"jsonrpc": "2.0", "method": "call/result", "params": params}).to_string())?;
    }
    assert!(host.answer(&call, "done")?);
    pending.answer()?;
    host.shut_down()?;
    let stderr = host.client.stderr();
    assert!(stderr.contains("a notification of the host failed"), "{stderr}");
    assert!(!stderr.contains("sk-value"), "{stderr}");
    assert_eq!(
        stderr.matches("diagnostics cannot be written to no/such/folder/d.log").count(),
        1,
        "{stderr}"
    );
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_of_open_files_is_raised_within_what_is_allowed() -> Result<()> {
    for (soft, hard, raised) in [("256", "4000", "4000"), ("300", "900", "900"), ("700", "700", "700")] {
        let house = home()?;
        let bridge = crate::host::command(house.path(), &[]);
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", &format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" bridge")]);
        limited.arg(bridge.get_program()).env_clear().env("HOME", house.path());
        let mut client = toolway_testkit::Client::start(&mut limited)?;
        client.send(
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"host":{"name":"h"}}}"#,
        )?;
        client.answer("1")?;
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", client.pid()))?;
        let line = limits.lines().find(|line| line.starts_with("Max open files")).context("no such limit")?;
        assert_eq!(line.split_whitespace().nth(3), Some(raised), "{line}");
    }
    Ok(())
}
