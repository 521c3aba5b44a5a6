//! Each fault and each lie, as it is seen on the wire.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use toolway_testkit::SOON;
use toolway_testkit::oauth::{
    Ask, Endpoint, ExpiresIn, Fault, FaultRule, Issuer, IssuerOptions, MetadataPlaces, Outcome, Reply, Site,
};

use crate::support::{Login, refresh, tool};

/// An issuer whose token endpoint has this fault once, and what a refresh sees of that.
fn struck(fault: Fault) -> Result<(Issuer, Result<Reply>)> {
    let faults = vec![FaultRule::once(Endpoint::Token, fault)];
    let issuer = Issuer::start(IssuerOptions { faults, ..IssuerOptions::default() })?;
    let seed = issuer.seed("client", true);
    let reply = refresh(&issuer, "client", &seed.refresh_token);
    Ok((issuer, reply))
}

#[test]
fn a_fault_instead_leaves_the_token_as_it_was() -> Result<()> {
    let limited = Fault::Status { status: 429, error: None, retry_after: Some("3".to_owned()) };
    let faults = [
        (limited, 429, "null"),
        (Fault::status(503, "temporarily_unavailable"), 503, "temporarily_unavailable"),
        (Fault::Html(502), 502, "<h1>"),
        (Fault::Moved, 307, ""),
        (Fault::MovedElsewhere, 307, ""),
        (Fault::Redirect("${elsewhere}/x".to_owned()), 302, ""),
    ];
    for (fault, status, says) in faults {
        let (issuer, reply) = struck(fault.clone())?;
        let reply = reply?;
        ensure!(reply.status == status && reply.text().contains(says), "{fault:?}: {reply:?}");
        let exchange = issuer.journal().refreshes()[0].clone();
        ensure!(matches!(exchange.outcome, Outcome::Fault(_)) && exchange.issued.is_empty(), "{exchange:?}");
        let token =
            issuer.secrets().into_iter().find(|secret| issuer.label(secret).as_deref() == Some("RT1"));
        ensure!(refresh(&issuer, "client", &token.context("no token")?)?.status == 200, "{fault:?}");
    }
    Ok(())
}

#[test]
fn where_a_redirect_leads_the_same_is_found() -> Result<()> {
    for (fault, site) in [(Fault::Moved, Site::Issuer), (Fault::MovedElsewhere, Site::Elsewhere)] {
        let (issuer, reply) = struck(fault)?;
        let reply = reply?;
        let location = reply.header("location").context("no location")?;
        let there = url::Url::parse(&issuer.endpoint("token"))?.join(location)?;
        let second = issuer.seed("client", true);
        let parameters = [
            ("grant_type", "refresh_token"),
            ("refresh_token", second.refresh_token.as_str()),
            ("client_id", "client"),
            ("resource", issuer.resource_url()),
        ];
        ensure!(Ask::form(there.as_str(), &parameters).send()?.status == 200);
        let exchange = issuer.journal().refreshes()[1].clone();
        ensure!(exchange.site == site && exchange.endpoint == Endpoint::Token, "{exchange:?}");
    }
    Ok(())
}

#[test]
fn a_spoilt_answer_is_one_to_a_request_that_was_processed() -> Result<()> {
    let faults = [
        Fault::Lost,
        Fault::Cut,
        Fault::NotJson,
        Fault::Huge(3_000_000),
        Fault::Slow(Duration::from_millis(1)),
    ];
    for fault in faults {
        let (issuer, reply) = struck(fault.clone())?;
        match (&fault, reply) {
            (Fault::Lost | Fault::Cut, reply) => ensure!(reply.is_err(), "{fault:?}: {reply:?}"),
            (Fault::NotJson, reply) => ensure!(reply?.json().is_err()),
            (Fault::Huge(_), reply) => ensure!(reply?.body.len() > 3_000_000),
            (_, reply) => ensure!(reply?.json()?["token_type"] == "Bearer"),
        }
        let exchange = issuer.journal().refreshes()[0].clone();
        ensure!(exchange.outcome == Outcome::Done && exchange.issued == ["AT2", "RT2"], "{exchange:?}");
        ensure!(
            exchange.spoiled.len() == 1 && (exchange.status == 0) == (fault == Fault::Lost),
            "{exchange:?}"
        );
    }
    Ok(())
}

