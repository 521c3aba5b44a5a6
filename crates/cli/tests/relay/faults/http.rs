//! The faults of a Streamable HTTP upstream.

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use toolway_testkit::{Client, FakeTransport, INITIALIZE, Rig, SOON, Session};

use crate::answer::Answer;
use crate::{TOOLWAY, call, goes_on, ready};

const HTTP: FakeTransport = FakeTransport::Http;

/// Both ways in which a server may answer: as JSON, and as a stream.
const REPLIES: [&str; 2] = ["set reply json\n", "set reply sse\n"];

fn sent(session: &mut Session, tool: &str) -> Result<usize> {
    let name = format!("\"name\":\"{tool}\"");
    let requests = session.upstream()?.requests();
    Ok(requests.iter().filter(|r| String::from_utf8_lossy(&r.body).contains(&name)).count())
}

#[test]
fn crash_is_an_error_and_the_call_is_not_sent_again() -> Result<()> {
    for reply in REPLIES {
        let mut session = ready(HTTP, &format!("{reply}on tools/call/crash -> exit 3"))?;
        call(&mut session, "1", "crash")?.error()?;
        call(&mut session, "2", "echo")?.error()?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn crash_partial_is_an_error() -> Result<()> {
    let script = "on tools/call/crash\n    stream\n    raw event: message\\ndata: {\"jsonrpc\":\"2.0\",\"id\":\n    exit 3";
    let mut session = ready(HTTP, script)?;
    call(&mut session, "1", "crash")?.error()?;
    session.finish().map(drop)
}

#[test]
fn a_call_that_is_never_answered_blocks_no_other() -> Result<()> {
    for reply in ["never", "stream\n    wait for-ever"] {
        let mut session = ready(HTTP, &format!("on tools/call/never\n    {reply}"))?;
        session.client.call("1", "never", "{}")?;
        goes_on(&mut session)?;
        session
            .client
            .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn stdin_closed_with_calls_in_flight_waits_for_their_answers() -> Result<()> {
    for reply in REPLIES {
        let mut session = ready(HTTP, &format!("{reply}on tools/call/sleep\n    wait go\n    text slept"))?;
        for id in ["1", "2", "3"] {
            session.client.call(id, "sleep", "{}")?;
            session.upstream()?.wait_for("\"sleep\"", SOON)?;
        }
        session.client.close_stdin();
        session.upstream()?.act("arm go")?;
        for id in ["1", "2", "3"] {
            ensure!(Answer::of(&session.client.answer(id)?)?.text()? == "slept", "{id}");
        }
        let (status, _) = session.ended()?;
        ensure!(status.code() == Some(0), "{status}");
    }
    Ok(())
}

#[test]
fn signals_answer_what_is_in_flight() -> Result<()> {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut session = ready(HTTP, "on tools/call/sleep -> never")?;
        for id in ["1", "2", "3"] {
            session.client.call(id, "sleep", "{}")?;
            session.upstream()?.wait_for("\"sleep\"", SOON)?;
        }
        session.client.signal(signal)?;
        for id in ["1", "2", "3"] {
            Answer::of(&session.client.answer(id)?)?.error()?;
        }
        let (status, _) = session.ended()?;
        ensure!(status.code() == Some(code), "{status}");
    }
    Ok(())
}

#[test]
fn invalid_json_is_answered_and_goes_no_further() -> Result<()> {
    let mut session = ready(HTTP, "")?;
    session.client.send("{this is not json}")?;
    session.client.line_that(SOON, "-32700", |l| l.windows(6).any(|w| w == b"-32700"))?;
    goes_on(&mut session)?;
    ensure!(session.upstream()?.requests().iter().all(|r| !r.body.starts_with(b"{this")), "it was sent");
    session.finish().map(drop)
}

#[test]
fn a_batch_is_answered() -> Result<()> {
    let mut session = ready(HTTP, "")?;
    session.client.send(r#"[{"jsonrpc":"2.0","id":901,"method":"ping"},{"jsonrpc":"2.0","id":902,"method":"tools/call","params":{"name":"echo","arguments":{"text":"b"}}}]"#)?;
    session.client.line_that(SOON, "901", |l| l.windows(8).any(|w| w == b"\"id\":901"))?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn deep_json_goes_through_in_both_directions() -> Result<()> {
    for reply in REPLIES {
        let script = format!(
            r#"{reply}on tools/call/deep -> answer {{"content":[],"structuredContent":{{"v":{{[*10000}}{{]*10000}}}}}}
on tools/call/size -> text sized"#
        );
        let mut session = ready(HTTP, &script)?;
        let deep = format!(r#"{{"v":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        session.client.call("1", "size", &deep)?;
        ensure!(Answer::of(&session.client.answer("1")?)?.text()? == "sized", "not answered");
        session.client.call("2", "deep", "{}")?;
        let answer = session.client.answer("2")?;
        ensure!(String::from_utf8_lossy(&answer).contains("\"result\""), "no result");
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn unauthorised_at_start_is_the_first_answer() -> Result<()> {
    let script = "on POST\n    status 401 Unauthorized\n    header WWW-Authenticate: Bearer realm=\"bench\"\n    body {\"error\":\"invalid_token\"}\non GET -> status 401";
    let mut session = Rig::new(TOOLWAY)?.script(script).start(HTTP)?;
    session.client.send(INITIALIZE)?;
    let answer = Answer::of(&session.client.answer("0")?)?;
    ensure!(answer.error()?.1.contains("401"), "{}", answer.line);
    ensure!(answer.line.contains("realm") && answer.line.contains("invalid_token"), "{}", answer.line);
    session.client.close_stdin();
    session.ended().map(drop)
}

#[test]
fn unauthorised_later_is_an_error_and_the_session_goes_on() -> Result<()> {
    let mut session =
        ready(HTTP, "on tools/call/echo when unauth\n    status 401\n    header WWW-Authenticate: Bearer")?;
    session.upstream()?.act("arm unauth")?;
    ensure!(call(&mut session, "1", "echo")?.error()?.1.contains("401"), "no status");
    session.upstream()?.act("disarm unauth")?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn a_restarted_server_is_found_again() -> Result<()> {
    for reply in REPLIES {
        let mut session = ready(HTTP, reply)?;
        goes_on(&mut session)?;
        let port = session.stop_upstream()?;
        call(&mut session, "1", "echo")?.error()?;
        session.serve_again(HTTP, port)?;
        // The first call may find out that the session is gone; the second has to be answered.
        session.client.call("2", "echo", r#"{"text":"x"}"#)?;
        session.client.answer("2")?;
        goes_on(&mut session)?;
        session.finish()?;
    }
    Ok(())
}

#[test]
fn a_status_of_500_is_an_error_and_the_session_goes_on() -> Result<()> {
    let mut session = ready(HTTP, "on tools/call/bad\n    status 500 Bench\n    body bench status")?;
    ensure!(call(&mut session, "1", "bad")?.error()?.1.contains("500"), "no status");
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn a_server_that_hangs_is_given_up_in_time() -> Result<()> {
    let rig = Rig::new(TOOLWAY)?.options(&["--timeout", "1", "--sse-read-timeout", "1"]);
    let script = "on tools/call/hang -> never\non tools/call/quiet\n    stream\n    wait for-ever\non tools/call/half\n    raw HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 100\\r\\n\\r\\n{\"jsonrpc\"\n    wait for-ever";
    let mut session = rig.script(script).start(HTTP)?;
    session.client.handshake()?;
    for (n, tool) in ["hang", "quiet", "half"].into_iter().enumerate() {
        let error = call(&mut session, &n.to_string().replace('0', "9"), tool).context(tool)?;
        let message = error.error().context(tool)?.1.to_lowercase();
        ensure!(
            message.contains("1 s") || message.contains("1s") || message.contains("tim"),
            "{tool}: {message}"
        );
    }
    goes_on(&mut session)?;
    session.finish().map(drop)
}

const BEFORE: &str = r#"send {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"before the cut"}}"#;

#[test]
fn a_cut_stream_fails_its_call_at_once() -> Result<()> {
    for end in ["cut", "end"] {
        let mut session = ready(HTTP, &format!("on tools/call/cut\n    stream\n    {BEFORE}\n    {end}"))?;
        call(&mut session, "1", "cut")?.error()?;
        ensure!(sent(&mut session, "cut")? == 1, "sent again");
        goes_on(&mut session)?;
        let rest = session.finish()?;
        ensure!(rest.len() == 1 && rest[0].contains("before the cut"), "{rest:?}");
    }
    Ok(())
}

#[test]
fn a_cut_stream_with_event_ids_is_resumed_once() -> Result<()> {
    for end in ["cut", "end"] {
        let script = format!(
            "on tools/call/cut\n    stream\n    id ev-1\n    {BEFORE}\n    resume ev-1 {{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"resumed\"}}]}}}}\n    {end}"
        );
        let mut session = ready(HTTP, &script)?;
        ensure!(call(&mut session, "1", "cut")?.text()? == "resumed", "not resumed");
        ensure!(sent(&mut session, "cut")? == 1, "sent again");
        goes_on(&mut session)?;
        ensure!(session.finish()?.len() == 1, "events were repeated");
    }
    Ok(())
}

#[test]
fn a_stream_that_cannot_be_resumed_fails_its_call() -> Result<()> {
    let script = format!(
        "on tools/call/cut\n    stream\n    id ev-1\n    {BEFORE}\n    cut\non GET when gone -> status 404"
    );
    let mut session = ready(HTTP, &script)?;
    session.upstream()?.wait("stream", SOON, |_| true)?;
    session.upstream()?.act("arm gone")?;
    call(&mut session, "1", "cut")?.error()?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn streams_are_read_however_they_are_spelled() -> Result<()> {
    let message = r#"{"jsonrpc":"2.0","id":{id},"result":{"content":[{"type":"text","text":"é漢😀"}]}}"#;
    let kinds = [
        ("crlf", format!("raw : hi\\r\\nevent: message\\r\\nid: 1\\r\\ndata: {message}\\r\\n\\r\\n")),
        ("cr", format!("raw event: message\\rdata: {message}\\r\\r")),
        ("bare", format!("raw data:{message}\\n\\n")),
        ("bytes", format!("pieces 1\n    raw \\xef\\xbb\\xbfdata: {message}\\r\\n\\r\\n")),
        ("lines", r#"raw data: {"jsonrpc":"2.0",\ndata: "id":{id},\ndata: "result":{"content":[{"type":"text","text":"é漢😀"}]}}\n\n"#.to_owned()),
        ("others", format!("raw event: ping\\ndata: {{}}\\n\\nretry: 5\\nunknown: x\\n\\ndata\\n\\ndata: {message}\\n\\n")),
    ];
    for (name, actions) in kinds {
        let mut session = ready(HTTP, &format!("on tools/call/{name}\n    stream\n    {actions}"))?;
        let answer = call(&mut session, "1", name).context(name)?;
        ensure!(answer.text().context(name)? == "é漢😀", "{name}: {}", answer.line);
        goes_on(&mut session)?;
        session.finish().context(name)?;
    }
    Ok(())
}

#[test]
fn a_refused_connection_is_the_first_answer() -> Result<()> {
    let mut rig = Rig::new(TOOLWAY)?;
    let port = rig.serve(HTTP, 0)?.peer.port();
    let mut client = Client::start(&mut rig.remote(HTTP, port))?;
    client.send(INITIALIZE)?;
    let answer = Answer::of(&client.answer("0")?)?;
    ensure!(answer.error()?.1.contains("127.0.0.1"), "{}", answer.line);
    client.close_stdin();
    let status = client.wait_exit(SOON)?;
    ensure!(matches!(status.code(), Some(0 | 4)), "{status}");
    client.capture.check_complete()?;
    rig.check_leftovers()
}

#[test]
fn the_server_speaks_first_and_asks_in_between() -> Result<()> {
    let script = "on tools/call/ask\n    stream\n    send {\"jsonrpc\":\"2.0\",\"id\":\"s-1\",\"method\":\"roots/list\"}\n    wait response:\"s-1\"\n    text asked";
    let mut session = ready(HTTP, script)?;
    session.client.answer_to("roots/list", r#"{"roots":[]}"#);
    session.upstream()?.wait("stream", SOON, |_| true)?;
    session.upstream()?.act(r#"send {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)?;
    session.client.line_that(SOON, "list_changed", |l| l.ends_with(b"list_changed\"}"))?;
    ensure!(call(&mut session, "1", "ask")?.text()? == "asked", "not answered");
    session.finish().map(drop)
}

#[test]
fn the_session_is_closed_at_the_end() -> Result<()> {
    let mut session = ready(HTTP, "")?;
    session.upstream()?.wait("stream", SOON, |_| true)?;
    session.client.close_stdin();
    session.client.wait_exit(SOON)?;
    let requests = session.upstream()?.requests();
    let last = requests.last().context("no request")?;
    ensure!(last.verb == "DELETE" && last.header("mcp-session-id") == Some("S1"), "{last:?}");
    for request in requests.iter().skip(1) {
        ensure!(request.header("mcp-protocol-version") == Some("2025-11-25"), "{request:?}");
    }
    session.ended().map(drop)
}

#[test]
fn hundreds_of_calls_that_hang_block_no_cancellation() -> Result<()> {
    let mut session = ready(HTTP, "on tools/call/held\n    wait go\n    text held")?;
    for n in 1..=300 {
        session.client.call(&n.to_string(), "held", "{}")?;
    }
    // The first is running, the last still waits for one of the others to end.
    session.upstream()?.wait_for("\"id\":1,", SOON)?;
    for n in [1, 300] {
        session.client.send(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{n}}}}}"#
        ))?;
    }
    session.upstream()?.wait_for("notifications/cancelled", SOON)?;
    session.upstream()?.act("arm go")?;
    for n in 2..300 {
        session.client.answer(&n.to_string())?;
    }
    goes_on(&mut session)?;
    session.finish().map(drop)
}
