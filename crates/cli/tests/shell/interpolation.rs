//! Placeholders end to end: what the child and the server at an address get, and that no secret is shown.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_testkit::FakeTransport;

use crate::House;

const SCRIPT: &str = "on tools/call/hi -> text hello";
const WORDS: [&str; 9] = [
    "${env:TOK}",
    "${TOK}",
    "$TOK",
    "${UNSET:-dflt}",
    "${EMPTY:-dflt}",
    "${workspaceFolder}/x",
    "${userHome}/y",
    "{env:TOK}",
    "$${TOK}",
];

fn house() -> Result<House> {
    Ok(House::new()?.with_variable("TOK", "s3cr3t").with_variable("EMPTY", ""))
}

/// No output of these commands shows the secret.
fn silent(house: &House, server: &str) -> Result<()> {
    for line in [
        vec!["list"],
        vec!["list", "--json"],
        vec!["list", "--json", "--no-start"],
        vec!["ping", server],
        vec!["tools", "-vv", server],
        vec!["call", "-vv", server, "hi"],
    ] {
        let told = house.run(&line)?;
        ensure!(!format!("{told:?}").contains("s3cr3t"), "{line:?}: {told:#?}");
    }
    Ok(())
}

#[test]
fn a_childs_arguments_are_as_cursor_has_them() -> Result<()> {
    let mut house = house()?;
    let mut entry = house.entry("a", SCRIPT)?;
    let args = entry["args"].as_array_mut().context("no args")?;
    // The fake takes flags that it does not know, and what stands behind them, as words.
    args.extend(WORDS.iter().map(|word| json!(format!("--word={word}"))));
    entry["cwd"] = json!("${workspaceFolder}");
    house.write("home/.cursor/mcp.json", &json!({"mcpServers": {"a": entry}}).to_string())?;
    let told = house.run(["call", "a", "hi"])?.ended(0)?;
    assert_eq!(told.out, "hello\n");
    let start = house.rig.arrival()?.start.clone();
    let args = start["args"].as_array().context("no args")?;
    let words: Vec<&str> = args.iter().filter_map(|arg| arg.as_str()?.strip_prefix("--word=")).collect();
    let (here, home) =
        (house.rig.path().display().to_string(), house.rig.path().join("home").display().to_string());
    let expected = [
        "s3cr3t",
        "s3cr3t",
        "$TOK",
        "dflt",
        "dflt",
        &format!("{here}/x"),
        &format!("{home}/y"),
        "{env:TOK}",
        "${TOK}",
    ];
    assert_eq!(words, expected);
    assert_eq!(start["cwd"].as_str(), Some(&*here));
    told.says(&["args"])?;
    silent(&house, "a")?;
    house.leave()
}

#[test]
fn an_unset_variable_is_named_and_nothing_is_sent() -> Result<()> {
    let (house, mut upstream, url) = house()?.serve(FakeTransport::Http, SCRIPT)?;
    let entry = json!({
        "url": format!("{url}/${{env:TOK}}"),
        "headers": {"Authorization": "Bearer ${TOK}", "X-U": "${UNSET}"},
    });
    house.write("home/.cursor/mcp.json", &json!({"mcpServers": {"b": entry}}).to_string())?;
    house.run(["call", "b", "hi"])?.ended(2)?.says(&["UNSET", "headers.X-U"])?;
    let listed = house.run(["list", "--json"])?.ended(0)?.json()?;
    let server = &listed["servers"][0];
    assert_eq!((server["state"].as_str(), server["stage"].as_str()), (Some("failed"), Some("configure")));
    ensure!(server["reason"].as_str().is_some_and(|reason| reason.contains("UNSET")), "{server}");
    silent(&house, "b")?;
    ensure!(upstream.peer.requests().is_empty(), "something was sent");
    drop(upstream);
    house.leave()
}

#[test]
fn an_input_is_asked_of_a_person_and_nothing_is_sent() -> Result<()> {
    let (house, mut upstream, url) = house()?.serve(FakeTransport::Http, SCRIPT)?;
    let entry = json!({"url": url, "headers": {"X": "${input:key}"}});
    house.write("home/.cursor/mcp.json", &json!({"mcpServers": {"c": entry}}).to_string())?;
    house.run(["call", "c", "hi"])?.ended(2)?.says(&["key"])?;
    let listed = house.run(["list", "--json"])?.ended(0)?.json()?;
    assert_eq!(listed["servers"][0]["state"], "needs_input");
    ensure!(upstream.peer.requests().is_empty(), "something was sent");
    drop(upstream);
    house.leave()
}

#[test]
fn what_a_crashing_server_writes_is_shown_without_its_secrets() -> Result<()> {
    let house = house()?;
    let mut entry = house
        .entry("a", "on start\n    stderr my password is s3cr3t-pw and {x*9000} last words\n    exit 7")?;
    entry["env"] = json!({"PW": "${TOK}-pw"});
    house.configure(&json!({"a": entry}))?;
    for line in [vec!["call", "-vv", "a", "hi"], vec!["list"], vec!["list", "--json"], vec!["ping"]] {
        let told = house.run(&line)?;
        told.says(&["last words", "7"])?;
        ensure!(!format!("{told:?}").contains("s3cr3t"), "{line:?}: {told:#?}");
        ensure!(told.out.len() + told.err.len() < 12_000, "{line:?}");
    }
    house.leave()
}

#[test]
fn headers_and_addresses_are_filled_in() -> Result<()> {
    let (house, mut upstream, url) = house()?.serve(FakeTransport::Http, SCRIPT)?;
    let entry =
        json!({"url": format!("{url}?k=${{TOK}}"), "headers": {"Authorization": "Bearer ${env:TOK}"}});
    house.write("home/.cursor/mcp.json", &json!({"mcpServers": {"d": entry}}).to_string())?;
    house.run(["call", "d", "hi"])?.is(0, "hello\n", "")?;
    let request = upstream.peer.requests().into_iter().next().context("no request")?;
    assert_eq!(
        (request.path.as_str(), request.header("authorization")),
        ("/mcp?k=s3cr3t", Some("Bearer s3cr3t"))
    );
    silent(&house, "d")?;
    drop(upstream);
    house.leave()
}
