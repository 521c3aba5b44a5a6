//! What the options say is what happens: environment, limits, refusals, recordings, reading on, retention.

use std::os::unix::fs::symlink;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use toolway_testkit::{Client, Direction, FakeTransport, INITIALIZE, Recording, Rig, SOON, files};

use crate::answer::Answer;
use crate::{TOOLWAY, call, goes_on, ready, together};

const STDIO: FakeTransport = FakeTransport::Stdio;

/// The environment that the upstream has been given.
fn environment(rig: Rig) -> Result<serde_json::Map<String, Value>> {
    let mut session = rig.start(STDIO)?;
    session.client.handshake()?;
    let start = session.upstream()?.start.clone();
    session.finish()?;
    start.get("env").and_then(Value::as_object).cloned().context("no env")
}

#[test]
fn the_upstream_gets_the_safe_set_and_what_was_named() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?
        .variable("SECRET_OF_CLIENT", "1")
        .variable("SHELL", "/bin/x")
        .variable("FROM", "a=b");
    let names = environment(rig.options(&["--env", "NAMED=x=${FROM}=$${FROM}", "--env", "EMPTY="]))?;
    ensure!(names.get("NAMED") == Some(&"x=a=b=${FROM}".into()), "{names:?}");
    ensure!(
        names.get("EMPTY") == Some(&"".into()) && names.get("SHELL") == Some(&"/bin/x".into()),
        "{names:?}"
    );
    ensure!(names.contains_key("PATH") && names.contains_key("HOME"), "{names:?}");
    let known = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "NAMED", "EMPTY"];
    let others: Vec<_> = names.keys().filter(|name| !known.contains(&name.as_str())).collect();
    ensure!(others.is_empty(), "passed on: {others:?}");
    Ok(())
}

#[test]
fn inherit_env_passes_all() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.variable("SECRET_OF_CLIENT", "1").option("--inherit-env");
    let names = environment(rig.options(&["--env", "NAMED=1"]))?;
    ensure!(names.contains_key("SECRET_OF_CLIENT") && names.contains_key("NAMED"), "{names:?}");
    Ok(())
}

#[test]
fn cwd_is_where_the_upstream_runs() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?;
    let there = rig.path().join("a b");
    std::fs::create_dir(&there)?;
    let mut session = rig.option("--cwd").option(&there).start(STDIO)?;
    session.client.handshake()?;
    let cwd = session.upstream()?.start["cwd"].clone();
    ensure!(cwd.as_str().map(std::path::Path::new) == Some(&there.canonicalize()?), "{cwd}");
    session.finish().map(drop)
}

#[test]
fn limits_come_from_flag_then_own_variable_then_older_variable() -> Result<()> {
    let old = ("CURSOR_MCP_RESPONSE_PROXY_MAX_RESPONSE_CHARS", "2000");
    let own = ("TOOLWAY_MAX_RESPONSE_CHARS", "4000");
    let cases = [
        (vec![], None, 10_000),
        (vec![old], None, 2_000),
        (vec![old, own], None, 4_000),
        (vec![old, own], Some("6000"), 6_000),
    ];
    together(&cases, |(variables, flag, limit)| {
        let mut rig = Rig::new(TOOLWAY)?.without("--max-response-chars").without("--preview-chars");
        for (name, value) in variables {
            rig = rig.variable(name, value);
        }
        if let Some(flag) = flag {
            rig = rig.options(&["--max-response-chars", flag]);
        }
        let script = format!(
            "on tools/call/under -> text {{x*{}}}\non tools/call/over -> text {{x*{limit}}}",
            limit - 100
        );
        let mut session = rig.script(&script).start(STDIO)?;
        session.client.handshake()?;
        ensure!(call(&mut session, "1", "under")?.saved().is_err(), "under the limit");
        let over = call(&mut session, "2", "over")?;
        over.saved()?;
        ensure!(over.chars() <= *limit, "{} characters", over.chars());
        session.finish().map(drop)
    })
}

