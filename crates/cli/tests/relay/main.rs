//! The real binary between a scripted upstream and a client: trials and faults. Every test ends with a judgement of
//! all that was said, and a check that nothing is left.
#![cfg(target_os = "linux")]

mod answer;
mod edges;
mod eras;
mod faults;
mod options;
mod trials;

use anyhow::{Context as _, Result, bail, ensure};
use toolway_testkit::{FakeTransport, Rig, Session};

use answer::Answer;

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

/// A relay before a stdio server with this script.
fn stdio(script: &str) -> Result<Session> {
    Rig::new(TOOLWAY)?.script(script).start(FakeTransport::Stdio)
}

/// A relay before a server with this script, after the handshake.
fn ready(transport: FakeTransport, script: &str) -> Result<Session> {
    let mut session = Rig::new(TOOLWAY)?.script(script).start(transport)?;
    session.client.handshake()?;
    Ok(session)
}

/// The answer to a call of this tool.
fn call(session: &mut Session, id: &str, tool: &str) -> Result<Answer> {
    session.client.call(id, tool, "{}")?;
    Answer::of(&session.client.answer(id)?)
}

/// The relay goes on: another call is answered.
fn goes_on(session: &mut Session) -> Result<()> {
    session.client.call("\"next\"", "echo", r#"{"text":"next"}"#)?;
    let answer = Answer::of(&session.client.answer("\"next\"")?)?;
    ensure!(answer.text()? == "next", "{}", answer.line);
    Ok(())
}

/// Runs the cases beside one another (most of their time is waiting); the first failure is the result.
fn together<C: Sync + std::fmt::Debug>(cases: &[C], run: impl Fn(&C) -> Result<()> + Sync) -> Result<()> {
    std::thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = cases.iter().map(|case| (case, scope.spawn(move || run(case)))).collect();
        for (case, thread) in running {
            match thread.join() {
                Ok(result) => result.with_context(|| format!("case {case:?}"))?,
                Err(_) => bail!("case {case:?} panicked"),
            }
        }
        Ok(())
    })
}
