//! Answers of the token endpoint that are none, or not good: the sign-in is as good as before, and the next try works.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use toolway_auth::AuthError;
use toolway_testkit::oauth::{Endpoint, Fault, FaultRule, IssuerOptions};

use crate::desk::{Called, Desk, Person, call, soon};

fn faults() -> Vec<(Fault, &'static str)> {
    vec![
        (Fault::status(500, "oops"), "HTTP 500"),
        (Fault::status(503, "invalid_grant"), "HTTP 503"),
        (Fault::status(429, "invalid_grant"), "HTTP 429"),
        (Fault::status(400, "temporarily_unavailable"), "temporarily_unavailable"),
        (Fault::status(400, "invalid_scope"), "invalid_scope"),
        (Fault::Html(200), "no answer of a token endpoint"),
        (Fault::Html(400), "no answer of a token endpoint"),
        (Fault::Html(502), "HTTP 502"),
        (Fault::Moved, "where no token is sent"),
        (Fault::MovedElsewhere, "where no token is sent"),
        (Fault::Redirect("${elsewhere}/token".to_owned()), "where no token is sent"),
        (Fault::Mute, "no answer within 2 s"),
        (Fault::Slow(Duration::from_secs(30)), "no answer within 2 s"),
        (Fault::Lost, "/token"),
        (Fault::Cut, "/token"),
        (Fault::NotJson, "no answer of a token endpoint"),
        (Fault::Huge(2 << 20), "longer than 1 MiB"),
        (Fault::Edit(json!({ "access_token": null })), "no answer of a token endpoint"),
        (Fault::Edit(json!({ "access_token": 7 })), "no answer of a token endpoint"),
        (Fault::Edit(json!({ "token_type": "mac" })), "another type than bearer"),
        (Fault::Edit(json!({ "token_type": "DPoP" })), "another type than bearer"),
        (Fault::Edit(json!({ "access_token": "" })), "cannot be sent in a header"),
        (Fault::Edit(json!({ "access_token": "a\r\nX-Evil: yes" })), "cannot be sent in a header"),
        (Fault::Edit(json!({ "access_token": "to kén" })), "cannot be sent in a header"),
    ]
}

#[tokio::test]
async fn a_refresh_that_fails_costs_nobody_the_sign_in() -> Result<()> {
    for (fault, why) in faults() {
        let options = IssuerOptions { reuse_leeway: Duration::from_hours(1), ..IssuerOptions::default() };
        let desk = Desk::new(options)?;
        desk.signed_in().await?;
        desk.issuer.expire_access_tokens();
        desk.issuer.fault(FaultRule::always(Endpoint::Token, fault.clone()));
        let auth = desk.again(|settings| settings.request_timeout = Duration::from_secs(2));
        let session = auth.session(desk.server()?);
        let error = soon(call(&session, "whoami")).await??.error().with_context(|| format!("{fault:?}"))?;
        let text = desk.text(&error);
        ensure!(!error.wants_login() && text.contains(why), "{fault:?}: {text}");
        // Those who ask at the same moment get the same, and the endpoint is left alone.
        let before = desk.issuer.journal().at(Endpoint::Token).len();
        for _ in 0..10 {
            ensure!(call(&session, "whoami").await?.error()?.to_string() == text);
        }
        let after = desk.issuer.journal().at(Endpoint::Token).len();
        ensure!(after - before <= 2, "{fault:?}: asked again {} times", after - before);
        ensure!(desk.nothing_went_elsewhere(), "{fault:?}: a token was sent elsewhere");
        desk.issuer.no_faults();
        let fresh = desk.again(|_| {}).session(desk.server()?);
        let called = call(&fresh, "whoami").await?;
        ensure!(matches!(&called, Called::Good(text) if text.ends_with(" mcp")), "{fault:?}: {called:?}");
        ensure!(desk.issuer.journal().authorizations() == 1);
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_login_whose_code_cannot_be_redeemed_keeps_nothing() -> Result<()> {
    for (fault, why) in faults() {
        let desk = Desk::plain()?;
        desk.issuer.fault(FaultRule::always(Endpoint::Token, fault.clone()));
        let auth = desk.again(|settings| settings.request_timeout = Duration::from_secs(2));
        let session = auth.session(desk.server()?);
        let done = soon(session.login(&[], false, &Person::default())).await?;
        let error = done.err().with_context(|| format!("{fault:?}"))?;
        ensure!(desk.text(&error).contains(why), "{fault:?}: {error}");
        ensure!(session.status().await?.is_none(), "{fault:?}: {:?}", session.status().await?);
        desk.issuer.no_faults();
        session.login(&[], false, &Person::default()).await?;
        ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)), "{fault:?}");
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn secrets_that_a_server_repeats_are_not_repeated_here() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    desk.issuer.expire_access_tokens();
    for secret in desk.issuer.secrets() {
        desk.issuer.no_faults();
        desk.issuer.fault(FaultRule::always(Endpoint::Token, Fault::status(400, &secret)));
        let fresh = desk.again(|_| {}).session(desk.server()?);
        let error = call(&fresh, "whoami").await?.error()?;
        ensure!(matches!(error, AuthError::Refused { .. }), "{error:?}");
        ensure!(!desk.text(&error).contains(&secret));
    }
    drop(session);
    desk.clean()
}
