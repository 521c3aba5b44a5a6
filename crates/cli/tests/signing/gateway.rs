//! The gateway before a server that wants a login: it waits, comes, is lost, and disturbs no other.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use toolway_testkit::oauth::{Grant, Issuer, IssuerOptions, Stage, Which};
use toolway_testkit::{Client, SOON};

use crate::home::{Home, error, finish, says};

fn tools(client: &mut Client, id: &str) -> Result<Vec<String>> {
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#))?;
    let answer: Value = serde_json::from_slice(&client.answer(id)?)?;
    let tools = answer["result"]["tools"].as_array().context("no tools")?;
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    Ok(names.filter(|name| !name.starts_with("toolway")).map(str::to_owned).collect())
}

#[test]
fn tools_appear_when_somebody_signs_in_elsewhere() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let home = Home::new()?;
    home.configure(&issuer)?;
    let mut client = home.gateway()?;
    ensure!(tools(&mut client, "1")? == ["two__plain"]);
    client.call("2", "one__echo", r#"{"text":"x"}"#)?;
    let (text, _) = error(&client.answer("2")?)?;
    ensure!(text.contains("\"one\" is needs_auth: run: toolway login one"), "{text}");
    home.log_in()?;
    let until = Instant::now() + SOON;
    for id in 10.. {
        client.line_that(SOON, "word of other tools", |line| {
            String::from_utf8_lossy(line).contains("notifications/tools/list_changed")
        })?;
        let found = tools(&mut client, &id.to_string())?;
        if found.contains(&"one__echo".to_owned()) && found.contains(&"two__plain".to_owned()) {
            break;
        }
        ensure!(Instant::now() < until, "{found:?}");
    }
    client.call("4", "one__echo", r#"{"text":"signed"}"#)?;
    says(&client.answer("4")?, "signed")?;
    finish(client, 0)?;
    home.leave()
}

#[test]
fn a_refresh_that_hangs_or_is_dead_concerns_its_own_server_alone() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let home = Home::new()?;
    home.configure(&issuer)?;
    home.log_in()?;
    let mut client = home.gateway()?;
    client.call("1", "one__echo", r#"{"text":"signed"}"#)?;
    says(&client.answer("1")?, "signed")?;

    issuer.hold_grant(Grant::RefreshToken, Stage::BeforeProcessing, Which::Next);
    issuer.expire_access_tokens();
    client.call("2", "one__echo", r#"{"text":"refreshed"}"#)?;
    issuer.held(SOON)?;
    client.call("3", "two__plain", "{}")?;
    says(&client.answer("3")?, "fine").context("while a refresh of another server hangs")?;
    issuer.release();
    says(&client.answer("2")?, "refreshed")?;

    issuer.revoke_everything();
    for id in ["4", "5"] {
        client.call(id, "one__echo", r#"{"text":"x"}"#)?;
        let (text, data) = error(&client.answer(id)?)?;
        ensure!(text.contains("\"one\"") && text.ends_with("To sign in, run: toolway login one"), "{text}");
        ensure!(data["needs_auth"] == true, "{data}");
    }
    client.call("6", "two__plain", "{}")?;
    says(&client.answer("6")?, "fine")?;
    ensure!(issuer.journal().reused() == 0, "{}", issuer.journal().told());
    home.log_in()?;
    // A token that was refused a moment ago is not asked about again at once.
    let until = Instant::now() + SOON;
    for id in 10.. {
        client.call(&id.to_string(), "one__echo", r#"{"text":"again"}"#)?;
        let answer = client.answer(&id.to_string())?;
        if says(&answer, "again").is_ok() {
            break;
        }
        ensure!(Instant::now() < until, "{}", String::from_utf8_lossy(&answer));
    }
    finish(client, 0)?;
    home.leave()
}
