//! How a relay of a stdio server ends: by its client, by signals, with calls in flight, and with servers that will not.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use toolway_testkit::{FakeTransport, Rig, SOON, Session, open_files};

use crate::answer::Answer;
use crate::{TOOLWAY, call, goes_on, ready, together};

const STDIO: FakeTransport = FakeTransport::Stdio;

/// Three calls that the upstream has received and not answered.
fn in_flight(session: &mut Session) -> Result<()> {
    for id in ["1", "2", "3"] {
        session.client.call(id, "sleep", "{}")?;
    }
    for _ in 0..3 {
        session.upstream()?.wait_for("\"sleep\"", SOON)?;
    }
    Ok(())
}

#[test]
fn stdin_closed_with_calls_in_flight_waits_for_their_answers() -> Result<()> {
    let mut session = ready(STDIO, "set eof drain\non tools/call/sleep\n    wait go\n    text slept")?;
    in_flight(&mut session)?;
    session.client.close_stdin();
    // It ends when it has answered, maybe before it could say that this is done.
    session.upstream()?.tell("arm go")?;
    for id in ["1", "2", "3"] {
        ensure!(Answer::of(&session.client.answer(id)?)?.text()? == "slept", "{id}");
    }
    let (status, _) = session.ended()?;
    ensure!(status.code() == Some(0), "{status}");
    Ok(())
}

#[test]
fn stdin_closed_with_calls_that_never_end_answers_them_after_the_drain() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--drain", "1s"]);
    let mut session = rig.script("set eof ignore\non tools/call/sleep -> never").start(STDIO)?;
    session.client.handshake()?;
    in_flight(&mut session)?;
    session.client.close_stdin();
    for id in ["1", "2", "3"] {
        Answer::of(&session.client.answer(id)?)?.error()?;
    }
    session.ended().map(drop)
}

#[test]
fn stdin_closed_ends_stubborn_servers() -> Result<()> {
    let scripts = ["set eof ignore\nset term ignore", "set eof ignore"];
    let cases = scripts.map(|script| [(script, false), (script, true)]);
    together(cases.as_flattened(), |(script, shell)| {
        let rig = Rig::new(TOOLWAY)?.script(script);
        let rig = if *shell { rig.behind_shell() } else { rig };
        let mut session = rig.start(STDIO)?;
        session.client.handshake()?;
        session.upstream()?;
        session.client.close_stdin();
        let (status, _) = session.ended()?;
        ensure!(status.code() == Some(0), "{status}");
        Ok(())
    })
}

/// How a process that the server starts stays.
const STAYING: [&str; 6] = [
    "spawn",
    "spawn stubborn",
    "spawn setsid stubborn",
    "spawn setsid stubborn orphan",
    "spawn orphan keep-stdout",
    "spawn setsid keep-stdout",
];

#[test]
fn descendants_in_sessions_of_their_own_end_too() -> Result<()> {
    let cases = STAYING.map(|how| [None, Some(Signal::TERM), Some(Signal::KILL)].map(|signal| (how, signal)));
    together(cases.as_flattened(), |(how, signal)| {
        let script = format!("on tools/call/fork\n    {how}\n    text forked");
        let mut session = ready(STDIO, &script)?;
        call(&mut session, "1", "fork")?;
        let mut stays = session.spawned()?;
        match signal {
            None => session.client.close_stdin(),
            Some(signal) => session.client.signal(*signal)?,
        }
        stays.wait_gone(SOON)?;
        session.client.close_stdin();
        session.ended().map(drop)
    })
}

#[test]
fn a_descendant_that_holds_stdout_does_not_hide_the_servers_end() -> Result<()> {
    let script = "on tools/call/fork -> spawn setsid keep-stdout\non tools/call/crash -> exit 5";
    let mut session = ready(STDIO, script)?;
    session.client.call("1", "fork", "{}")?;
    session.spawned()?;
    let answer = call(&mut session, "2", "crash")?;
    ensure!(answer.error()?.1.contains('5'), "{}", answer.line);
    Answer::of(&session.client.answer("1")?)?.error()?;
    session.ended().map(drop)
}