#[test]
fn wrong_usage_starts_nothing_and_ends_with_2() -> Result<()> {
    let cases: [(&[&str], &str); 12] = [
        (&["stdio", "--max-response-chars", "999", "--", "UP"], "1000"),
        (&["stdio", "--max-response-chars", "0", "--", "UP"], "max-response-chars"),
        (&["stdio", "--max-response-chars", "-5", "--", "UP"], ""),
        (&["stdio", "--max-response-chars", "many", "--", "UP"], "many"),
        (&["stdio", "--max-response-chars", "5000", "--preview-chars", "5000", "--", "UP"], "preview"),
        (&["stdio", "--env", "A=${NO_SUCH_VARIABLE_XYZ}", "--", "UP"], "NO_SUCH_VARIABLE_XYZ"),
        (&["stdio", "--env", "novalue", "--", "UP"], "novalue"),
        (&["stdio", "--no-such-option", "--", "UP"], "no-such-option"),
        (&["stdio"], ""),
        (&["streamable-http"], "url"),
        (&["sse", "--url", "not a url"], "url"),
        (
            &["streamable-http", "--url", "http://127.0.0.1:1/mcp", "--header", "X=${NO_SUCH_VARIABLE_XYZ}"],
            "NO_SUCH_VARIABLE_XYZ",
        ),
    ];
    for (arguments, named) in cases {
        let rig = Rig::new(TOOLWAY)?;
        let started = rig.path().join("started");
        let touch = ["touch".to_owned(), started.display().to_string()];
        let words = arguments.iter().flat_map(|word| match *word {
            "UP" => touch.to_vec(),
            word => vec![word.to_owned()],
        });
        let output = rig.command(words).stdin(Stdio::null()).output()?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.code() == Some(2), "{arguments:?}: {} {stderr}", output.status);
        ensure!(output.stdout.is_empty(), "{arguments:?}: stdout");
        ensure!(
            stderr.to_lowercase().contains(&named.to_lowercase()) && !stderr.is_empty(),
            "{arguments:?}: {stderr}"
        );
        ensure!(!started.exists(), "{arguments:?}: something was started");
    }
    Ok(())
}

#[test]
fn under_its_other_name_it_is_the_same_program() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?;
    let link = rig.path().join("cursor-mcp-response-proxy");
    symlink(TOOLWAY, &link)?;
    let output = Rig::new(&link)?.command(["--help"]).output()?;
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success() && help.contains("cursor-mcp-response-proxy"), "{help}");
    let mut session = Rig::new(&link)?.script("on tools/call/big -> text {x*20000}").start(STDIO)?;
    session.client.handshake()?;
    call(&mut session, "1", "big")?.saved()?;
    session.finish().map(drop)
}

#[test]
fn the_default_directory_is_the_documented_one() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.without("--output-dir");
    let home = rig.path().join("home");
    let mut session = rig.script("on tools/call/big -> text {x*20000}").start(STDIO)?;
    session.client.handshake()?;
    let saved = call(&mut session, "1", "big")?.saved()?;
    ensure!(
        saved.path.starts_with(home.join(".cache/cursor-mcp-response-proxy")),
        "{}",
        saved.path.display()
    );
    session.finish().map(drop)
}

#[test]
fn tool_limits_save_and_pass() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&[
        "--tool-limit",
        "always*=save",
        "--tool-limit",
        "never=pass",
        "--tool-limit",
        "low=2000",
    ]);
    let script = "on tools/call/always-this -> text tiny\non tools/call/never -> text {x*30000}\non tools/call/low -> text {x*3000}";
    let mut session = rig.script(script).start(STDIO)?;
    session.client.handshake()?;
    ensure!(files(&session.rig().saved()).is_empty(), "saved too early");
    call(&mut session, "1", "always-this")?;
    ensure!(!files(&session.rig().saved()).is_empty(), "not saved");
    ensure!(call(&mut session, "2", "never")?.chars() > 30_000, "did not pass");
    let low = call(&mut session, "3", "low")?;
    ensure!(low.saved().is_ok() && low.chars() <= 2_000, "{} characters", low.chars());
    session.finish().map(drop)
}

