//! Exit codes: each reason has its own, and says what to do.

use anyhow::{Result, ensure};
use toolway_testkit::FakeTransport;

use crate::House;

#[test]
fn usage_is_2() -> Result<()> {
    let house = House::new()?;
    for line in [
        vec!["call"],
        vec!["call", "s"],
        vec!["call", "--url", "not an address", "t"],
        vec!["call", "--command", "'open", "t"],
        vec!["call", "--command", "x", "--url", "http://h", "t"],
        vec!["call", "--command", "x", "--config", "f", "t"],
        vec!["call", "--header", "A=b", "s", "t"],
        vec!["read"],
        vec!["tools", "--url", "http://127.0.0.1:9/", "--transport", "pigeon"],
        vec!["ping", "s", "--url", "http://127.0.0.1:9/"],
        vec!["completions", "tcsh"],
        vec!["man", "nothing"],
        vec!["list", "--timeout", "soon"],
    ] {
        let told = house.run(&line)?;
        ensure!(
            told.code == Some(2) && told.out.is_empty() && told.err.contains("error: "),
            "{line:?}: {told:#?}"
        );
    }
    house.leave()
}

#[test]
fn an_unreachable_server_is_4() -> Result<()> {
    let house = House::new()?;
    // A port that nobody listens on: it was free a moment ago.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    house.run(["ping", "--url", &url])?.ended(4)?.says(&["cannot connect"])?;
    house.run(["call", "--url", &url, "t"])?.ended(4)?;
    house.run(["call", "--command", "no-such-binary-xyz", "t"])?.ended(4)?.says(&["command not found"])?;
    let crash = house.command("on start\n    stderr out of luck\n    exit 3")?;
    house.run(["call", "--command", &crash, "t"])?.ended(4)?.says(&["out of luck"])?;
    let mute = house.command("set defaults off")?;
    house.run(["call", "--timeout", "500ms", "--command", &mute, "t"])?.ended(4)?.says(&["initialize"])?;
    let silent = house.command("on tools/call/t -> never")?;
    house.run(["call", "--timeout", "1s", "--command", &silent, "t"])?.ended(4)?.says(&["tools/call"])?;
    let dying = house.command("on tools/call/t\n    stderr last words\n    exit 9")?;
    house.run(["call", "--command", &dying, "t"])?.ended(4)?.says(&["9"])?;
    house.leave()
}

#[test]
fn a_login_is_5_and_other_statuses_are_told() -> Result<()> {
    for (script, code, texts) in [
        (
            "on POST -> status 401 Unauthorized\n    header WWW-Authenticate: Bearer realm=\"x\"\n    body no",
            5,
            ["login", "401"],
        ),
        (
            "on POST -> status 403 Forbidden\n    header Content-Type: application/json\n    body {\"error\":\"insufficient_scope\"}",
            5,
            ["403", "insufficient_scope"],
        ),
        ("on POST -> status 500 Broken\n    body it\\sbroke", 4, ["500", "it broke"]),
        (
            "on POST -> status 200 OK\n    header Content-Type: text/html\n    body <html>Log\\sin</html>",
            4,
            ["HTML", "not MCP"],
        ),
    ] {
        let (house, upstream, url) = House::new()?.serve(FakeTransport::Http, script)?;
        let told = house.run(["call", "--url", &url, "--transport", "http", "t"])?.ended(code)?;
        told.says(&texts)?;
        ensure!(!told.err.contains("untagged"), "{told:?}");
        drop(upstream);
        house.leave()?;
    }
    Ok(())
}

#[test]
fn what_a_server_writes_into_errors_steers_nothing() -> Result<()> {
    let house = House::new()?;
    let command = house.command("on tools/call/t -> error -32000 \u{1b}[2Jgone\u{9b}1m")?;
    let told = house.run(["call", "--command", &command, "t"])?.ended(1)?;
    ensure!(!told.err.contains(['\u{1b}', '\u{9b}']), "{told:?}");
    told.says(&["\\x1b[2Jgone\\u{9b}1m"])?;
    house.leave()
}
