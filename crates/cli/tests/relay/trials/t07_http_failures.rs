//! Failures of HTTP are told as they are.

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, Rig, SOON, Session};

use crate::TOOLWAY;
use crate::answer::Answer;

const CALL: &str = "tools/call";

fn http(script: &str) -> Result<Session> {
    Rig::new(TOOLWAY)?.script(script).start(FakeTransport::Http)
}

/// Calls `tool` and reads the error that it gets.
fn failure(session: &mut Session, id: &str, tool: &str) -> Result<String> {
    session.client.call(id, tool, "{}")?;
    let answer = Answer::of(&session.client.answer(id)?)?;
    answer.error()?;
    Ok(answer.line)
}

fn posts(session: &mut Session, method: &str) -> Result<usize> {
    let requests = session.upstream()?.requests();
    Ok(requests.iter().filter(|r| r.method().as_deref() == Some(method)).count())
}

/// The upstream still answers over POST.
fn usable(session: &mut Session) -> Result<()> {
    session.client.call("\"usable\"", "echo", r#"{"text":"yes"}"#)?;
    let answer = Answer::of(&session.client.answer("\"usable\"")?)?;
    ensure!(answer.text()? == "yes", "{}", answer.line);
    Ok(())
}

#[test]
fn a_refusal_names_its_status_and_its_reason_and_is_not_repeated() -> Result<()> {
    let script = r#"on tools/call/scope
    status 403 Forbidden
    header Content-Type: application/json
    body {"error":"insufficient_scope","error_description":"need repo"}"#;
    let mut session = http(script)?;
    session.client.handshake()?;
    let error = failure(&mut session, "\"a\"", "scope")?;
    ensure!(error.contains("403") && error.contains("insufficient_scope"), "{error}");
    ensure!(posts(&mut session, CALL)? == 1, "it was sent again");
    usable(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn every_status_is_named_once_and_the_session_goes_on() -> Result<()> {
    for status in [400, 401, 402, 403, 405, 406, 409, 410, 413, 415, 422, 429, 500, 501, 502, 503, 504, 599] {
        let script = format!(
            "on tools/call/no\n    status {status} Odd\n    header WWW-Authenticate: Bearer realm=\"r\", error=\"invalid_token\"\n    body upstream says no"
        );
        let mut session = http(&script)?;
        session.client.handshake()?;
        let error = failure(&mut session, "1", "no")?;
        ensure!(error.contains(&status.to_string()), "{status}: {error}");
        ensure!(posts(&mut session, CALL)? == 1, "{status}: sent again");
        if status == 401 {
            ensure!(error.contains("invalid_token"), "no WWW-Authenticate: {error}");
        }
        usable(&mut session).with_context(|| status.to_string())?;
        session.finish().with_context(|| status.to_string())?;
    }
    Ok(())
}

#[test]
fn a_json_rpc_error_in_a_failed_status_is_passed_on() -> Result<()> {
    let script = "on tools/call/no\n    status 400\n    error -32602 bad \"cursor\"";
    let mut session = http(script)?;
    session.client.handshake()?;
    let error = failure(&mut session, "\"x\"", "no")?;
    ensure!(
        error == r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"bad \"cursor\""}}"#,
        "{error}"
    );
    session.finish().map(drop)
}

#[test]
fn a_forgotten_session_is_opened_again_and_the_call_sent_again_once() -> Result<()> {
    let script = "on tools/call/work 1\n    forget\n    status 404\non tools/call/work 2+ -> text {session}";
    let mut session = http(script)?;
    session.client.handshake()?;
    session.client.call("1", "work", "{}")?;
    let answer = Answer::of(&session.client.answer("1")?)?;
    ensure!(answer.text()? == "S2", "{}", answer.line);
    let requests = session.upstream()?.requests();
    let line: Vec<_> = requests
        .iter()
        .filter(|r| r.verb == "POST")
        .map(|r| (r.method().unwrap_or_default(), r.header("mcp-session-id").unwrap_or("-").to_owned()))
        .collect();
    let expected = [
        ("initialize", "-"),
        ("notifications/initialized", "S1"),
        (CALL, "S1"),
        ("initialize", "-"),
        ("notifications/initialized", "S2"),
        (CALL, "S2"),
    ];
    ensure!(line.iter().map(|(m, s)| (m.as_str(), s.as_str())).eq(expected), "{line:?}");
    let initial: Vec<_> = requests.iter().filter(|r| r.method().as_deref() == Some("initialize")).collect();
    ensure!(initial[0].body == initial[1].body, "not the client's own initialize");
    usable(&mut session)?;
    ensure!(session.finish()?.is_empty(), "the client saw more than the answer");
    Ok(())
}

#[test]
fn sessions_forgotten_again_and_again_are_opened_each_time() -> Result<()> {
    let mut session = http("on tools/call/ok -> text fine")?;
    session.client.handshake()?;
    for n in 1..=3 {
        session.upstream()?.act("forget")?;
        let id = n.to_string();
        session.client.call(&id, "ok", "{}")?;
        let answer = Answer::of(&session.client.answer(&id)?)?;
        ensure!(answer.text()? == "fine", "{}", answer.line);
        ensure!(posts(&mut session, "initialize")? == n + 1, "openings after {n}");
    }
    session.finish().map(drop)
}

#[test]
fn calls_in_flight_when_the_session_is_forgotten_are_all_answered() -> Result<()> {
    let mut session = http("on tools/call/ok -> text fine")?;
    session.client.handshake()?;
    session.upstream()?.act("forget")?;
    for n in 1..=8 {
        session.client.call(&n.to_string(), "ok", "{}")?;
    }
    for n in 1..=8 {
        let answer = Answer::of(&session.client.answer(&n.to_string())?)?;
        ensure!(answer.text()? == "fine", "{}", answer.line);
    }
    let opened = posts(&mut session, "initialize")?;
    ensure!(opened == 2, "{opened} sessions for one that was forgotten");
    session.finish().map(drop)
}

#[test]
fn a_session_that_cannot_be_opened_again_is_one_error() -> Result<()> {
    let mut session = http("on tools/call/gone -> status 404 Not Found")?;
    session.client.handshake()?;
    let error = failure(&mut session, "1", "gone")?;
    ensure!(error.contains("404"), "{error}");
    ensure!(posts(&mut session, "initialize")? <= 2, "opened more than once again");
    ensure!(posts(&mut session, CALL)? <= 2, "sent more than once again");
    session.finish().map(drop)
}

#[test]
fn any_refusal_of_the_optional_get_leaves_post_usable() -> Result<()> {
    for status in [400, 404, 405, 406, 415, 500, 501] {
        let mut session = http(&format!("on GET -> status {status}"))?;
        session.client.handshake()?;
        for _ in 0..3 {
            usable(&mut session).with_context(|| status.to_string())?;
        }
        let gets = session.upstream()?.requests().iter().filter(|r| r.verb == "GET").count();
        ensure!(gets <= 2, "{status}: GET was tried {gets} times");
        session.finish().with_context(|| status.to_string())?;
    }
    Ok(())
}

#[test]
fn a_login_page_is_named_as_one() -> Result<()> {
    for status in [200, 403] {
        let script = format!(
            "on tools/call/login\n    status {status}\n    header Content-Type: text/html; charset=utf-8\n    body <!doctype html><title>Sign in</title><form action=/login>"
        );
        let mut session = http(&script)?;
        session.client.handshake()?;
        let error = failure(&mut session, "1", "login")?;
        ensure!(error.contains("answered HTML, not MCP"), "{error}");
        ensure!(error.contains(&status.to_string()) && error.contains("/mcp"), "{error}");
        ensure!(!error.contains("k-e-y"), "the query string is shown: {error}");
        usable(&mut session)?;
        ensure!(!session.client.stderr().contains("k-e-y"), "the query string is logged");
        session.finish()?;
    }
    Ok(())
}

#[test]
fn other_bodies_that_are_no_answer_are_one_error() -> Result<()> {
    let kinds = [
        ("empty", "status 200\n    header Content-Type: application/json\n    body "),
        ("accepted", "status 202"),
        ("none", "status 204"),
        ("text", "header Content-Type: text/plain\n    body hello"),
        ("not-json", "header Content-Type: application/json\n    body {nonsense"),
        ("no-rpc", "header Content-Type: application/json\n    body {\\x22ok\\x22:true}"),
        (
            "other-id",
            "body {\\x22jsonrpc\\x22:\\x222.0\\x22,\\x22id\\x22:\\x22other\\x22,\\x22result\\x22:{}}",
        ),
        ("half", "body {\\x22jsonrpc\\x22:\\x222.0\\x22,\\x22id\\x22:1,\\x22result\\x22:{}}\n    cut"),
        ("neither", "body {\\x22jsonrpc\\x22:\\x222.0\\x22,\\x22id\\x22:{id}}"),
        (
            "both",
            "body {\\x22jsonrpc\\x22:\\x222.0\\x22,\\x22id\\x22:{id},\\x22result\\x22:{},\\x22error\\x22:{\\x22code\\x22:1,\\x22message\\x22:\\x22\\x22}}",
        ),
        ("empty-stream", "stream\n    end"),
        ("no-http", "raw banana\\r\\n\\r\\n\n    close"),
    ];
    for (name, actions) in kinds {
        let mut session = http(&format!("on tools/call/{name}\n    {actions}"))?;
        session.client.handshake()?;
        failure(&mut session, "\"f\"", name).context(name)?;
        ensure!(posts(&mut session, CALL)? == 1, "{name}: sent again");
        usable(&mut session).context(name)?;
        session.finish().context(name)?;
    }
    Ok(())
}

#[test]
fn configured_headers_go_everywhere_and_never_to_another_origin() -> Result<()> {
    let mut elsewhere = Rig::new(TOOLWAY)?.script("set session off").serve_apart()?;
    let script = format!(
        "on tools/call/move\n    status 307\n    header Location: http://127.0.0.1:{}/mcp\non tools/call/here -> text here",
        elsewhere.1.peer.port()
    );
    let rig =
        Rig::new(TOOLWAY)?.options(&["--header", "Authorization=Bearer s3cr3t=x", "--header", "X-Team=a"]);
    let mut session = rig.script(&script).start(FakeTransport::Http)?;
    session.client.handshake()?;
    session.upstream()?.wait("stream", SOON, |_| true)?;
    session.client.call("1", "move", "{}")?;
    session.client.answer("1")?;
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    let requests = session.upstream()?.requests();
    for verb in ["POST", "GET", "DELETE"] {
        ensure!(requests.iter().any(|r| r.verb == verb), "no {verb}");
    }
    for request in &requests {
        ensure!(request.header("authorization") == Some("Bearer s3cr3t=x"), "{request:?}");
        ensure!(request.header("x-team") == Some("a"), "{request:?}");
    }
    for request in elsewhere.1.peer.requests() {
        ensure!(
            request.header("authorization").is_none() && request.header("x-team").is_none(),
            "{request:?}"
        );
        ensure!(request.header("mcp-session-id").is_none(), "{request:?}");
    }
    let stderr = session.client.stderr();
    ensure!(!stderr.contains("s3cr3t"), "a secret was logged: {stderr}");
    session.ended().map(drop)
}
