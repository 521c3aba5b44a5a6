//! The life of an upstream: start, loss, restart, laziness, stop, and what becomes of messages meanwhile.

use std::time::{Duration, Instant};

use anyhow::Result;
use toolway_proxy::gateway::{ServerState, Stage, UpstreamEvent};
use toolway_testkit::Leaks;

use super::support::{DEADLINE, Watched, child, command, mark, outbound};

fn call(id: u32, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#
    )
}

#[tokio::test]
async fn it_starts_lists_and_answers_calls_with_the_bytes_of_the_server() -> Result<()> {
    let mark = mark();
    let script = r#"on tools/call/odd -> answer {"content":[ ] , "big":9007199254740993,"o":1.0}"#;
    let mut watched = Watched::start(child(script, &mark)?, &mark);
    assert_eq!(watched.state("starting").await?, ServerState::Starting);
    let up = watched.until(|event| if let UpstreamEvent::Up(up) = event { Some(up) } else { None }).await?;
    assert!(up.offers(&["tools"]) && !up.offers(&["completions"]));
    watched.lists().await?;
    watched.state("connected").await?;
    watched.send(&call(1, "odd"))?;
    let answer = watched.message().await?;
    assert!(answer.contains(r#"{"content":[ ] , "big":9007199254740993,"o":1.0}"#), "{answer}");
    watched.stop().await
}

#[tokio::test]
async fn calls_made_while_it_starts_wait_for_it() -> Result<()> {
    let mark = mark();
    let script = "on initialize -> delay 200ms\n    answer {\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"f\",\"version\":\"1\"}}\non tools/call/x -> text done";
    let mut watched = Watched::start(child(script, &mark)?, &mark);
    watched.send(&call(1, "x"))?;
    assert!(watched.message().await?.contains("done"));
    watched.stop().await
}

#[tokio::test]
async fn a_lazy_server_starts_with_its_first_call() -> Result<()> {
    let mark = mark();
    let mut config = child("on tools/call/x -> text done", &mark)?;
    config.lazy = true;
    let mut watched = Watched::start(config, &mark);
    watched.state("starting").await?;
    tokio::task::yield_now().await;
    assert!(Leaks::new(&mark).processes().is_empty(), "nothing was started");
    watched.send(&call(1, "x"))?;
    assert!(watched.message().await?.contains("done"));
    watched.stop().await
}

#[tokio::test]
async fn a_crash_is_told_with_its_last_words_and_the_server_comes_back() -> Result<()> {
    let mark = mark();
    let script = r"on tools/call/die -> stderr panic: hunter2-token\n
    exit 7
on tools/call/x -> text back";
    let mut watched = Watched::start(child(script, &mark)?, &mark);
    watched.state("connected").await?;
    watched.send(&call(1, "die"))?;
    let down = |event| if let UpstreamEvent::Down { reason } = event { Some(reason) } else { None };
    let reason = watched.until(down).await?;
    assert_eq!(reason, "the server exited with code 7; its last words: panic: [redacted]");
    let ServerState::Failed { stage, .. } = watched.state("failed").await? else { unreachable!() };
    assert_eq!(stage, Stage::Run);
    watched.state("connected").await?;
    watched.send(&call(2, "x"))?;
    assert!(watched.message().await?.contains("back"));
    watched.stop().await
}

#[tokio::test]
async fn a_server_that_cannot_start_fails_what_waits_for_it() -> Result<()> {
    let mut watched = Watched::start(command("no-such-binary-xyz", &[]), &mark());
    watched.send(&call(1, "x"))?;
    let ServerState::Failed { stage, reason, hint } = watched.state("failed").await? else { unreachable!() };
    assert_eq!(stage, Stage::Resolve);
    assert!(reason.starts_with("command not found: no-such-binary-xyz; searched: /usr") && hint.is_some());
    let (ids, failure) =
        watched
            .until(|event| {
                if let UpstreamEvent::Failed { ids, failure } = event { Some((ids, failure)) } else { None }
            })
            .await?;
    assert_eq!(ids.len(), 1);
    assert!(
        failure.message.starts_with("the server fake is not available: command not found"),
        "{failure:?}"
    );
    watched.stop().await
}

#[tokio::test(start_paused = true)]
async fn starts_that_never_last_end_with_a_note_until_somebody_needs_it() -> Result<()> {
    let mut watched = Watched::start(command("no-such-binary-xyz", &[]), &mark());
    let given_up = |event| match event {
        UpstreamEvent::State(ServerState::Failed { reason, .. }) if reason.contains("given up") => {
            Some(reason)
        }
        _ => None,
    };
    let begun = tokio::time::Instant::now();
    // The waiting for the event must not be what the paused clock goes on for.
    let reason = loop {
        let (_, event) = watched.events.recv().await.expect("an event");
        if let Some(reason) = given_up(event) {
            break reason;
        }
    };
    assert!(reason.ends_with("given up after 10 starts, tried again at its next call"), "{reason}");
    assert!(begun.elapsed() > Duration::from_mins(2), "{:?}", begun.elapsed());
    watched.upstream.wake();
    let (_, again) = watched.events.recv().await.expect("an event");
    assert!(matches!(again, UpstreamEvent::State(ServerState::Failed { .. })));
    watched.upstream.stop();
    Ok(())
}

#[tokio::test]
async fn t16_one_good_one_absent_one_mute_one_crashing_one_late() -> Result<()> {
    let mark = mark();
    let mute = |startup| -> Result<_> {
        let mut config = child("set defaults off", &mark)?;
        config.timeouts.startup = startup;
        Ok(config)
    };
    let begun = Instant::now();
    let mut ok = Watched::start(child("", &mark)?, &mark);
    let mut gone = Watched::start(command("no-such-binary-xyz", &[]), &mark);
    let mut quiet = Watched::start(mute(Duration::from_secs(2))?, &mark);
    let mut crash = Watched::start(
        command("/bin/sh", &["-c", "for i in 1 2 3; do echo line $i >&2; done; exit 7"]),
        &mark,
    );
    let late = "on initialize -> delay 2500ms\n    answer {\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"f\",\"version\":\"1\"}}";
    let mut late = Watched::start(child(late, &mark)?, &mark);
    ok.lists().await?;
    assert!(begun.elapsed() < Duration::from_secs(2), "not held up by the others: {:?}", begun.elapsed());
    assert!(gone.state("failed").await?.to_string().contains("searched: "));
    let said = crash.state("failed").await?.to_string();
    assert!(said.contains("exited with code 7") && said.ends_with("line 1 | line 2 | line 3"), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(2), "at once: {:?}", begun.elapsed());
    assert_eq!(
        quiet.state("failed").await?.to_string(),
        "failed (initialize): no answer to initialize in 2 s"
    );
    late.lists().await?;
    for watched in [&ok, &gone, &quiet, &crash, &late] {
        watched.upstream.stop();
    }
    for watched in [ok, gone, quiet, crash, late] {
        watched.ended().await?;
    }
    Leaks::new(&mark).check(DEADLINE)
}

#[tokio::test]
async fn a_stop_ends_the_whole_tree_within_its_bounds() -> Result<()> {
    let mark = mark();
    let script = "set eof ignore\nset term ignore\non start -> spawn stubborn";
    let mut watched = Watched::start(child(script, &mark)?, &mark);
    watched.state("connected").await?;
    assert!(Leaks::new(&mark).processes().len() >= 2);
    let begun = Instant::now();
    watched.stop().await?;
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn a_stop_while_it_starts_leaves_nothing() -> Result<()> {
    let mark = mark();
    let watched = Watched::start(child("set defaults off", &mark)?, &mark);
    let end = Instant::now() + DEADLINE;
    while Leaks::new(&mark).processes().is_empty() {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    watched.stop().await
}

#[tokio::test]
async fn a_server_that_does_not_read_makes_the_hub_wait_and_loses_nothing() -> Result<()> {
    let mark = mark();
    let script = "on tools/call/slow -> wait go\n    text x\non tools/call/x -> text {x*20}";
    let mut watched = Watched::start(child(script, &mark)?, &mark);
    watched.state("connected").await?;
    let filler = "y".repeat(40_000);
    let text = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","arguments":{{"f":"{filler}"}}}}}}"#
        )
    };
    let (mut sent, mut answered, mut refused, mut room) = (0_u32, 0_u32, 0_u32, 0_u32);
    while answered < 2000 {
        while sent < 2000 {
            match watched.upstream.try_send(outbound(&text(sent + 1))?) {
                Ok(()) => sent += 1,
                Err(_full) => {
                    refused += 1;
                    break;
                }
            }
        }
        match watched.event().await? {
            UpstreamEvent::Message(_) => answered += 1,
            UpstreamEvent::Failed { failure, .. } => anyhow::bail!("{failure:?}"),
            UpstreamEvent::Room => room += 1,
            _ => {}
        }
    }
    assert!(refused > 0 && room > 0, "the queue is bounded, and says when there is room: {refused} {room}");
    watched.stop().await
}

#[tokio::test]
async fn pings_are_answered_here_and_other_questions_go_to_the_hub() -> Result<()> {
    let mark = mark();
    let script = r#"on tools/call/ask
    send {"jsonrpc":"2.0","id":"p1","method":"ping"}
    send {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"sure?"}}
    wait response:"p1"
    text asked"#;
    let mut watched = Watched::start(child(script, &mark)?, &mark);
    watched.state("connected").await?;
    watched.send(&call(1, "ask"))?;
    assert!(watched.message().await?.contains("elicitation/create"));
    assert!(watched.message().await?.contains("asked"));
    watched.stop().await
}

#[tokio::test]
async fn a_message_larger_than_memory_comes_as_a_file() -> Result<()> {
    let mark = mark();
    let mut watched = Watched::start(child("on tools/call/big -> text {x*6000000}", &mark)?, &mark);
    watched.state("connected").await?;
    watched.send(&call(1, "big"))?;
    let content = watched
        .until(|event| if let UpstreamEvent::Message(message) = event { Some(message.content) } else { None })
        .await?;
    assert!(content.len() > 6_000_000 && content.bytes().is_none());
    watched.stop().await
}
