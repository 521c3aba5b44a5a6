//! Scopes that a server asks for when it refuses: who has to sign in, what is asked for then, and that it ends.

use anyhow::{Result, ensure};
use toolway_auth::AuthError;
use toolway_testkit::oauth::{Endpoint, Fault, FaultRule, IssuerOptions};

use crate::desk::{Called, Desk, Person, call};

#[tokio::test]
async fn a_refusal_for_want_of_scope_names_all_that_the_next_token_needs() -> Result<()> {
    for all in [false, true] {
        let desk = Desk::new(IssuerOptions { challenge_all_scopes: all, ..IssuerOptions::default() })?;
        let session = desk.signed_in().await?;
        let AuthError::NeedsLogin { reason, scopes } = call(&session, "admin").await?.error()? else {
            anyhow::bail!("no login is wanted")
        };
        ensure!(scopes == ["mcp", "admin"] && reason.contains("admin"), "{scopes:?} {reason}");
        // What could be done with the old token can be done meanwhile.
        ensure!(call(&session, "whoami").await? == Called::Good("AT1 mcp".to_owned()));
        let status = session.status().await?.unwrap();
        ensure!(status.wanted == ["admin"] && status.scopes == ["mcp"], "{status:?}");
        // Somebody signs in by another process, which knows by the store what is wanted.
        let other = desk.again(|_| {}).session(desk.server()?);
        let signed = other.login(&[], false, &Person::default()).await?;
        ensure!(signed.scopes == ["mcp", "admin"] && signed.wanted.is_empty(), "{signed:?}");
        ensure!(call(&session, "admin").await?.text()?.contains("administrator"));
        ensure!(call(&session, "whoami").await? == Called::Good("AT2 mcp admin".to_owned()));
        // And it stays so, over refreshes too.
        desk.issuer.expire_access_tokens();
        ensure!(call(&session, "admin").await?.text()?.contains("administrator"));
        ensure!(desk.issuer.journal().authorizations() == 2);
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn scopes_that_are_never_granted_are_asked_for_by_people_only() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    desk.issuer.fault(FaultRule::always(Endpoint::Token, Fault::Edit(serde_json::json!({ "scope": "mcp" }))));
    for round in 0..3 {
        let error = call(&session, "admin").await?.error();
        if round == 0 {
            ensure!(error?.wants_login());
        }
        let person = Person::default();
        session.login(&[], true, &person).await?;
        ensure!(person.count() == 1);
    }
    ensure!(desk.issuer.journal().authorizations() == 4 && desk.issuer.journal().reused() == 0);
    ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
    desk.clean()
}

#[tokio::test]
async fn a_scope_that_the_issuer_does_not_know_keeps_nobody_out() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    // The server speaks of a scope of which its issuer knows nothing.
    desk.issuer.fault(FaultRule::always(Endpoint::Mcp, Fault::status(401, "invalid_token")));
    desk.issuer.no_faults();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"mcp no-such-scope\"";
    let header = session.ready();
    let status = http::StatusCode::FORBIDDEN;
    let error = session.challenged(status, &[challenge], header.as_ref()).await.unwrap_err();
    ensure!(error.wants_login());
    let error = session.login(&[], false, &Person::default()).await.unwrap_err();
    ensure!(desk.text(&error).contains("invalid_scope"), "{error}");
    let signed = session.login(&[], true, &Person::default()).await?;
    ensure!(signed.scopes == ["mcp"], "{signed:?}");
    ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
    desk.clean()
}

#[tokio::test]
async fn configured_scopes_are_what_is_asked_for() -> Result<()> {
    let desk = Desk::plain()?;
    let mut server = desk.server()?;
    server.scopes = vec!["admin".to_owned(), "mcp".to_owned()];
    let session = desk.auth.session(server);
    let signed = session.login(&[], false, &Person::default()).await?;
    ensure!(signed.scopes == ["admin", "mcp"], "{signed:?}");
    ensure!(call(&session, "admin").await?.text()?.contains("administrator"));
    // A refusal that is none for want of scope, or not of this token, is none of ours.
    let header = session.ready();
    for (status, challenge) in [
        (403, "Bearer error=\"invalid_token\""),
        (403, ""),
        (403, "Bearer error=\"insufficient_scope\""),
        (403, "Bearer error=\"insufficient_scope\", scope=\"mcp\""),
        (404, "Bearer error=\"insufficient_scope\", scope=\"more\""),
        (500, "Bearer"),
    ] {
        let status = http::StatusCode::from_u16(status)?;
        ensure!(!session.challenged(status, &[challenge], header.as_ref()).await?, "{status} {challenge}");
    }
    ensure!(desk.issuer.journal().authorizations() == 1);
    desk.clean()
}