#[test]
fn a_mute_issuer_an_endless_body_and_a_drip_last_until_the_client_goes() -> Result<()> {
    let faults = vec![
        FaultRule::once(Endpoint::IssuerMetadata, Fault::Mute),
        FaultRule::nth(Endpoint::IssuerMetadata, 2, Fault::Endless),
        FaultRule::nth(Endpoint::IssuerMetadata, 3, Fault::Drip(Duration::from_hours(1))),
    ];
    let issuer = Issuer::start(IssuerOptions { faults, ..IssuerOptions::default() })?;
    let ask = Ask::get(&format!("{}/.well-known/oauth-authorization-server", issuer.url()));
    let mute = ask.begin()?;
    issuer.wait_for(SOON, |journal| journal.exchanges.len() == 1)?;
    let mut endless = ask.begin()?;
    let mut start = vec![0; 1_000_000];
    endless.read_exact(&mut start)?;
    ensure!(start.ends_with(b"    ") || start.ends_with(b"\r\n"), "no body without an end");
    let mut drip = ask.begin()?;
    let mut start = [0; 15];
    drip.read_exact(&mut start)?;
    ensure!(start.starts_with(b"HTTP/1.1 200"));
    // All three are open when the issuer ends: nothing waits for them.
    drop(issuer);
    for mut connection in [mute, endless, drip] {
        // It was closed or reset; either way it ends.
        connection.read_to_end(&mut Vec::new()).unwrap_or_default();
    }
    Ok(())
}

/// The document that the issuer shows after a fault.
fn issuer_document(rules: Vec<FaultRule>) -> Result<Value> {
    let issuer = Issuer::start(IssuerOptions { faults: rules, ..IssuerOptions::default() })?;
    let document =
        Ask::get(&format!("{}/.well-known/oauth-authorization-server", issuer.url())).send()?.json()?;
    // Ports are of no interest.
    Ok(serde_json::from_str(
        &document.to_string().replace(issuer.url(), "I").replace(issuer.elsewhere_url(), "E"),
    )?)
}

#[test]
fn metadata_lie_as_they_are_told() -> Result<()> {
    let honest = issuer_document(Vec::new())?;
    ensure!(honest["issuer"] == "I" && honest["token_endpoint"] == "I/token", "{honest}");
    ensure!(issuer_document(FaultRule::other_issuer())?["issuer"] == "E");
    let private = issuer_document(FaultRule::endpoints_at("https://[fd00::1]"))?;
    ensure!(private["token_endpoint"] == "https://[fd00::1]/token" && private["issuer"] == "I", "{private}");
    ensure!(
        issuer_document(FaultRule::no_s256(true))?["code_challenge_methods_supported"] == json!(["plain"])
    );
    ensure!(issuer_document(FaultRule::no_s256(false))?.get("code_challenge_methods_supported").is_none());
    ensure!(issuer_document(FaultRule::issuer_lacks("token_endpoint"))?.get("token_endpoint").is_none());

    let faults =
        [FaultRule::other_resource(), FaultRule::issuer_at("http://169.254.169.254/latest")].concat();
    let issuer = Issuer::start(IssuerOptions { faults, ..IssuerOptions::default() })?;
    let place = issuer.resource_url().replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
    let document = Ask::get(&place).send()?.json()?;
    ensure!(document["resource"] == format!("{}/mcp", issuer.elsewhere_url()), "{document}");
    ensure!(document["authorization_servers"] == json!(["http://169.254.169.254/latest"]), "{document}");
    Ok(())
}

