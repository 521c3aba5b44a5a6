//! Memory does not grow with a message, nor with what a peer sends or does not read.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, Rig, SOON, Session, peak_memory, tree};

use crate::answer::Answer;
use crate::{TOOLWAY, goes_on, ready};

const LONG: Duration = Duration::from_mins(4);
/// The bound for a release build is 32 MiB; an unoptimised build is allowed twice that.
const BOUND: u64 = 64 << 20;

fn check_peak(session: &Session) -> Result<()> {
    let own = std::fs::read_link(format!("/proc/{}/exe", session.client.pid()))?;
    for pid in tree(session.client.pid()) {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let peak = peak_memory(pid).unwrap_or(0);
        ensure!(exe != own || peak < BOUND, "process {pid} took {} MiB", peak >> 20);
    }
    Ok(())
}

#[test]
fn a_result_of_100_million_characters_is_saved_whole() -> Result<()> {
    for transport in [FakeTransport::Stdio, FakeTransport::Http, FakeTransport::Sse] {
        for reply in ["json", "sse"] {
            if reply == "sse" && transport != FakeTransport::Http {
                continue;
            }
            let mut session = ready(
                transport,
                &format!("set reply {reply}\non tools/call/blob -> text {{0123456789*10000000}}"),
            )?;
            session.client.call("1", "blob", "{}")?;
            let answer = Answer::of(&session.client.answer_within("1", LONG)?)?;
            let saved = answer.saved()?;
            let size = std::fs::metadata(&saved.path)?.len();
            ensure!(size == saved.chars && size > 100_000_000, "{size} bytes of {}", saved.chars);
            goes_on(&mut session)?;
            check_peak(&session).with_context(|| format!("{transport:?} {reply}"))?;
            std::fs::remove_dir_all(session.rig().saved())?;
            session.finish()?;
        }
    }
    Ok(())
}

#[test]
fn a_gibibyte_without_a_line_ending_is_not_kept() -> Result<()> {
    let floods = [
        ("letters", "raw {x*1073741824}"),
        ("brackets", "raw {[*100000000}"),
        ("white space", "raw { *100000000}"),
        ("foreign JSON", "raw {\"a\":\"{x*100000000}"),
    ];
    for (what, flood) in floods {
        let mut session = ready(
            FakeTransport::Stdio,
            &format!("on tools/call/flood\n    {flood}\n    raw \\n\n    text after"),
        )?;
        session.client.call("1", "flood", "{}")?;
        let answer = Answer::of(&session.client.answer_within("1", LONG).context(what)?)?;
        ensure!(answer.text()? == "after", "{what}: {}", answer.line);
        check_peak(&session).context(what)?;
        session.finish().context(what)?;
    }
    Ok(())
}

/// An error, or a result that says that it is one.
fn failed(answer: &Answer) -> Result<()> {
    let told = answer.error().is_ok() || answer.result()?["isError"] == true;
    ensure!(told, "no failure: {:.600}", answer.line);
    Ok(())
}

#[test]
fn a_message_over_the_bound_fails_alone() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--max-message-bytes", "1MiB"]);
    let mut session = rig.script("on tools/call/big -> text {x*5000000}").start(FakeTransport::Stdio)?;
    session.client.handshake()?;
    session.client.call("1", "big", "{}")?;
    failed(&Answer::of(&session.client.answer("1")?)?)?;
    goes_on(&mut session)?;
    session.client.call("2", "echo", &format!(r#"{{"text":"{}"}}"#, "y".repeat(3_000_000)))?;
    failed(&Answer::of(&session.client.answer("2")?)?)?;
    goes_on(&mut session)?;
    check_peak(&session)?;
    session.finish().map(drop)
}

#[test]
fn a_client_that_does_not_read_holds_the_upstream_back() -> Result<()> {
    let note = r#"send {"jsonrpc":"2.0","method":"n","params":{"t":"{x*9000}"}}"#;
    let script = format!("on tools/call/many\n{}    text many", format!("    {note}\n").repeat(400));
    for transport in [FakeTransport::Stdio, FakeTransport::Http] {
        let script = match transport {
            FakeTransport::Stdio => script.clone(),
            _ => script.replace("on tools/call/many\n", "on tools/call/many\n    stream\n"),
        };
        let mut session = ready(transport, &script)?;
        session.client.stop_reading();
        for n in 1..=5 {
            session.client.call(&n.to_string(), "many", "{}")?;
        }
        // Nothing tells that a relay is waiting but that it uses no time: the check is made after all was sent.
        session.upstream()?.wait_for("\"id\":1,", SOON)?;
        session.client.settle(Duration::from_secs(10))?;
        check_peak(&session).with_context(|| format!("{transport:?}"))?;
        session.client.read_on();
        for n in 1..=5 {
            session.client.answer_within(&n.to_string(), LONG).with_context(|| format!("{transport:?}"))?;
        }
        ensure!(session.finish()?.len() == 2_000, "notifications were lost");
    }
    Ok(())
}

#[test]
fn a_client_that_never_reads_does_not_keep_the_relay_from_ending() -> Result<()> {
    let script = "on tools/call/big -> answer {\"content\":[],\"x\":[{(\"{x*5000}\",)*10}0]}";
    for transport in [FakeTransport::Stdio, FakeTransport::Http] {
        let rig = Rig::new(TOOLWAY)?.script(script).deaf().instead("--max-response-chars", "100000");
        let mut session = rig.start(transport)?;
        session.client.send(toolway_testkit::INITIALIZE)?;
        session.client.send(toolway_testkit::INITIALIZED)?;
        for n in 1..=20 {
            session.client.call(&n.to_string(), "big", "{}")?;
        }
        session.upstream()?.wait_for("\"id\":1,", SOON)?;
        session.client.signal(rustix::process::Signal::TERM)?;
        session.client.wait_exit(Duration::from_secs(30)).with_context(|| format!("{transport:?}"))?;
        session.check_end()?;
    }
    Ok(())
}

#[test]
fn an_upstream_that_does_not_read_holds_the_client_back() -> Result<()> {
    let mut session = Rig::new(TOOLWAY)?.script("on start -> wait go").start(FakeTransport::Stdio)?;
    session.client.send(toolway_testkit::INITIALIZE)?;
    let text = "y".repeat(100_000);
    for n in 1..=300 {
        session.client.call(&n.to_string(), "echo", &format!(r#"{{"text":"{text}"}}"#))?;
    }
    session.client.settle(Duration::from_secs(10))?;
    check_peak(&session)?;
    session.upstream()?.act("arm go")?;
    for n in 1..=300 {
        session.client.answer(&n.to_string())?;
    }
    session.client.answer("0")?;
    session.finish().map(drop)
}