#[test]
fn signals_answer_what_is_in_flight_and_end_everything() -> Result<()> {
    let scripts = [
        "set eof ignore\non tools/call/sleep -> never",
        "on tools/call/sleep -> never",
        "set eof ignore\nset term ignore\non tools/call/sleep -> never",
    ];
    let cases = scripts.map(|script| [(script, Signal::TERM, 143), (script, Signal::INT, 130)]);
    together(cases.as_flattened(), |(script, signal, code)| {
        let mut session = ready(STDIO, script)?;
        in_flight(&mut session)?;
        session.client.signal(*signal)?;
        for id in ["1", "2", "3"] {
            Answer::of(&session.client.answer(id)?)?.error()?;
        }
        let (status, rest) = session.ended()?;
        ensure!(status.code() == Some(*code) && rest.is_empty(), "{status} {rest:?}");
        Ok(())
    })
}

#[test]
fn a_killed_relay_leaves_no_server() -> Result<()> {
    together(&["", "set eof ignore", "set eof ignore\nset term ignore"], |script| {
        let mut session = ready(STDIO, script)?;
        session.upstream()?;
        session.client.signal(Signal::KILL)?;
        session.ended().map(drop)
    })
}

#[test]
fn a_client_that_vanishes_ends_the_relay() -> Result<()> {
    // Its ends of both pipes close at once, while the upstream goes on talking.
    let mut session = ready(
        STDIO,
        "set eof ignore\non tools/call/talk\n    send {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"t\":\"{x*200000}\"}}\n    never",
    )?;
    session.client.stop_reading();
    session.client.call("1", "talk", "{}")?;
    session.upstream()?.wait_for("\"talk\"", SOON)?;
    session.client.vanish();
    session
        .upstream()?
        .tell("send {\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":{\"t\":\"{x*200000}\"}}")?;
    session.client.wait_exit(SOON)?;
    session.check_end()
}

#[test]
fn a_server_that_closes_stdout_but_stays_fails_its_calls() -> Result<()> {
    let mut session = ready(STDIO, "set eof ignore\non tools/call/close -> close")?;
    call(&mut session, "1", "close")?.error()?;
    session.client.close_stdin();
    session.ended().map(drop)
}

#[test]
fn a_server_that_cannot_be_started_is_the_first_answer() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?;
    let mut command = rig.command(["stdio", "--", "no-such-binary-xyz"]);
    let mut client = toolway_testkit::Client::start(&mut command)?;
    client.send(toolway_testkit::INITIALIZE)?;
    let answer = Answer::of(&client.answer("0")?)?;
    ensure!(answer.error()?.1.contains("no-such-binary-xyz"), "{}", answer.line);
    ensure!(client.wait_exit(SOON)?.code() == Some(4), "{:?}", client.wait_exit(SOON)?);
    client.capture.check_complete()?;
    rig.check_leftovers()
}

#[test]
fn a_signal_ends_the_relay_of_a_server_that_cannot_be_started() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?;
    let mut command = rig.command(["stdio", "--log", "error", "--", "no-such-binary-xyz"]);
    let mut client = toolway_testkit::Client::start(&mut command)?;
    // An answer to what is no request shows that it runs, signals and all.
    client.send_uncaptured(b"nonsense\n")?;
    client.next_line(SOON)?;
    client.signal(Signal::TERM)?;
    ensure!(client.wait_exit(SOON)?.code() == Some(143), "{:?}", client.wait_exit(SOON)?);
    rig.check_leftovers()
}

