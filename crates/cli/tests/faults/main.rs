//! The fault runs of the measuring harness and the bad input of both peers, against the real binary: every one ends in
//! a clear error for that request, is passed on, or is ignored and counted; never a hang, a crash, or a leftover.
#![cfg(target_os = "linux")]

#[path = "../support/answer.rs"]
mod answer;
mod bad_input;
mod ends;
mod http;
mod memory;
mod sse;
mod stdio;

use anyhow::{Result, ensure};
use toolway_testkit::{FakeTransport, Rig, Session};

use answer::Answer;

const TOOLWAY: &str = env!("CARGO_BIN_EXE_toolway");

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
