//! The end of a sign-in: by whoever wants to be signed out, by the server, and without one that can be asked.

use anyhow::{Result, ensure};
use toolway_testkit::oauth::{Endpoint, Fault, FaultRule, IssuerOptions};

use crate::desk::{Called, Desk, Person, call};

#[tokio::test]
async fn who_signs_out_is_forgotten_here_and_at_the_server() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    let other = desk.again(|_| {}).session(desk.server()?);
    ensure!(call(&other, "whoami").await? == Called::Good("AT1 mcp".to_owned()));
    let out = session.revoke().await?;
    ensure!(out.forgotten == 1 && out.not_told.is_empty(), "{out:?}");
    let revoked = desk.issuer.journal();
    let labels: Vec<_> = revoked.at(Endpoint::Revocation).iter().map(|one| one.presented.clone()).collect();
    ensure!(labels == [Some("RT1".to_owned()), Some("AT1".to_owned())], "{labels:?}");
    ensure!(desk.sealed()?.is_empty() && session.status().await?.is_none());
    for session in [&session, &other] {
        ensure!(call(session, "whoami").await?.error()?.wants_login());
    }
    ensure!(desk.issuer.journal().refreshes().is_empty(), "nobody tries what was given up");
    ensure!(session.revoke().await? == toolway_auth::SignedOut::default(), "twice is once");
    // Somebody who signs in is seen by all.
    session.login(&[], false, &Person::default()).await?;
    ensure!(call(&other, "whoami").await?.text()?.starts_with("AT2"));
    desk.clean()
}

#[tokio::test]
async fn a_server_that_cannot_be_told_is_named() -> Result<()> {
    for (options, fault, why) in [
        (IssuerOptions { revocation: false, ..IssuerOptions::default() }, None, "no revocation endpoint"),
        (IssuerOptions::default(), Some(Fault::status(503, "busy")), "503"),
        (IssuerOptions::default(), Some(Fault::Lost), "revoke"),
        (IssuerOptions::default(), Some(Fault::Redirect("${elsewhere}/revoke".to_owned())), "302"),
    ] {
        let desk = Desk::new(options)?;
        let session = desk.signed_in().await?;
        if let Some(fault) = fault {
            desk.issuer.fault(FaultRule::always(Endpoint::Revocation, fault));
        }
        let out = session.revoke().await?;
        let told = out.not_told.join("; ");
        ensure!(out.forgotten == 1 && out.not_told.len() == 1, "{out:?}");
        ensure!(told.contains(desk.issuer.url()) && told.contains(why), "{told}");
        ensure!(desk.sealed()?.is_empty() && call(&session, "whoami").await?.error()?.wants_login());
        ensure!(desk.nothing_went_elsewhere(), "a token was sent elsewhere");
        desk.clean()?;
    }
    // The machine is offline: the server is gone.
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    let Desk { issuer, auth, home, .. } = desk;
    drop(issuer);
    let out = session.revoke().await?;
    ensure!(out.forgotten == 1 && out.not_told.len() == 1, "{out:?}");
    ensure!(auth.all().await?.is_empty());
    drop(home);
    Ok(())
}

#[tokio::test]
async fn a_sign_in_that_the_server_ended_is_tried_once_and_said_ever_after() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    desk.issuer.revoke_everything();
    for _ in 0..5 {
        let error = call(&session, "whoami").await?.error()?;
        let text = desk.text(&error);
        ensure!(
            error.wants_login() && text.contains("no longer accepted") && text.contains("invalid_grant"),
            "{text}"
        );
    }
    ensure!(desk.issuer.journal().refreshes().len() == 1, "{}", desk.issuer.journal().told());
    let status = desk.again(|_| {}).session(desk.server()?).status().await?.unwrap();
    ensure!(status.ended.is_some_and(|ended| ended.contains("invalid_grant")));
    // The client is as good as before.
    session.login(&[], false, &Person::default()).await?;
    ensure!(desk.issuer.journal().at(Endpoint::Registration).len() == 1);
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT2"));
    desk.clean()
}
