//! `--oauth` on a relay.

use std::time::Instant;

use anyhow::{Result, ensure};
use toolway_testkit::oauth::{Approval, Browser, Issuer, IssuerOptions};
use toolway_testkit::{INITIALIZE, INITIALIZED, SOON};

use crate::home::{Home, error, finish, says};

#[test]
fn relays_of_one_user_sign_in_once_and_refresh_once() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let home = Home::new()?;
    let mut relays = Vec::new();
    for _ in 0..3 {
        let mut relay = home.relay(&issuer)?;
        relay.send(INITIALIZE)?;
        relays.push(relay);
    }
    let address = home.address()?;
    // The others have met the refusal too before the person does anything.
    issuer.wait_for(SOON, |journal| journal.exchanges.iter().filter(|one| one.status == 401).count() >= 3)?;
    let visit = Browser::open(&address)?;
    ensure!(visit.status == 200, "{}", visit.text);
    for relay in &mut relays {
        says(&relay.answer("0")?, "protected")?;
        relay.send(INITIALIZED)?;
    }
    ensure!(issuer.journal().authorizations() == 1 && home.is_quiet());

    issuer.expire_access_tokens();
    for relay in &mut relays {
        relay.call("1", "echo", r#"{"text":"after a refresh"}"#)?;
    }
    for relay in &mut relays {
        let mut answer = relay.answer("1")?;
        // A token that is refused right after it was given is not asked about again at once.
        let until = Instant::now() + SOON;
        for id in 2.. {
            if says(&answer, "after a refresh").is_ok() {
                break;
            }
            ensure!(Instant::now() < until, "{}", String::from_utf8_lossy(&answer));
            relay.call(&id.to_string(), "echo", r#"{"text":"after a refresh"}"#)?;
            answer = relay.answer(&id.to_string())?;
        }
    }
    let journal = issuer.journal();
    ensure!(journal.refreshes().len() == 1 && journal.reused() == 0, "{}", journal.told());
    let secrets = issuer.secrets();
    for relay in relays {
        let stderr = relay.stderr();
        ensure!(!secrets.iter().any(|secret| stderr.contains(secret.as_str())), "{stderr}");
        finish(relay, 0)?;
    }
    home.leave()
}

#[test]
fn a_login_that_is_refused_is_an_error_that_says_what_to_do_and_no_second_browser() -> Result<()> {
    let options =
        IssuerOptions { approval: Approval::Deny("access_denied".to_owned()), ..IssuerOptions::default() };
    let issuer = Issuer::start(options)?;
    let home = Home::new()?;
    let mut relay = home.relay(&issuer)?;
    relay.send(INITIALIZE)?;
    Browser::open(&home.address()?)?;
    let (text, data) = error(&relay.answer("0")?)?;
    ensure!(text.contains("HTTP 401") && text.contains("access_denied"), "{text}");
    let command = format!("run: toolway login {}; or send the request again", issuer.resource_url());
    ensure!(data["hint"].as_str().is_some_and(|hint| hint.starts_with(&command)), "{data}");
    finish(relay, 5)?;
    home.leave()
}

#[test]
fn without_the_option_the_error_names_it() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let home = Home::new()?;
    let url = issuer.resource_url().to_owned();
    let mut relay = toolway_testkit::Client::start(&mut home.command(&["streamable-http", "--url", &url]))?;
    relay.send(INITIALIZE)?;
    let (text, _) = error(&relay.answer("0")?)?;
    ensure!(text.contains("To log in, pass --oauth, or a token with --header"), "{text}");
    finish(relay, 4)?;
    home.leave()
}