#[test]
fn a_recording_can_be_played_again() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?;
    let file = rig.path().join("recording");
    let mut session = rig.option("--record").option(&file).start(STDIO)?;
    session.client.handshake()?;
    goes_on(&mut session)?;
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    let recording = Recording::parse(&std::fs::read_to_string(&file)?)?;
    let sent: Vec<_> = recording.client_lines().collect();
    ensure!(sent.len() == 3 && sent.first() == Some(&INITIALIZE), "{sent:?}");
    let down = recording.messages.iter().filter(|m| m.0 == Direction::Down).count();
    ensure!(down == 2, "{down} messages of the server");
    let mut command = std::process::Command::new(toolway_testkit::fakemcp()?);
    let mut client = Client::start(command.arg("--replay").arg(&file))?;
    client.handshake()?;
    client.call("\"again\"", "echo", r#"{"text":"next"}"#)?;
    ensure!(Answer::of(&client.answer("\"again\"")?)?.text()? == "next", "played differently");
    session.ended().map(drop)
}

#[test]
fn secrets_are_in_no_output() -> Result<()> {
    let secret = "s3cr3t-value-of-the-test";
    let rig =
        Rig::new(TOOLWAY)?.variable("TOKEN", secret).options(&["--env", "PW=${TOKEN}", "--log", "trace"]);
    let mut session = rig.script("on tools/call/crash -> exit 3").start(STDIO)?;
    session.client.handshake()?;
    let answer = call(&mut session, "1", "crash")?;
    session.client.wait_exit(SOON)?;
    ensure!(
        !answer.line.contains(secret) && !session.client.stderr().contains(secret),
        "{}",
        session.client.stderr()
    );
    session.ended()?;
    let header = format!("Authorization=Bearer {secret}");
    let rig = Rig::new(TOOLWAY)?.options(&["--header", &header, "--log", "trace"]);
    let mut session = rig.script("on tools/call/no -> status 403").start(FakeTransport::Http)?;
    session.client.handshake()?;
    let answer = call(&mut session, "1", "no")?;
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    ensure!(
        !answer.line.contains(secret) && !session.client.stderr().contains(secret),
        "{}",
        session.client.stderr()
    );
    session.ended().map(drop)
}

