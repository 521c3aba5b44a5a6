//! `toolway doctor` before broken set-ups: each has one cause, which must be named at its layer, with its fix.

mod causes;
mod clients;
mod files;
mod processes;
mod remotes;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::House;

/// What doctor must say of one server.
#[derive(Debug, Clone, Copy)]
struct Cause {
    server: &'static str,
    layer: &'static str,
    /// Parts of the finding.
    says: &'static [&'static str],
    /// A part of the fix.
    fix: &'static str,
}

/// Runs doctor, which must find a fault.
fn sick(house: &House, args: &[&str]) -> Result<Value> {
    report(house, args, 1)
}

/// Runs doctor, which must find none.
fn well(house: &House, args: &[&str]) -> Result<Value> {
    report(house, args, 0)
}

fn report(house: &House, args: &[&str], code: i32) -> Result<Value> {
    let told = house.run(["doctor", "--json", "--timeout", "3s"].iter().chain(args))?.ended(code)?;
    let report = told.json()?;
    ensure!(report["schema"] == "toolway.doctor/1", "{report:#}");
    ensure!(report["usable"] == (code == 0), "{report:#}");
    // The page for people says the same.
    let page = house.run(["doctor", "--timeout", "3s"].iter().chain(args))?.ended(code)?;
    ensure!(page.out.contains("enabled servers usable"), "{page:#?}");
    Ok(report)
}

/// The checks of a server.
fn checks<'a>(report: &'a Value, server: &str) -> Result<&'a Vec<Value>> {
    let servers = report["servers"].as_array().context("no servers")?;
    let named = servers.iter().rfind(|one| one["name"] == server).context("no such server")?;
    named["checks"].as_array().context("no checks")
}

/// The cause is among the checks that are not ok, and nothing else of that weight is.
fn holds(report: &Value, verdict: &str, cause: Cause) -> Result<()> {
    let checks = checks(report, cause.server)?;
    let found: Vec<&Value> = checks.iter().filter(|check| check["verdict"] == verdict).collect();
    let fits = |check: &&&Value| {
        let (finding, fix) = (check["finding"].as_str().unwrap_or(""), check["fix"].as_str().unwrap_or(""));
        check["layer"] == cause.layer
            && cause.says.iter().all(|part| finding.contains(part))
            && fix.contains(cause.fix)
    };
    ensure!(found.iter().any(|check| fits(&check)), "{cause:?} is not in {checks:#?}");
    ensure!(verdict != "fault" || found.len() == 1, "more than one cause: {found:#?}");
    Ok(())
}

/// A server that works, beside the broken one.
fn good(house: &House) -> Result<Value> {
    house.entry("good", "on tools/call/hi -> text hello")
}

#[test]
fn a_server_that_works_passes_every_layer() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({"good": good(&house)?}))?;
    let found = well(&house, &[])?;
    let layers: Vec<&str> =
        checks(&found, "good")?.iter().filter_map(|check| check["layer"].as_str()).collect();
    for layer in
        ["file", "policy", "trust", "command", "spawn", "transport", "generation", "authorised", "tools"]
    {
        ensure!(layers.contains(&layer), "no {layer} in {layers:?}");
    }
    assert_eq!(found["servers"][0]["state"], "connected");
    assert_eq!(found["servers"][0]["usable"], true);
    assert_eq!(found["servers"][0]["tools"]["count"], 1);
    house.leave()
}

#[test]
fn a_sample_call_is_made_when_asked() -> Result<()> {
    let house = House::new()?;
    let bad = house.entry("bad", r#"on tools/call/fails -> answer {"content":[],"isError":true}"#)?;
    house.configure(&json!({"good": good(&house)?, "bad": bad}))?;
    well(&house, &["good", "--call", "hi"])?;
    let found = sick(&house, &["bad", "--call", "fails"])?;
    holds(
        &found,
        "fault",
        Cause { server: "bad", layer: "call", says: &["fails", "isError"], fix: "toolway call" },
    )?;
    house.run(["doctor", "--call", "hi"])?.ended(2)?.says(&["--call needs the one SERVER"])?;
    house.run(["doctor", "god"])?.ended(2)?.says(&["no server is called \"god\"", "did you mean good?"])?;
    house.leave()
}

#[test]
fn the_cloud_is_told_of_each_entry() -> Result<()> {
    let house = House::new()?;
    house.configure(&json!({
        "files": {"command": "npx", "args": ["-y", "x"], "cwd": "/tmp", "env": {"GITHUB_TOKEN": "t-sentinel"}},
        "far": {"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer t-sentinel"}},
        "near": {"url": "http://localhost:9/mcp"},
    }))?;
    let told = house.run(["doctor", "--json", "--no-start", "--cloud"])?;
    let found = told.json()?;
    ensure!(!told.out.contains("t-sentinel") && !told.err.contains("t-sentinel"), "{told:#?}");
    let cloud = found["cloud"].as_array().context("no cloud")?;
    let placement =
        |name: &str| cloud.iter().find(|one| one["name"] == name).map(|one| one["placement"].clone());
    assert_eq!(placement("files"), Some("refused".into()));
    assert_eq!(placement("far"), Some("backend".into()));
    assert_eq!(placement("near"), Some("refused".into()));
    let text = cloud.iter().map(Value::to_string).collect::<String>();
    ensure!(text.contains("cannot include cwd") && text.contains("GITHUB_TOKEN would be readable"), "{text}");
    house.leave()
}
