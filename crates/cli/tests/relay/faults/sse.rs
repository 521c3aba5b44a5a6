//! The faults of a legacy HTTP+SSE upstream.

use anyhow::{Result, ensure};
use toolway_testkit::{Client, FakeTransport, INITIALIZE, Rig, SOON};

use crate::answer::Answer;
use crate::{TOOLWAY, call, goes_on, ready};

const SSE: FakeTransport = FakeTransport::Sse;

#[test]
fn crash_is_an_error() -> Result<()> {
    let mut session = ready(SSE, "on tools/call/crash -> exit 3")?;
    call(&mut session, "1", "crash")?.error()?;
    session.client.close_stdin();
    session.ended().map(drop)
}

#[test]
fn a_cut_stream_fails_its_calls_at_once() -> Result<()> {
    let mut session = ready(SSE, "on tools/call/slow -> never\non tools/call/cut -> cut")?;
    session.client.call("1", "slow", "{}")?;
    call(&mut session, "2", "cut")?.error()?;
    Answer::of(&session.client.answer("1")?)?.error()?;
    session.client.close_stdin();
    session.ended().map(drop)
}

#[test]
fn a_call_that_is_never_answered_blocks_no_other() -> Result<()> {
    let mut session = ready(SSE, "on tools/call/never -> never")?;
    session.client.call("1", "never", "{}")?;
    goes_on(&mut session)?;
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)?;
    session.upstream()?.wait_for("notifications/cancelled", SOON)?;
    session.finish().map(drop)
}

#[test]
fn stdin_closed_with_calls_in_flight_waits_for_their_answers() -> Result<()> {
    let mut session = ready(SSE, "on tools/call/sleep\n    wait go\n    text slept")?;
    for id in ["1", "2", "3"] {
        session.client.call(id, "sleep", "{}")?;
        session.upstream()?.wait_for("\"sleep\"", SOON)?;
    }
    session.client.close_stdin();
    session.upstream()?.act("arm go")?;
    for id in ["1", "2", "3"] {
        ensure!(Answer::of(&session.client.answer(id)?)?.text()? == "slept", "{id}");
    }
    session.ended().map(drop)
}

#[test]
fn unauthorised_at_start_is_the_first_answer() -> Result<()> {
    let script = "on GET\n    status 401\n    header WWW-Authenticate: Bearer realm=\"bench\"\n    body {\"error\":\"invalid_token\"}";
    let mut session = Rig::new(TOOLWAY)?.script(script).start(SSE)?;
    session.client.send(INITIALIZE)?;
    let answer = Answer::of(&session.client.answer("0")?)?;
    ensure!(answer.error()?.1.contains("401"), "{}", answer.line);
    session.client.close_stdin();
    session.ended().map(drop)
}

#[test]
fn unauthorised_later_is_an_error_and_the_session_goes_on() -> Result<()> {
    let mut session = ready(SSE, "on tools/call/echo when unauth -> status 401")?;
    session.upstream()?.act("arm unauth")?;
    ensure!(call(&mut session, "1", "echo")?.error()?.1.contains("401"), "no status");
    session.upstream()?.act("disarm unauth")?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn a_restarted_server_is_found_again() -> Result<()> {
    let mut session = ready(SSE, "")?;
    goes_on(&mut session)?;
    let port = session.stop_upstream()?;
    call(&mut session, "1", "echo")?.error()?;
    session.serve_again(SSE, port)?;
    session.client.call("2", "echo", r#"{"text":"x"}"#)?;
    session.client.answer("2")?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn a_refused_connection_is_the_first_answer() -> Result<()> {
    let mut rig = Rig::new(TOOLWAY)?;
    let port = rig.serve(SSE, 0)?.peer.port();
    let mut client = Client::start(&mut rig.remote(SSE, port))?;
    client.send(INITIALIZE)?;
    let answer = Answer::of(&client.answer("0")?)?;
    ensure!(answer.error()?.1.contains("127.0.0.1"), "{}", answer.line);
    client.close_stdin();
    client.wait_exit(SOON)?;
    client.capture.check_complete()?;
    rig.check_leftovers()
}

#[test]
fn an_endpoint_of_another_origin_gets_nothing() -> Result<()> {
    let (_rig, mut elsewhere) = Rig::new(TOOLWAY)?.serve_apart()?;
    let script = format!("set endpoint http://127.0.0.1:{}/mcp?sessionId={{session}}", elsewhere.peer.port());
    let rig = Rig::new(TOOLWAY)?.options(&["--header", "Authorization=Bearer s3cr3t"]);
    let mut session = rig.script(&script).start(SSE)?;
    session.client.send(INITIALIZE)?;
    Answer::of(&session.client.answer("0")?)?.error()?;
    ensure!(elsewhere.peer.requests().is_empty(), "something was sent there");
    session.client.close_stdin();
    session.ended().map(drop)
}

#[test]
fn endpoints_are_resolved_against_the_stream() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--header", "X-Team=a"]);
    for endpoint in
        ["message?sessionId={session}", "./message?sessionId={session}", "/message?a=b&sessionId={session}"]
    {
        let rig =
            Rig::new(TOOLWAY)?.script(&format!("set endpoint {endpoint}")).options(&["--header", "X-Team=a"]);
        let mut session = rig.start(SSE)?;
        session.client.handshake()?;
        goes_on(&mut session)?;
        let requests = session.upstream()?.requests();
        ensure!(requests.iter().all(|r| r.header("x-team") == Some("a")), "{requests:?}");
        session.finish()?;
    }
    drop(rig);
    Ok(())
}
