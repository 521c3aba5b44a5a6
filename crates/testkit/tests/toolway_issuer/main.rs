//! The OAuth issuer and the resource that it protects, as a client by hand sees them.

mod faults;
mod program;
mod strict;
mod support;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use support::{Login, refresh, rpc, tool};
use toolway_testkit::SOON;
use toolway_testkit::oauth::{
    Ask, Browser, Endpoint, Grant, Issuer, IssuerOptions, Outcome, Stage, StaticClient, Which,
};

#[test]
fn a_client_finds_its_way_from_the_challenge_to_a_call() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let refused = rpc(issuer.resource_url(), None, "initialize", &json!({}))?;
    let challenge = refused.header("www-authenticate").context("no challenge")?.to_owned();
    let place = challenge.split("resource_metadata=\"").nth(1).and_then(|rest| rest.split('"').next());
    let resource = Ask::get(place.context("no place")?).send()?.json()?;
    ensure!(refused.status == 401 && challenge.contains("scope=\"mcp\""), "{challenge}");
    ensure!(resource["resource"] == issuer.resource_url(), "{resource}");
    ensure!(resource["authorization_servers"] == json!([issuer.url()]), "{resource}");

    let metadata =
        Ask::get(&format!("{}/.well-known/oauth-authorization-server", issuer.url())).send()?.json()?;
    ensure!(metadata["issuer"] == issuer.url(), "{metadata}");
    let wanted =
        json!({ "redirect_uris": ["http://127.0.0.1/callback"], "token_endpoint_auth_method": "none" });
    let registration = metadata["registration_endpoint"].as_str().context("no registration")?;
    let client = Ask::json(registration, &wanted).send()?;
    ensure!(client.status == 201, "{}", client.text());
    let id = client.json()?["client_id"].as_str().context("no id")?.to_owned();

    let login = Login::new(&issuer, &id)?.scope("mcp");
    let visit = login.visit(&Browser::default())?;
    ensure!(visit.status == 200 && login.received("state")? == "a state", "{visit:?}");
    ensure!(login.received("iss")? == issuer.url(), "{visit:?}");
    let pair = login.redeem()?;
    ensure!(pair["expires_in"] == 3600 && pair["scope"] == "mcp" && pair["token_type"] == "Bearer", "{pair}");
    let token = pair["access_token"].as_str().context("no token")?;
    let started = rpc(issuer.resource_url(), Some(token), "initialize", &json!({}))?;
    ensure!(
        started.json()?["result"]["protocolVersion"] == "2025-11-25"
            && started.header("mcp-session-id").is_some()
    );
    ensure!(tool(&issuer, token, "whoami")?.text().contains("AT1 mcp"));

    let journal = issuer.journal();
    let code = journal.grants(Grant::AuthorizationCode)[0];
    ensure!(code.presented.as_deref() == Some("C1") && code.issued == ["AT1", "RT1"], "{code:?}");
    ensure!(journal.authorizations() == 1 && journal.calls("whoami").len() == 1);
    let told = journal.told() + &format!("{journal:?}");
    for secret in issuer.secrets() {
        ensure!(!told.contains(&secret), "the journal has {secret}");
    }
    Ok(())
}

#[test]
fn a_refresh_token_is_good_once_and_its_second_use_revokes_the_family() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let seed = issuer.seed("client", true);
    ensure!(tool(&issuer, &seed.access_token, "echo")?.status == 401);
    let second = refresh(&issuer, "client", &seed.refresh_token)?.json()?;
    let access = second["access_token"].as_str().context("no token")?;
    ensure!(tool(&issuer, access, "whoami")?.text().contains("AT2"));
    let again = refresh(&issuer, "client", &seed.refresh_token)?;
    ensure!(again.status == 400 && again.json()?["error"] == "invalid_grant", "{}", again.text());
    let newest = refresh(&issuer, "client", second["refresh_token"].as_str().context("no token")?)?;
    ensure!(newest.status == 400 && tool(&issuer, access, "echo")?.status == 401);
    let journal = issuer.journal();
    ensure!(journal.reused() == 1 && journal.refused("invalid_grant").len() == 2, "{}", journal.told());
    Ok(())
}

