//! Causes that show when a server is reached over HTTP.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_testkit::FakeTransport;

use super::{Cause, checks, good, holds, sick, well};
use crate::House;

/// A script for an HTTP server, and what is wrong with it.
const SCRIPTS: [(&str, Cause); 8] = [
    (
        "on POST -> status 200 OK\n    header content-type: text/html\n    body <html>Log in</html>",
        Cause { server: "r", layer: "transport", says: &["200", "text/html"], fix: "login page" },
    ),
    (
        "on POST -> status 401 Unauthorized\n    header www-authenticate: Bearer\n    body {}",
        Cause { server: "r", layer: "authorised", says: &["401"], fix: "" },
    ),
    (
        "on POST -> status 403 Forbidden\n    header content-type: application/json\n    body {\"error\":\"insufficient_scope\"}",
        Cause { server: "r", layer: "authorised", says: &["403"], fix: "" },
    ),
    (
        "on POST -> status 404 Not Found\n    body no\non GET -> status 404 Not Found\n    body no",
        Cause { server: "r", layer: "transport", says: &["404"], fix: "path" },
    ),
    (
        "on POST -> status 500 Oops\n    body no",
        Cause { server: "r", layer: "transport", says: &["500"], fix: "trouble" },
    ),
    (
        "on POST -> status 429 Slow\n    body no",
        Cause { server: "r", layer: "transport", says: &["429"], fix: "wait" },
    ),
    (
        "on POST -> status 302 Found\n    header location: https://other.example/login\n    body no",
        Cause { server: "r", layer: "transport", says: &["302"], fix: "" },
    ),
    (
        "on initialize -> never",
        Cause { server: "r", layer: "transport", says: &["no answer"], fix: "startupTimeoutMs" },
    ),
];

#[test]
fn an_address_that_does_not_answer_as_it_should_is_told_apart() -> Result<()> {
    for (script, cause) in SCRIPTS {
        let (house, upstream, url) = House::new()?.serve(FakeTransport::Http, script)?;
        house.configure(&json!({"r": {"type": "http", "url": url}, "good": good(&house)?}))?;
        let found = sick(&house, &[])?;
        holds(&found, "fault", cause).with_context(|| script.to_owned())?;
        drop(upstream);
        house.leave()?;
    }
    Ok(())
}

#[test]
fn nobody_listening_is_told() -> Result<()> {
    let house = House::new()?;
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    house.configure(&json!({"r": {"url": format!("http://127.0.0.1:{port}/mcp?key=q-sentinel")}}))?;
    let found = sick(&house, &[])?;
    ensure!(!found.to_string().contains("q-sentinel"), "{found:#}");
    holds(&found, "fault", Cause { server: "r", layer: "transport", says: &["127.0.0.1"], fix: "running" })?;
    house.leave()
}

#[test]
fn a_host_that_has_no_address_is_told() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"r": {"url": "http://no-such-host.invalid/mcp"}}))?;
    let found = sick(&house, &[])?;
    holds(
        &found,
        "fault",
        Cause { server: "r", layer: "transport", says: &["no-such-host.invalid"], fix: "host" },
    )?;
    house.leave()
}

#[test]
fn sse_behind_an_http_type_works_and_is_told() -> Result<()> {
    let (house, upstream, url) = House::new()?.serve(FakeTransport::Sse, "on tools/call/hi -> text hello")?;
    house.configure(&json!({"r": {"type": "http", "url": url}}))?;
    let found = well(&house, &[])?;
    holds(
        &found,
        "warning",
        Cause { server: "r", layer: "transport", says: &["HTTP+SSE"], fix: "\"type\": \"sse\"" },
    )?;
    house.configure(&json!({"r": {"type": "sse", "url": url}}))?;
    let found = well(&house, &[])?;
    ensure!(checks(&found, "r")?.iter().all(|check| check["verdict"] == "ok"), "{found:#}");
    drop(upstream);
    house.leave()
}
