//! Servers and issuers that lie, or say nonsense: nobody is sent anywhere, no secret leaves, and what is wrong is said.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_testkit::oauth::{Challenge, Endpoint, Fault, FaultRule, IssuerOptions};

use crate::desk::{Called, Desk, Person, call, soon};

async fn refused(faults: Vec<FaultRule>, whys: &[&str]) -> Result<()> {
    let desk = Desk::new(IssuerOptions { faults, ..IssuerOptions::default() })?;
    let auth = desk.again(|settings| settings.request_timeout = Duration::from_secs(2));
    let person = Person::default();
    let done = soon(auth.session(desk.server()?).login(&[], false, &person)).await?;
    let error = done.err().with_context(|| format!("{whys:?}: it signed in"))?;
    let text = desk.text(&error);
    for why in whys {
        ensure!(text.contains(why), "{text} does not say {why}");
    }
    let journal = desk.issuer.journal();
    ensure!(person.count() == 0 && journal.authorizations() == 0, "{text}: somebody was sent there");
    ensure!(journal.at(Endpoint::Token).is_empty() && desk.nothing_went_elsewhere(), "{text}");
    ensure!(journal.at(Endpoint::Registration).is_empty(), "{text}: it registered");
    ensure!(!text.contains("hunter2"), "{text}");
    desk.clean()
}

#[tokio::test]
async fn metadata_of_somebody_else_are_not_believed() -> Result<()> {
    refused(FaultRule::other_issuer(), &["oauth-authorization-server", "it is of the issuer"]).await?;
    refused(FaultRule::other_resource(), &["oauth-protected-resource", "its resource is"]).await?;
    let says = |members| FaultRule::issuer_says(members);
    refused(says(json!({ "issuer": "${issuer}/../x" })), &["it is of the issuer"]).await?;
    refused(says(json!({ "issuer": null })), &["names no issuer"]).await?;
    refused(FaultRule::resource_says(json!({ "resource": null })), &["names no resource"]).await?;
    refused(FaultRule::resource_says(json!({ "resource": "${resource}/deeper" })), &["its resource is"])
        .await?;
    refused(FaultRule::resource_says(json!({ "resource": "no address" })), &["is no address"]).await
}

#[tokio::test]
async fn what_is_needed_must_be_there() -> Result<()> {
    refused(FaultRule::no_s256(false), &["S256", "codes can be stolen"]).await?;
    refused(FaultRule::no_s256(true), &["S256"]).await?;
    refused(FaultRule::issuer_lacks("token_endpoint"), &["no token_endpoint"]).await?;
    refused(FaultRule::issuer_lacks("authorization_endpoint"), &["no authorization_endpoint"]).await?;
    let grants = json!({ "grant_types_supported": ["client_credentials"] });
    refused(FaultRule::issuer_says(grants), &["no authorization_code"]).await
}

#[tokio::test]
async fn no_address_is_asked_that_none_may_be() -> Result<()> {
    refused(FaultRule::endpoints_at("http://issuer.example"), &["plain http"]).await?;
    refused(FaultRule::endpoints_at("http://10.0.0.1"), &["plain http"]).await?;
    // Where clouds serve their machines' credentials, whoever names it.
    refused(FaultRule::endpoints_at("https://169.254.169.254"), &["private network"]).await?;
    refused(FaultRule::endpoints_at("https://[::ffff:169.254.169.254]"), &["private network"]).await?;
    refused(FaultRule::endpoints_at("https://[fe80::1]"), &["private network"]).await?;
    refused(FaultRule::endpoints_at("https://me:hunter2@issuer.example"), &["a user or a password"]).await?;
    refused(FaultRule::issuer_at("http://issuer.example"), &["plain http"]).await?;
    refused(FaultRule::issuer_at("https://169.254.169.254/latest"), &["private network"]).await?;
    refused(FaultRule::issuer_at("file:///etc/passwd"), &["neither https nor http"]).await?;
    refused(FaultRule::issuer_at("not an address"), &["is no address"]).await?;
    for endpoint in ["javascript:alert(1)", "file:///etc/passwd", "//issuer.example/x", ""] {
        let members = json!({ "authorization_endpoint": endpoint });
        refused(FaultRule::issuer_says(members), &["authorization_endpoint"]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn metadata_are_followed_within_their_origin_alone() -> Result<()> {
    let at = |endpoint, fault| vec![FaultRule::always(endpoint, fault)];
    for endpoint in [Endpoint::ResourceMetadata, Endpoint::IssuerMetadata] {
        let desk =
            Desk::new(IssuerOptions { faults: at(endpoint, Fault::Moved), ..IssuerOptions::default() })?;
        let session = desk.signed_in().await.with_context(|| format!("{endpoint:?}"))?;
        ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
        refused(at(endpoint, Fault::MovedElsewhere), &["leads on to another origin"]).await?;
        let away = Fault::Redirect("http://169.254.169.254/latest".to_owned());
        refused(at(endpoint, away), &["leads on to another origin"]).await?;
    }
    let round = Fault::Redirect("${issuer}/.well-known/oauth-authorization-server".to_owned());
    refused(at(Endpoint::IssuerMetadata, round), &["leads on more than"]).await
}

#[tokio::test]
async fn metadata_that_are_none_are_said_to_be_none() -> Result<()> {
    for (fault, why) in [
        (Fault::Html(200), "has no metadata"),
        (Fault::Html(404), "has no metadata"),
        (Fault::status(500, "oops"), "HTTP 500"),
        (Fault::status(429, "later"), "HTTP 429"),
        (Fault::NotJson, "no such document"),
        (Fault::Huge(2 << 20), "longer than 1 MiB"),
        (Fault::Mute, "no answer within 2 s"),
        (Fault::Slow(Duration::from_secs(30)), "no answer within 2 s"),
        (Fault::Cut, "oauth-authorization-server"),
        (Fault::Lost, "oauth-authorization-server"),
    ] {
        refused(vec![FaultRule::always(Endpoint::IssuerMetadata, fault.clone())], &[why])
            .await
            .with_context(|| format!("{fault:?}"))?;
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_misnames_its_metadata_is_signed_in_to_all_the_same() -> Result<()> {
    // As behind a proxy that ends TLS, whose servers think that they are http.
    for place in [
        "http://10.0.0.1/meta",
        "${elsewhere}/nothing",
        "https://[fe80::1]/meta",
        "relative",
        "http://issuer.example/m",
    ] {
        let challenge = Challenge::Raw(format!("Bearer resource_metadata=\"{place}\", scope=\"mcp\""));
        let desk = Desk::new(IssuerOptions { challenge, ..IssuerOptions::default() })?;
        let session = desk.signed_in().await.with_context(|| place.to_owned())?;
        ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)), "{place}");
        desk.clean()?;
    }
    // Members that are null, or of another kind, are as none.
    let faults = FaultRule::issuer_says(json!({
        "scopes_supported": "mcp admin", "grant_types_supported": 7, "revocation_endpoint": false,
        "token_endpoint_auth_methods_supported": {}, "client_id_metadata_document_supported": "yes",
    }));
    let desk = Desk::new(IssuerOptions { faults, ..IssuerOptions::default() })?;
    desk.signed_in().await?;
    desk.clean()
}
