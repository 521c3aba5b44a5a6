//! Streamable HTTP beyond its failures: redirects, connections that go stale, streams that are opened again, and the
//! headers of the 2026-07-28 revision.

use anyhow::{Context as _, Result, ensure};
use toolway_testkit::{FakeTransport, HttpRequest, Rig, SOON, Session};

use crate::answer::Answer;
use crate::{TOOLWAY, call, goes_on, ready};

const HTTP: FakeTransport = FakeTransport::Http;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn last_post(session: &mut Session, text: &str) -> Result<HttpRequest> {
    let requests = session.upstream()?.requests();
    let fits = |r: &&HttpRequest| r.verb == "POST" && String::from_utf8_lossy(&r.body).contains(text);
    requests.iter().rfind(fits).cloned().with_context(|| format!("no POST with {text}"))
}

#[test]
fn redirects_of_the_same_origin_keep_method_body_and_headers() -> Result<()> {
    for status in [307, 308] {
        let script = format!("on POST 3\n    status {status}\n    header Location: /mcp?moved=yes");
        let rig = Rig::new(TOOLWAY)?.script(&script).options(&["--header", "Authorization=Bearer x"]);
        let mut session = rig.start(HTTP)?;
        session.client.handshake()?;
        goes_on(&mut session)?;
        let moved = last_post(&mut session, "\"next\"")?;
        ensure!(
            moved.path.contains("moved=yes") && moved.header("authorization") == Some("Bearer x"),
            "{moved:?}"
        );
        ensure!(moved.header("mcp-session-id") == Some("S1"), "{moved:?}");
        session.finish()?;
    }
    Ok(())
}

