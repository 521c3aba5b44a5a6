//! Client credentials: nobody is asked, and nothing has to be kept.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use toolway_auth::{AuthError, Grant as How, Session, StaticClient};
use toolway_secret::Secret;
use toolway_testkit::oauth::{Endpoint, Fault, FaultRule, Grant, IssuerOptions, StaticClient as Known};

use crate::desk::{Called, Desk, Person, call};

fn options() -> IssuerOptions {
    let clients = vec![Known::confidential("robot", "r0bot-s3cret")];
    IssuerOptions { clients, ..IssuerOptions::default() }
}

fn robot(desk: &Desk, auth: &toolway_auth::Auth, secret: &str) -> Result<Session> {
    let mut server = desk.server()?;
    server.client = Some(StaticClient { id: "robot".to_owned(), secret: Some(Secret::in_use(secret)) });
    server.grant = How::ClientCredentials;
    Ok(auth.session(server))
}

#[tokio::test]
async fn a_machine_signs_itself_in_and_shares_what_it_got() -> Result<()> {
    let desk = Desk::new(options())?;
    let session = robot(&desk, &desk.auth, "r0bot-s3cret")?;
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT1 "));
    ensure!(
        call(&robot(&desk, &desk.again(|_| {}), "r0bot-s3cret")?, "whoami")
            .await?
            .text()?
            .starts_with("AT1 ")
    );
    // By time, and by refusal.
    desk.issuer.expire_access_tokens();
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT2 "));
    let journal = desk.issuer.journal();
    let asked = journal.grants(Grant::ClientCredentials)[0];
    ensure!(asked.parameter("resource") == Some(desk.issuer.resource_url()), "{asked:?}");
    ensure!(journal.authorizations() == 0);
    // A login asks nobody either.
    let person = Person::default();
    session.login(&[], false, &person).await?;
    ensure!(person.count() == 0);
    desk.clean()
}

#[tokio::test]
async fn a_machine_needs_nowhere_to_write() -> Result<()> {
    let desk = Desk::new(options())?;
    let file = desk.home.path().join("file");
    std::fs::write(&file, "a file, where the directory would be")?;
    let auth = desk.again(|settings| settings.directory.clone_from(&file));
    let session = robot(&desk, &auth, "r0bot-s3cret")?;
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT1 "));
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT1 "), "it is kept in memory");
    desk.issuer.expire_access_tokens();
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT2 "));
    desk.clean()
}

#[tokio::test]
async fn a_machine_steps_up_by_itself_and_not_for_ever() -> Result<()> {
    let desk = Desk::new(options())?;
    let server = robot(&desk, &desk.auth, "r0bot-s3cret")?.server().clone();
    let session = desk.auth.session(toolway_auth::ServerAuth { scopes: vec!["mcp".to_owned()], ..server });
    ensure!(call(&session, "whoami").await? == Called::Good("AT1 mcp".to_owned()));
    ensure!(call(&session, "admin").await?.text()?.contains("administrator"));
    ensure!(call(&session, "whoami").await? == Called::Good("AT2 mcp admin".to_owned()));
    // What nobody can give is asked for once: a scope that the issuer does not know, and one that it leaves out.
    let asked = |desk: &Desk| desk.issuer.journal().grants(Grant::ClientCredentials).len();
    let edit = Fault::Edit(json!({ "scope": "mcp admin" }));
    for (scope, faults) in [("ghost", vec![]), ("extra", vec![FaultRule::always(Endpoint::Token, edit)])] {
        desk.issuer.change(|options| {
            options.tool_scopes.insert("unused".to_owned(), "extra".to_owned());
            options.faults = faults;
        });
        let before = asked(&desk);
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        for _ in 0..5 {
            let header = session.authorize().await?;
            let status = http::StatusCode::FORBIDDEN;
            let again = session.challenged(status, &[&challenge], header.as_ref()).await?;
            ensure!(!again, "{scope}: {}", desk.issuer.journal().told());
        }
        ensure!(asked(&desk) - before <= 2, "{scope}: {}", desk.issuer.journal().told());
        ensure!(call(&session, "admin").await?.text()?.contains("administrator"), "{scope}");
    }
    desk.clean()
}

#[tokio::test]
async fn what_is_wrong_with_a_machine_is_said_at_every_call_and_asked_once_a_moment() -> Result<()> {
    let desk = Desk::new(options())?;
    let session = robot(&desk, &desk.auth, "wrong")?;
    for _ in 0..20 {
        let error = call(&session, "whoami").await?.error()?;
        let text = desk.text(&error);
        ensure!(matches!(error, AuthError::Client { .. }) && text.contains("\"robot\""), "{text}");
    }
    let asked = desk.issuer.journal().grants(Grant::ClientCredentials).len();
    ensure!(asked < 20, "a storm: {asked}");
    let right = robot(&desk, &desk.auth, "r0bot-s3cret")?;
    ensure!(call(&right, "whoami").await?.text()?.starts_with("AT1 "));
    // Without a client there is nothing to ask with.
    let mut server = desk.server()?;
    server.grant = How::ClientCredentials;
    let error = call(&desk.auth.session(server), "whoami").await?.error()?;
    ensure!(desk.text(&error).contains("CLIENT_ID"), "{error}");
    desk.auth.finish(Duration::from_secs(20)).await;
    desk.clean()
}
