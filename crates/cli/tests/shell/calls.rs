//! `toolway call` and its arguments, over every transport.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::{FakeTransport, SOON};

use crate::{House, Told};

const ADD: &str = r#"tool {"name":"add","inputSchema":{"type":"object","required":["a","b"],"additionalProperties":false,"properties":{"a":{"type":"integer"},"b":{"type":"number","description":"the second"},"label":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}}}}
on tools/call/add -> answer {"content":[{"type":"text","text":"called"}],"structuredContent":{"given":{params}}}
"#;

/// The arguments with which the tool was called.
fn given(told: Told) -> Result<Value> {
    let mut result = told.ended(0)?.json()?;
    let given = result.pointer_mut("/structuredContent/given/arguments").context("no arguments")?;
    Ok(given.take())
}

#[test]
fn arguments_have_the_types_of_the_schema() -> Result<()> {
    let house = House::new()?;
    let command = house.command(ADD)?;
    house.write("args.json", r#"{"a": 7, "b": 8, "label": "of the file"}"#)?;
    let call = |words: &[&str]| {
        let line = ["call", "--json", "--command", &command, "add"].into_iter().chain(words.iter().copied());
        given(house.run(line)?)
    };
    assert_eq!(
        call(&["a=1", "b=2.5", "label=12", "tags=x", "tags=y"])?,
        json!({"a": 1, "b": 2.5, "label": "12", "tags": ["x", "y"]})
    );
    assert_eq!(call(&[r#"{"a":1,"b":2}"#])?, json!({"a": 1, "b": 2}));
    assert_eq!(call(&["@args.json", "a=9"])?, json!({"a": 9, "b": 8, "label": "of the file"}));
    house.leave()
}

#[test]
fn arguments_come_from_stdin() -> Result<()> {
    let house = House::new()?;
    let command = house.command(ADD)?;
    let mut child = house
        .rig
        .command(["call", "--json", "--command", &command, "add", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no stdin")?.write_all(br#"{"a": 3, "b": 4}"#)?;
    assert_eq!(given(Told::of(child.wait_with_output()?)?)?, json!({"a": 3, "b": 4}));
    house.leave()
}

#[test]
fn what_is_missing_or_misspelt_is_named_before_the_call() -> Result<()> {
    let mut house = House::new()?;
    let command = house.command(ADD)?;
    let call = |house: &House, words: &[&str]| {
        house.run(["call", "--command", &command].into_iter().chain(words.iter().copied()))
    };
    call(&house, &["add", "a=1"])?.is(
        2,
        "",
        "error: 1 required argument is missing: b (number: the second)\nhint: add b=...\n",
    )?;
    call(&house, &["ad", "a=1"])?.is(
        2,
        "",
        "error: server \"ad-hoc\" has no tool \"ad\"\nhint: did you mean add?\n",
    )?;
    call(&house, &["add", "a=1", "b=2", "lable=x"])?.is(
        2,
        "",
        "error: the tool has no argument \"lable\"\nhint: did you mean label?\n",
    )?;
    call(&house, &["add", "a=one", "b=2"])?.is(2, "", "error: a: \"one\" is no integer\nhint: a=1\n")?;
    for _ in 0..4 {
        let calls = house.rig.arrival()?.received();
        ensure!(!String::from_utf8_lossy(&calls).contains("tools/call"), "it was called");
    }
    house.leave()
}

#[test]
fn every_transport_carries_a_call() -> Result<()> {
    for (transport, kind) in [
        (FakeTransport::Http, None),
        (FakeTransport::Http, Some("http")),
        (FakeTransport::Sse, None),
        (FakeTransport::Sse, Some("sse")),
    ] {
        let (house, mut upstream, url) = House::new()?
            .with_variable("TOKEN", "s3cr3t-tok")
            .serve(transport, "on tools/call/hi -> text hello")?;
        let mut line =
            vec!["call", "--url", &url, "--header", "Authorization=Bearer ${TOKEN}", "--header", "X-A: b=c"];
        line.extend(kind.iter().flat_map(|kind| ["--transport", *kind]));
        let told = house.run(line.into_iter().chain(["hi"]))?;
        told.is(0, "hello\n", "").with_context(|| format!("{transport:?} {kind:?}"))?;
        let requests = upstream.peer.requests();
        ensure!(!requests.is_empty(), "no request");
        for request in requests {
            ensure!(request.header("authorization") == Some("Bearer s3cr3t-tok"), "{request:?}");
            ensure!(request.header("x-a") == Some("b=c"), "{request:?}");
        }
        ensure!(!format!("{told:?}").contains("s3cr3t-tok"), "{told:?}");
        drop(upstream);
        house.leave()?;
    }
    Ok(())
}

#[test]
fn a_session_over_http_is_closed_in_good_order() -> Result<()> {
    let script = "on tools/call/hi -> text hello";
    let (house, mut upstream, url) = House::new()?.serve(FakeTransport::Http, script)?;
    house.run(["call", "--url", &url, "hi"])?.is(0, "hello\n", "")?;
    let verbs: Vec<String> = upstream.peer.requests().into_iter().map(|request| request.verb).collect();
    ensure!(verbs.contains(&"DELETE".to_owned()), "{verbs:?}");
    drop(upstream);
    house.leave()
}

#[test]
fn a_failed_tool_is_told_on_stderr_and_by_the_exit_code() -> Result<()> {
    let house = House::new()?;
    let command = house.command(
        r#"on tools/call/bad -> answer {"content":[{"type":"text","text":"no such row"}],"isError":true}
on tools/call/refused -> error -32602 wrong arguments
on tools/call/silent -> answer {"content":[],"isError":true}"#,
    )?;
    let call =
        |words: &[&str]| house.run(["call", "--command", &command].into_iter().chain(words.iter().copied()));
    call(&["bad"])?.is(1, "", "no such row\n")?;
    call(&["silent"])?.is(1, "", "the tool failed, and says nothing\n")?;
    call(&["refused"])?.is(1, "", "error: server \"ad-hoc\": wrong arguments\n")?;
    let told = call(&["--json", "bad"])?.ended(1)?;
    assert_eq!(told.json()?["isError"], true);
    house.leave()
}

#[test]
fn large_results_come_whole() -> Result<()> {
    let house = House::new()?;
    let command = house.command("on tools/call/big -> text HEAD {x*9000000} TAIL")?;
    let told = house.run(["call", "--command", &command, "big"])?.ended(0)?;
    ensure!(told.out.len() == 9_000_011 && told.out.ends_with(" TAIL\n"), "{} bytes", told.out.len());
    house.leave()
}

#[test]
fn a_signal_cancels_the_call() -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let mut house = House::new()?;
    let command = house.command("on tools/call/slow -> never")?;
    let child = house
        .rig
        .command(["call", "--command", &command, "slow"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut server = house.rig.arrival()?;
    server.wait_for("\"tools/call\"", SOON)?;
    let pid = Pid::from_raw(i32::try_from(child.id())?).context("no pid")?;
    kill_process(pid, Signal::INT)?;
    server.wait_for("notifications/cancelled", SOON)?;
    let told = Told::of(child.wait_with_output()?)?;
    told.is(130, "", "")?;
    house.leave()
}