#[test]
fn progress_keeps_a_stream_alive_and_is_passed_on() -> Result<()> {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{token},"progress":1.0}}"#;
    let steps = format!("    send {note}\n    delay 400ms\n").repeat(6);
    let rig = Rig::new(TOOLWAY)?.options(&["--sse-read-timeout", "2"]);
    let mut session = rig
        .script(&format!("on tools/call/long\n    stream\n{steps}    text done"))
        .start(FakeTransport::Http)?;
    session.client.handshake()?;
    session.client.send(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long","_meta":{"progressToken":"\u0070"}}}"#)?;
    ensure!(Answer::of(&session.client.answer("1")?)?.text()? == "done", "given up");
    let rest = session.finish()?;
    ensure!(
        rest.len() == 6 && rest.iter().all(|l| l.contains(r#""progressToken":"\u0070","progress":1.0"#)),
        "{rest:?}"
    );
    Ok(())
}

#[test]
fn lines_in_the_middle_are_read_back_without_files() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--read-back", "session"]);
    let script =
        "on tools/call/log -> text {(a line of the log\\n)*899}the nine hundredth\\n{(another line\\n)*2000}";
    let mut session = rig.script(script).start(STDIO)?;
    session.client.handshake()?;
    session.client.send(r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#)?;
    let list = Answer::of(&session.client.answer("\"l\"")?)?;
    let tools = list.result()?["tools"].as_array().context("no tools")?.clone();
    ensure!(tools.iter().any(|tool| tool["name"] == "toolway_saved"), "{tools:?}");
    let answer = call(&mut session, "1", "log")?;
    let id = answer.result()?["_meta"]["toolway/saved"]["id"].as_str().context("no id")?.to_owned();
    session.client.call("2", "toolway_saved", &format!(r#"{{"id":"{id}","lines":"899-901"}}"#))?;
    let text = Answer::of(&session.client.answer("2")?)?.text()?;
    ensure!(text.contains("the nine hundredth") && text.contains("another line"), "{text}");
    session.client.call("3", "toolway_saved", &format!(r#"{{"id":"{id}","search":"hundred.h"}}"#))?;
    let text = Answer::of(&session.client.answer("3")?)?.text()?;
    ensure!(text.contains("the nine hundredth") && text.contains("900"), "{text}");
    session.client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{{"uri":"toolway://saved/{id}"}}}}"#
    ))?;
    let read = Answer::of(&session.client.answer("4")?)?;
    ensure!(read.chars() <= 10_000 && read.result()?["contents"].is_array(), "{:.300}", read.line);
    let received = String::from_utf8_lossy(&session.upstream()?.received()).into_owned();
    ensure!(
        !received.contains("toolway_saved") && !received.contains("toolway://"),
        "it went to the upstream"
    );
    session.finish().map(drop)
}

#[test]
fn a_query_that_takes_too_much_is_an_error_and_the_relay_goes_on() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--read-back", "session"]);
    let mut session = rig.script("on tools/call/list -> text [{1,*20000}1]").start(STDIO)?;
    session.client.handshake()?;
    let answer = call(&mut session, "1", "list")?;
    let id = answer.result()?["_meta"]["toolway/saved"]["id"].as_str().context("no id")?.to_owned();
    let mut ask = |filter: &str| -> Result<Answer> {
        let arguments = serde_json::json!({"id": id, "query": filter});
        session.client.call("2", "toolway_saved", &arguments.to_string())?;
        Answer::of(&session.client.answer("2")?)
    };
    let vast = ask("\"0123456789\" * 1000000000")?;
    ensure!(vast.result()?["isError"] == true, "{:.300}", vast.line);
    ensure!(vast.text()? == "the query took more than 10 s, or more memory than it may", "{}", vast.text()?);
    let length = ask("length")?;
    ensure!(length.text()? == "20001\n", "{:.300}", length.line);
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn old_results_go_and_the_newest_stay() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--max-saved", "1MiB", "--keep-at-least", "1ms"]);
    std::fs::create_dir(rig.saved())?;
    std::fs::write(rig.saved().join("not-ours.txt"), "keep")?;
    let mut session = rig.script("on tools/call/big -> text {x*100000}").umask("000").start(STDIO)?;
    session.client.handshake()?;
    let mut newest = None;
    for n in 1..=40 {
        newest = Some(call(&mut session, &n.to_string(), "big")?.saved()?);
    }
    ensure!(newest.is_some_and(|saved| saved.path.exists()), "the newest is gone");
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    let left = files(&session.rig().saved());
    let total: u64 = left.iter().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
    ensure!(total < 2 << 20, "{total} bytes in {} files", left.len());
    ensure!(left.iter().any(|f| f.ends_with("not-ours.txt")), "a foreign file was removed");
    session.ended().map(drop)
}

#[test]
fn two_relays_share_a_directory() -> Result<()> {
    let script = "on tools/call/big -> text {count} {x*20000}";
    let one = Rig::new(TOOLWAY)?.script(script);
    let shared = one.saved();
    let two = Rig::new(TOOLWAY)?.script(script).instead("--output-dir", &shared);
    let (mut one, mut two) = (one.start(STDIO)?, two.start(STDIO)?);
    for session in [&mut one, &mut two] {
        session.client.handshake()?;
        for n in 1..=20 {
            session.client.call(&n.to_string(), "big", "{}")?;
        }
    }
    let mut paths = std::collections::BTreeSet::new();
    for session in [&mut one, &mut two] {
        for n in 1..=20 {
            let saved = Answer::of(&session.client.answer(&n.to_string())?)?.saved()?;
            ensure!(saved.path.exists() && paths.insert(saved.path.clone()), "{}", saved.path.display());
        }
    }
    two.finish()?;
    one.finish().map(drop)
}

#[test]
fn ready_at_once_and_silent_on_stdout() -> Result<()> {
    let session = ready(STDIO, "")?;
    ensure!(session.finish()?.is_empty(), "stdout holds more than the protocol");
    Ok(())
}
