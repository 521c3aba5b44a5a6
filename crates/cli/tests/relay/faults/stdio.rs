//! The faults of a stdio upstream while calls run.

use anyhow::{Result, ensure};
use toolway_testkit::{FakeTransport, SOON};

use crate::{call, goes_on, ready};

const STDIO: FakeTransport = FakeTransport::Stdio;

#[test]
fn crash_is_an_error_with_code_and_last_words() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/crash\n    stderr Error: the disk is on fire\n    exit 3")?;
    let answer = call(&mut session, "1", "crash")?;
    let (_, message) = answer.error()?;
    ensure!(message.contains('3'), "no exit code: {message}");
    ensure!(answer.line.contains("the disk is on fire"), "no last words: {}", answer.line);
    session.client.close_stdin();
    let (status, _) = session.ended()?;
    ensure!(status.code() == Some(1), "{status}");
    Ok(())
}

#[test]
fn crash_partial_is_an_error_and_the_half_answer_is_not_shown() -> Result<()> {
    let script = r#"on tools/call/crash
    raw {"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","te
    exit 3"#;
    let mut session = ready(STDIO, script)?;
    call(&mut session, "1", "crash")?.error()?;
    let (status, rest) = session.ended()?;
    ensure!(status.code() == Some(1) && rest.is_empty(), "{status} {rest:?}");
    Ok(())
}

#[test]
fn crash_after_a_whole_answer_without_its_line_ending_gives_that_answer_or_an_error() -> Result<()> {
    let script = r#"on tools/call/crash
    raw {"jsonrpc":"2.0","id":{id},"result":{}}
    exit 0"#;
    let mut session = ready(STDIO, script)?;
    session.client.call("1", "crash", "{}")?;
    session.client.answer("1")?;
    session.ended().map(drop)
}

#[test]
fn crash_answers_every_open_call_and_every_later_one() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/slow -> never\non tools/call/crash -> exit 9")?;
    session.client.call("1", "slow", "{}")?;
    session.client.call("\"1\"", "slow", "{}")?;
    session.client.send(r#"[{"jsonrpc":"2.0","id":"b1","method":"tools/call","params":{"name":"slow"}},{"jsonrpc":"2.0","id":"b2","method":"tools/call","params":{"name":"slow"}}]"#)?;
    session.client.call("2", "crash", "{}")?;
    for id in ["1", "\"1\"", "2", "\"b1\"", "\"b2\""] {
        session.client.answer(id)?;
    }
    let (status, rest) = session.ended()?;
    ensure!(status.code() == Some(1) && rest.is_empty(), "{status} {rest:?}");
    Ok(())
}

#[test]
fn garbage_is_skipped() -> Result<()> {
    let script = "on tools/call/garbage\n    raw this is not json at all\\n{\"half\":\\nWARN: something\\n\\n\n    text after";
    let mut session = ready(STDIO, script)?;
    ensure!(call(&mut session, "1", "garbage")?.text()? == "after", "not answered");
    goes_on(&mut session)?;
    ensure!(session.finish()?.is_empty(), "garbage reached the client");
    Ok(())
}

#[test]
fn stderr_flood_is_drained() -> Result<()> {
    let script = "on tools/call/flood\n    stderr {(eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\\n)*100000}\n    stderr {x*3000000}\n    text flooded";
    let mut session = ready(STDIO, script)?;
    ensure!(call(&mut session, "1", "flood")?.text()? == "flooded", "not answered");
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn a_call_that_is_never_answered_blocks_no_other() -> Result<()> {
    let mut session = ready(STDIO, "on tools/call/never -> never")?;
    session.client.call("1", "never", "{}")?;
    goes_on(&mut session)?;
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)?;
    session.upstream()?.wait_for("notifications/cancelled", SOON)?;
    session.finish().map(drop)
}

#[test]
fn invalid_json_is_answered_and_goes_no_further() -> Result<()> {
    let mut session = ready(STDIO, "")?;
    session.client.send("{this is not json}")?;
    let answer = session.client.line_that(SOON, "-32700", |l| l.windows(6).any(|w| w == b"-32700"))?;
    ensure!(String::from_utf8_lossy(&answer).contains("\"id\":null"), "{answer:?}");
    goes_on(&mut session)?;
    let received = String::from_utf8_lossy(&session.upstream()?.received()).into_owned();
    ensure!(!received.contains("this is not json"), "{received}");
    session.finish().map(drop)
}

#[test]
fn a_batch_is_answered_as_the_upstream_groups_it() -> Result<()> {
    let mut session = ready(STDIO, "")?;
    session.client.send(r#"[{"jsonrpc":"2.0","id":901,"method":"ping"},{"jsonrpc":"2.0","id":902,"method":"tools/call","params":{"name":"echo","arguments":{"text":"b"}}}]"#)?;
    let answer = session.client.answer("901")?;
    ensure!(answer == br#"[{"jsonrpc":"2.0","id":901,"result":{}},{"jsonrpc":"2.0","id":902,"result":{"content":[{"type":"text","text":"b"}]}}]"#, "{}", String::from_utf8_lossy(&answer));
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn deep_json_goes_through_in_both_directions() -> Result<()> {
    let script = r#"on tools/call/deep -> answer {"content":[{"type":"text","text":"deep"}],"structuredContent":{"v":{[*2000}{]*2000}}}
on tools/call/ten -> answer {"content":[],"structuredContent":{"v":{[*10000}{]*10000}}}
on tools/call/size -> text sized"#;
    let mut session = ready(STDIO, script)?;
    let deep = format!(r#"{{"v":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    session.client.call("1", "size", &deep)?;
    session.client.answer("1")?;
    session.client.call("2", "deep", "{}")?;
    session.client.answer("2")?;
    session.client.call("3", "ten", "{}")?;
    let answer = session.client.answer("3")?;
    ensure!(String::from_utf8_lossy(&answer).contains("\"result\""), "no result");
    goes_on(&mut session)?;
    session.finish().map(drop)
}