#[test]
fn a_ring_of_redirects_is_one_error() -> Result<()> {
    let mut session = ready(HTTP, "on tools/call/ring\n    status 307\n    header Location: /mcp")?;
    call(&mut session, "1", "ring")?.error()?;
    let count = session.upstream()?.requests().len();
    ensure!(count < 40, "{count} requests");
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn connections_that_the_server_closed_are_not_used_again() -> Result<()> {
    let mut session = ready(HTTP, "")?;
    for n in 0..5 {
        goes_on(&mut session).with_context(|| n.to_string())?;
        session.upstream()?.act("reset")?;
    }
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn the_servers_own_stream_is_opened_again() -> Result<()> {
    let mut session = ready(HTTP, "")?;
    session.upstream()?.wait("stream", SOON, |_| true)?;
    session.upstream()?.act("reset")?;
    session.upstream()?.wait("stream", SOON, |_| true)?;
    session.upstream()?.act(r#"send {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#)?;
    session.client.line_that(SOON, "list_changed", |l| l.ends_with(b"list_changed\"}"))?;
    goes_on(&mut session)?;
    session.finish().map(drop)
}

#[test]
fn answers_are_read_however_http_frames_them() -> Result<()> {
    let body = r#"{"jsonrpc":"2.0","id":"f","result":{"content":[{"type":"text","text":"framed"}]}}"#;
    let length = body.len();
    let kinds = [
        ("chunked", "chunked\n    pieces 1\n    text framed".to_owned()),
        ("charset", "header Content-Type: Application/JSON; charset=utf-8\n    text framed".to_owned()),
        ("bytewise", "pieces 1\n    text framed".to_owned()),
        ("until-close", format!("raw HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n\\r\\n{body}\n    close")),
        ("old", format!("raw HTTP/1.0 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: {length}\\r\\n\\r\\n{body}\n    close")),
        ("last", format!("raw HTTP/1.1 200 OK\\r\\nConnection: close\\r\\nContent-Type: application/json\\r\\nContent-Length: {length}\\r\\n\\r\\n{body}\n    close")),
        ("informed", format!("raw HTTP/1.1 103 Early Hints\\r\\nLink: <x>\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: {length}\\r\\n\\r\\n{body}")),
        ("lines", "header Content-Type: application/json\n    body {\\n  \\x22jsonrpc\\x22: \\x222.0\\x22,\\r\\n  \\x22id\\x22: {id},\\n  \\x22result\\x22: {\\x22content\\x22: [{\\x22type\\x22: \\x22text\\x22, \\x22text\\x22: \\x22framed\\x22}]}\\n}\\n".to_owned()),
        ("batch", "body [{\\x22jsonrpc\\x22:\\x222.0\\x22,\\x22method\\x22:\\x22n\\x22},{\\x22jsonrpc\\x22:\\x222.0\\x22,\\x22id\\x22:{id},\\x22result\\x22:{\\x22content\\x22:[{\\x22type\\x22:\\x22text\\x22,\\x22text\\x22:\\x22framed\\x22}]}}]".to_owned()),
    ];
    for (name, actions) in kinds {
        let mut session = ready(HTTP, &format!("on tools/call/{name}\n    {actions}"))?;
        session.client.call("\"f\"", name, "{}")?;
        let line = session.client.answer("\"f\"").context(name)?;
        ensure!(
            String::from_utf8_lossy(&line).contains("framed"),
            "{name}: {}",
            String::from_utf8_lossy(&line)
        );
        goes_on(&mut session).context(name)?;
        session.finish().context(name)?;
    }
    Ok(())
}

#[test]
fn the_modern_revision_gets_its_headers_and_no_session() -> Result<()> {
    let script = r#"set session off
set get off
tool {"name":"query é","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}
on server/discover -> answer {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}
on tools/call -> text done"#;
    let mut session = Rig::new(TOOLWAY)?.script(script).start(HTTP)?;
    session
        .client
        .send(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}"#))?;
    session.client.answer("1")?;
    session
        .client
        .send(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{META}}}}}"#))?;
    session.client.answer("2")?;
    session.client.send(&format!(r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"query é","arguments":{{"region":"eu"}},{META}}}}}"#))?;
    session.client.answer("3")?;
    let discover = last_post(&mut session, "server/discover")?;
    ensure!(discover.header("mcp-protocol-version") == Some("2026-07-28"), "{discover:?}");
    ensure!(
        discover.header("mcp-method") == Some("server/discover") && discover.header("mcp-name").is_none(),
        "{discover:?}"
    );
    let called = last_post(&mut session, "tools/call")?;
    ensure!(
        called.header("mcp-method") == Some("tools/call") && called.header("mcp-param-region") == Some("eu"),
        "{called:?}"
    );
    ensure!(called.header("mcp-name") == Some("=?base64?cXVlcnkgw6k=?="), "{called:?}");
    ensure!(
        session
            .upstream()?
            .requests()
            .iter()
            .all(|r| r.verb == "POST" && r.header("mcp-session-id").is_none()),
        "a session"
    );
    session.finish().map(drop)
}

#[test]
fn a_modern_cancellation_closes_its_stream() -> Result<()> {
    let script = "set session off\nset get off\non tools/call/long\n    stream\n    wait for-ever";
    let mut session = Rig::new(TOOLWAY)?.script(script).start(HTTP)?;
    session.client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"long",{META}}}}}"#
    ))?;
    session.upstream()?.wait_for("\"long\"", SOON)?;
    session.client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":1,{META}}}}}"#
    ))?;
    session.upstream()?.wait("closed", SOON, |_| true)?;
    let told =
        session.upstream()?.requests().iter().any(|r| String::from_utf8_lossy(&r.body).contains("cancelled"));
    ensure!(!told, "the cancellation was sent as a message");
    session.finish().map(drop)
}

#[test]
fn a_header_mismatch_of_the_modern_revision_is_passed_on() -> Result<()> {
    let script = "set session off\non x/y\n    status 400\n    error -32022 Unsupported protocol version";
    let mut session = Rig::new(TOOLWAY)?.script(script).start(HTTP)?;
    session.client.send(&format!(r#"{{"jsonrpc":"2.0","id":"v","method":"x/y","params":{{{META}}}}}"#))?;
    let answer = Answer::of(&session.client.answer("\"v\"")?)?;
    ensure!(answer.error()? == (-32022, "Unsupported protocol version"), "{}", answer.line);
    session.finish().map(drop)
}
