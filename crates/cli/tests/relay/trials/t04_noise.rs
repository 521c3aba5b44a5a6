//! Noise on an upstream's stdout is skipped and counted, and fails nothing.

use anyhow::{Result, ensure};
use toolway_testkit::{FakeTransport, Rig, SOON};

use crate::answer::same;
use crate::{TOOLWAY, stdio};

const NOTE: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hi"}}"#;
const REAL: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"real"}]}}"#;

#[test]
fn only_messages_reach_the_client() -> Result<()> {
    let script = format!(
        "on tools/call/never -> never\non tools/call/two\n    raw Server listening on stdio\\n\n    raw \\xef\\xbb\\xbf{NOTE}\\r\\n\n    raw \\n\n    raw {{\"level\":\"debug\",\"msg\":\"json but not json-rpc\"}}\\n\n    send {REAL}"
    );
    let mut session = stdio(&script)?;
    session.client.handshake()?;
    session.client.call("1", "never", "{}")?;
    session.client.call("2", "two", "{}")?;
    let note = session.client.next_line(SOON)?.unwrap_or_default();
    same(&note, NOTE)?;
    let real = session.client.next_line(SOON)?.unwrap_or_default();
    same(&real, REAL)?;
    let upstream = session.upstream()?;
    upstream.wait_for("\"two\"", SOON)?;
    let received = String::from_utf8_lossy(&upstream.received()).into_owned();
    ensure!(received.lines().count() == 4, "written back: {received}");
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)?;
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    let stderr = session.client.stderr();
    let counted = stderr
        .lines()
        .any(|line| line.contains('2') && (line.contains("ignored") || line.contains("skipped")));
    ensure!(counted, "two ignored lines are not counted: {stderr}");
    let (_, rest) = session.ended()?;
    ensure!(rest.is_empty(), "more lines: {rest:?}");
    Ok(())
}

/// Lines that are no messages, in the script's escapes.
const KINDS: [&str; 16] = [
    r"Server listening on stdio\n",
    r"\n\n  \n\r\n",
    r"[INFO] a bracket first\n",
    r"{not json\n",
    r"{}\n",
    r"[]\n",
    r"[1,2,3]\n",
    r"null\n42\n\x22text\x22\n",
    r#"{"jsonrpc":"1.0","foo":1}\n"#,
    r"\xff\xfe\x00binary\x00\n",
    r#"{"jsonrpc":"2.0"\n"#,
    r"{x*70000}\n",
    r#"{"level":"{y*70000}"}\n"#,
    r"\x1b[32mgreen\x1b[0m\n",
    r"Traceback (most recent call last):\n  File {x*3}, line 1\n",
    r"\xef\xbb\xbf\n",
];

#[test]
fn every_kind_of_noise_fails_nothing() -> Result<()> {
    let script: String = KINDS
        .iter()
        .enumerate()
        .map(|(n, noise)| format!("on tools/call/t{n}\n    raw {noise}\n    text after\n    raw {noise}\n"))
        .collect::<Vec<_>>()
        .concat();
    let mut session = stdio(&script)?;
    session.client.handshake()?;
    for n in 0..KINDS.len() {
        session.client.call(&n.to_string().replace('0', "100"), &format!("t{n}"), "{}")?;
    }
    for n in 0..KINDS.len() {
        let id = n.to_string().replace('0', "100");
        let answer = session.client.answer(&id)?;
        ensure!(answer.ends_with(br#""text":"after"}]}}"#), "{n}");
    }
    let upstream = session.upstream()?;
    let lines = String::from_utf8_lossy(&upstream.received()).lines().count();
    ensure!(lines == KINDS.len() + 2, "{lines} lines were written to the upstream");
    let rest = session.finish()?;
    ensure!(rest.is_empty(), "noise reached the client: {rest:?}");
    Ok(())
}

#[test]
fn noise_before_the_handshake_and_at_the_end_is_noise_too() -> Result<()> {
    let script = "on start -> raw > npm start\\n\\n> vite\\n\non eof -> raw bye\\nhalf a line";
    let mut session = Rig::new(TOOLWAY)?.script(script).start(FakeTransport::Stdio)?;
    session.client.handshake()?;
    session.client.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#)?;
    session.client.answer("\"p\"")?;
    ensure!(session.finish()?.is_empty(), "noise reached the client");
    Ok(())
}

#[test]
fn a_message_after_half_a_line_of_noise_is_lost_alone() -> Result<()> {
    let script = r"on tools/call/a
    raw progress: 50%
    text lost
    raw progress: 100%\n
on tools/call/b -> text kept";
    let mut session = stdio(script)?;
    session.client.handshake()?;
    session.client.call("1", "a", "{}")?;
    session.client.call("2", "b", "{}")?;
    session.client.answer("2")?;
    session
        .client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)?;
    session.finish().map(drop)
}