#[test]
fn a_held_refresh_waits_before_or_after_its_work_and_is_dropped_when_its_client_goes() -> Result<()> {
    let issuer = Issuer::start(IssuerOptions::default())?;
    let seed = issuer.seed("client", true);
    let ask = |token: &str| {
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token),
            ("client_id", "client"),
            ("resource", issuer.resource_url()),
        ];
        Ask::form(&issuer.endpoint("token"), &parameters)
    };
    // Its client is killed before it was processed.
    issuer.hold(Stage::BeforeProcessing, Which::Next);
    let killed = ask(&seed.refresh_token).begin()?;
    let held = issuer.held(SOON)?;
    ensure!(held.number == 1 && held.presented.as_deref() == Some("RT1"), "{held:?}");
    drop(killed);
    let journal = issuer.wait_for(SOON, |journal| !journal.grants(Grant::RefreshToken).is_empty())?;
    ensure!(
        journal.grants(Grant::RefreshToken)[0].outcome == Outcome::Dropped && journal.refreshes().is_empty()
    );
    ensure!(issuer.all_held().is_empty());
    // The token is as good as before. Now it is processed, and its answer held back.
    issuer.hold(Stage::BeforeAnswer, Which::Nth(2));
    let waiting = ask(&seed.refresh_token).begin()?;
    issuer.held(SOON)?;
    let journal = issuer.journal();
    ensure!(journal.refreshes()[0].issued == ["AT2", "RT2"], "{}", journal.told());
    issuer.open_gates();
    let answer = toolway_testkit::oauth::Reply::read(&waiting)?.json()?;
    let third = refresh(&issuer, "client", answer["refresh_token"].as_str().context("no token")?)?;
    ensure!(third.status == 200 && issuer.journal().reused() == 0);
    Ok(())
}

#[test]
fn a_wider_scope_is_asked_for_with_a_challenge() -> Result<()> {
    let client = StaticClient::public("static");
    let issuer = Issuer::start(IssuerOptions { clients: vec![client], ..IssuerOptions::default() })?;
    let seed = issuer.seed("static", false);
    let refused = tool(&issuer, &seed.access_token, "admin")?;
    let challenge = refused.header("www-authenticate").context("no challenge")?;
    ensure!(refused.status == 403 && challenge.contains("error=\"insufficient_scope\""), "{challenge}");
    ensure!(challenge.contains("scope=\"admin\"") && challenge.contains("resource_metadata="), "{challenge}");
    let login = Login::new(&issuer, "static")?.scope("mcp admin");
    login.visit(&Browser::default())?;
    let token = login.redeem()?;
    let token = token["access_token"].as_str().context("no token")?;
    ensure!(tool(&issuer, token, "admin")?.status == 200);
    ensure!(issuer.journal().at(Endpoint::Mcp).len() == 2);
    Ok(())
}

#[test]
fn time_passes_as_the_test_wants_it() -> Result<()> {
    let issuer =
        Issuer::start(IssuerOptions { reuse_leeway: Duration::from_secs(30), ..IssuerOptions::default() })?;
    let seed = issuer.seed("client", false);
    ensure!(tool(&issuer, &seed.access_token, "whoami")?.status == 200);
    ensure!(refresh(&issuer, "client", &seed.refresh_token)?.status == 200);
    ensure!(refresh(&issuer, "client", &seed.refresh_token)?.status == 200, "within the leeway");
    issuer.advance(Duration::from_secs(31));
    ensure!(refresh(&issuer, "client", &seed.refresh_token)?.status == 400);
    ensure!(issuer.journal().reused() == 1);
    let other = issuer.seed("other", false);
    ensure!(tool(&issuer, &other.access_token, "whoami")?.status == 200);
    issuer.advance(Duration::from_hours(1));
    ensure!(tool(&issuer, &other.access_token, "whoami")?.status == 401);
    ensure!(issuer.revoke_family(&other.refresh_label));
    ensure!(refresh(&issuer, "other", &other.refresh_token)?.status == 400 && issuer.journal().reused() == 1);
    Ok(())
}