#[test]
fn a_server_that_never_reads_does_not_hide_the_clients_end() -> Result<()> {
    for transport in [STDIO, FakeTransport::Http] {
        let rig = Rig::new(TOOLWAY)?.options(&["--drain", "1s"]);
        let script = match transport {
            STDIO => "set term ignore\non start -> wait go",
            _ => "on tools/call/echo -> never",
        };
        let mut session = rig.script(script).start(transport)?;
        session.client.send(toolway_testkit::INITIALIZE)?;
        // More than the relay takes in, and little enough to be in the pipes: the client has nothing left to write.
        let (calls, text) =
            if transport == STDIO { (15, "y".repeat(10_000)) } else { (1_300, "y".repeat(10)) };
        for n in 1..=calls {
            session.client.call(&n.to_string(), "echo", &format!(r#"{{"text":"{text}"}}"#))?;
        }
        session.client.vanish();
        session.client.wait_exit(SOON * 3)?;
        session.check_end()?;
    }
    Ok(())
}

#[test]
fn a_server_that_exits_at_once_is_the_first_answer() -> Result<()> {
    let mut session =
        Rig::new(TOOLWAY)?.script("on start\n    stderr Error: no token given\n    exit 7").start(STDIO)?;
    session.client.send(toolway_testkit::INITIALIZE)?;
    let answer = Answer::of(&session.client.answer("0")?)?;
    ensure!(answer.line.contains("no token given") && answer.line.contains('7'), "{}", answer.line);
    let (status, _) = session.ended()?;
    ensure!(status.code() == Some(1) || status.code() == Some(4), "{status}");
    Ok(())
}

#[test]
fn many_calls_leave_no_file_open() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/big -> text {x*20000}")?;
    call(&mut session, "\"first\"", "big")?;
    let before = open_files(session.client.pid());
    for n in 0..50 {
        call(&mut session, &n.to_string(), "big")?;
    }
    // The clean-up of saved results looks into their directory now and then: it is open for a moment.
    let mut after = Vec::new();
    for _ in 0..50 {
        goes_on(&mut session)?;
        after = open_files(session.client.pid());
        if after.len() <= before.len() {
            break;
        }
    }
    ensure!(after.len() <= before.len(), "{before:?} became {after:?}");
    session.finish().map(drop)
}

#[test]
fn a_client_that_only_closes_leaves_nothing() -> Result<()> {
    for transport in [STDIO, FakeTransport::Http, FakeTransport::Sse] {
        let session = Rig::new(TOOLWAY)?.start(transport)?;
        ensure!(session.finish()?.is_empty(), "{transport:?}: something was said");
    }
    Ok(())
}

#[test]
fn half_a_line_at_the_end_is_no_message() -> Result<()> {
    let mut session = ready(STDIO, "")?;
    session.client.capture.sent(b"half");
    session.client.send_uncaptured(br#"{"jsonrpc":"2.0","id":5,"meth"#)?;
    session.client.close_stdin();
    let (status, rest) = session.ended()?;
    ensure!(status.code() == Some(0), "{status}");
    ensure!(rest.iter().all(|line| line.contains("-32700")), "{rest:?}");
    Ok(())
}

#[test]
fn the_end_of_the_process_in_between_ends_all() -> Result<()> {
    // Whatever stands between the relay and the server may be killed as well, by a machine that is out of memory.
    together(&["", "set eof ignore", "set eof ignore\nset term ignore"], |script| {
        let mut session = ready(STDIO, &format!("{script}\non tools/call/never -> never"))?;
        session.client.call("1", "never", "{}")?;
        let server = session.upstream()?.pid();
        session.upstream()?.wait_for("\"never\"", SOON)?;
        let between = toolway_testkit::tree(session.client.pid());
        let between = between.into_iter().find(|pid| *pid != session.client.pid() && *pid != server);
        if let Some(pid) =
            between.and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw)
        {
            rustix::process::kill_process(pid, Signal::KILL)?;
            Answer::of(&session.client.answer("1")?)?.error()?;
        }
        session.client.close_stdin();
        session.ended().map(drop)
    })
}
