//! The commands of a person: exit codes, what the doctor finds, and a step up.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use toolway_testkit::oauth::{Issuer, IssuerOptions};

use crate::home::Home;

fn doctor(home: &Home, code: i32) -> Result<Value> {
    home.run(&["doctor", "one", "--json"])?.ended(code)?.json()
}

/// What the doctor found about the login.
fn found(report: &Value) -> Result<(String, String)> {
    let checks = report["servers"][0]["checks"].as_array().context("no checks")?;
    let check = checks.iter().find(|check| check["layer"] == "authorised");
    let check = check.with_context(|| format!("no word about a login: {report:#}"))?;
    let text = |name: &str| check[name].as_str().unwrap_or_default().to_owned();
    Ok((text("finding"), text("fix")))
}

#[test]
fn commands_say_how_to_sign_in_and_work_when_that_was_done() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let home = Home::new()?;
    home.configure(&issuer)?;
    for words in [&["call", "one", "echo"][..], &["tools", "one"], &["ping", "one"]] {
        let told = home.run(words)?.ended(5)?;
        told.says(&["toolway login one"]).with_context(|| format!("{words:?}"))?;
    }
    let listed = home.run(&["list", "--json"])?.json()?.to_string();
    ensure!(listed.contains("\"needs_auth\"") && listed.contains("run: toolway login one"), "{listed}");
    let report = doctor(&home, 1)?;
    ensure!(report["servers"][0]["state"] == "needs_auth", "{report:#}");
    let (finding, fix) = found(&report)?;
    ensure!(finding.contains("HTTP 401") && finding.contains("no token is kept for it"), "{finding}");
    ensure!(fix == "run: toolway login one", "{fix}");

    home.log_in()?;
    home.run(&["call", "one", "echo", "text=hello"])?.ended(0)?.says(&["hello"])?;
    let (finding, _) = found(&doctor(&home, 0)?)?;
    let kept = format!("signed in: a token is kept at {}, for mcp", issuer.url());
    ensure!(finding.starts_with(&kept), "{finding}");

    // By address, the same tokens.
    let url = issuer.resource_url().to_owned();
    let told = home.command(&["call", "--url", &url, "echo", "text=by address"]).output()?;
    ensure!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));

    issuer.revoke_everything();
    let (finding, fix) = found(&doctor(&home, 1)?)?;
    ensure!(finding.contains("kept") && fix == "run: toolway login one", "{finding} {fix}");
    home.leave()
}

#[test]
fn a_missing_scope_is_named_and_the_next_login_asks_for_it() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let home = Home::new()?;
    home.configure(&issuer)?;
    home.log_in()?;
    let told = home.run(&["call", "one", "admin"])?.ended(5)?;
    told.says(&["insufficient_scope", "scope=\"admin\"", "toolway login one"])?;
    home.log_in()?;
    home.run(&["call", "one", "admin"])?.ended(0)?;
    home.leave()
}