#[test]
fn metadata_are_found_where_the_options_put_them_and_nowhere_else() -> Result<()> {
    let none = MetadataPlaces {
        resource_at_path: false,
        resource_at_root: false,
        oauth: false,
        openid_inserted: false,
        openid_appended: false,
    };
    let (resource, oauth, openid) = (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    );
    let cases = [
        (MetadataPlaces { resource_at_path: true, ..none }, "", format!("{resource}/mcp")),
        (MetadataPlaces { resource_at_root: true, ..none }, "", resource.to_owned()),
        (none, "", "/about/this-resource".to_owned()),
        (MetadataPlaces { oauth: true, ..none }, "/tenant/a", format!("{oauth}/tenant/a")),
        (MetadataPlaces { openid_inserted: true, ..none }, "/tenant/a", format!("{openid}/tenant/a")),
        (MetadataPlaces { openid_appended: true, ..none }, "/tenant/a", format!("/tenant/a{openid}")),
        (MetadataPlaces { oauth: true, ..none }, "/", oauth.to_owned()),
    ];
    let all: Vec<String> = cases.iter().map(|(_, _, place)| place.clone()).collect();
    for (metadata, path, place) in cases {
        let options =
            IssuerOptions { metadata, path: path.to_owned(), one_origin: true, ..IssuerOptions::default() };
        let issuer = Issuer::start(options)?;
        let origin = issuer.resource_url().trim_end_matches("/mcp");
        let mut found = Vec::new();
        for place in &all {
            if Ask::get(&format!("{origin}{place}")).send()?.status == 200 {
                found.push(place.clone());
            }
        }
        // What the challenge tells is always there.
        found.retain(|found| found != "/about/this-resource" || *found == place);
        ensure!(found == [place.clone()], "{path} {place}: {found:?}");
        ensure!(issuer.url() == format!("{origin}{path}") && issuer.endpoint("token").ends_with("/token"));
    }
    Ok(())
}

#[test]
fn lives_are_told_as_the_options_say_whatever_they_are() -> Result<()> {
    let cases = [
        (ExpiresIn::Right, json!(2)),
        (ExpiresIn::Absent, Value::Null),
        (ExpiresIn::Says(json!("3600")), json!("3600")),
        (ExpiresIn::Says(json!(-5)), json!(-5)),
        (ExpiresIn::Says(json!(1e300)), json!(1e300)),
    ];
    for (expires_in, told) in cases {
        let options = IssuerOptions {
            expires_in,
            access_token_life: Duration::from_secs(2),
            clock_skew_seconds: 86_400 * 365,
            ..IssuerOptions::default()
        };
        let issuer = Issuer::start(options)?;
        let seed = issuer.seed("client", true);
        let reply = refresh(&issuer, "client", &seed.refresh_token)?;
        let pair = reply.json()?;
        ensure!(pair.get("expires_in").cloned().unwrap_or_default() == told, "{pair}");
        ensure!(reply.header("date").is_some_and(|date| date.ends_with(" GMT")));
        let token = pair["access_token"].as_str().context("no token")?;
        ensure!(tool(&issuer, token, "echo")?.status == 200);
        issuer.advance(Duration::from_secs(2));
        ensure!(tool(&issuer, token, "echo")?.status == 401);
    }
    Ok(())
}

#[test]
fn what_is_granted_may_be_less_than_what_was_asked_for() -> Result<()> {
    let options = IssuerOptions {
        granted_scope: Some("mcp".to_owned()),
        offline_access: true,
        ..IssuerOptions::default()
    };
    let issuer = Issuer::start(options)?;
    issuer.seed("client", true);
    let login = Login::new(&issuer, "client")?.scope("mcp admin offline_access");
    login.visit(&toolway_testkit::oauth::Browser::default())?;
    let pair = login.redeem()?;
    ensure!(pair["scope"] == "mcp" && pair.get("refresh_token").is_none(), "{pair}");
    Ok(())
}
