//! Editors that do not keep to the protocol, and ends from outside.

use anyhow::{Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::editor::{House, error};

#[test]
fn garbage_is_answered_with_errors_and_harms_nothing() -> Result<()> {
    let house = House::new(&json!({"otherwise": {"text": "Still here."}}))?;
    let mut editor = house.editor(&[])?;
    for (line, code) in [
        ("hello", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("[]", -32600),
        ("{}", -32600),
        ("3", -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, -32600),
    ] {
        editor.raw(line)?;
        let answer = editor.next("an error", |message| message.get("error").is_some())?;
        ensure!(error(&answer)?.0 == code && answer["id"] == Value::Null, "{line}: {answer}");
    }
    // Neither blank lines, nor complaints, nor answers that nobody waits for, nor unknown notes are answered.
    for line in [
        "",
        "   ",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"$/novel","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"session/cancel","params":[]}"#,
    ] {
        editor.raw(line)?;
    }
    let before = editor.seen.len();
    assert_eq!(editor.refused("session/fly", &json!({}))?.0, -32601);
    assert_eq!(editor.seen.len(), before);
    assert_eq!(editor.refused("session/prompt", &json!({"sessionId": "nobody", "prompt": []}))?.0, -32002);
    assert_eq!(editor.refused("session/load", &house.place(&[]))?.0, -32002);
    // An id is repeated as it came.
    editor.raw(r#"{"jsonrpc":"2.0","id":"a b","method":"authenticate","params":{"methodId":"x"}}"#)?;
    editor.next("an answer", |message| message["id"] == "a b" && message.get("result").is_some())?;
    let long = "x".repeat(33 << 20);
    editor.raw(&long)?;
    let answer = editor.next("an error", |message| message.get("error").is_some())?;
    ensure!(error(&answer)?.1.contains("32 MiB"), "{answer}");

    let session = editor.open(&house.place(&[]))?;
    let prompt = editor.prompt(&session, "hello")?;
    assert_eq!(editor.end(prompt)?, "end_turn");
    assert_eq!(editor.close()?.0, Some(0));
    house.leave()
}

#[test]
fn whatever_version_is_asked_for_the_one_that_is_spoken_is_told() -> Result<()> {
    let house = House::new(&json!({}))?;
    let mut editor = house.editor(&[])?;
    let greeting = editor.ask("initialize", &json!({"protocolVersion": 99}))?;
    ensure!(greeting["protocolVersion"] == 1 && greeting["authMethods"] == json!([]), "{greeting}");
    drop(editor);
    house.leave()
}

#[test]
fn a_signal_in_the_middle_of_a_prompt_leaves_nothing() -> Result<()> {
    let house = House::new(&json!({"otherwise": {"text": ["on and "], "endless": true, "pause": 20}}))?;
    let mut editor = house.editor(&[])?;
    let server = house.server("one", "")?;
    let session = editor.open(&house.place(&[server]))?;
    let prompt = editor.prompt(&session, "go")?;
    editor
        .next("a piece", |message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")?;
    let pid = Pid::from_raw(editor.pid().cast_signed());
    kill_process(pid.ok_or_else(|| anyhow::anyhow!("no process"))?, Signal::TERM)?;
    assert_eq!(editor.end(prompt)?, "cancelled");
    assert_eq!(editor.ended()?.0, Some(143));
    house.leave()
}

#[test]
fn options_that_mean_nothing_here_are_refused() -> Result<()> {
    let house = House::new(&json!({}))?;
    for (words, told) in [
        (&["acp", "--cwd", "/"][..], "--cwd"),
        (&["acp", "--offer-model", "x"], "--model"),
        (&["acp", "--runtime", "acp"], "which agent"),
    ] {
        let output = house.rig.command(words).stdin(std::process::Stdio::null()).output()?;
        let text = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(2) && text.contains(told), "{words:?}: {text}");
        ensure!(output.stdout.is_empty());
    }
    house.leave()
}
