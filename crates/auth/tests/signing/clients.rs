//! Who this program is at an issuer: a client from the configuration, one of a metadata document, or one that registers.

use anyhow::{Context as _, Result, ensure};
use toolway_auth::{AuthError, ServerAuth, StaticClient};
use toolway_secret::Secret;
use toolway_testkit::oauth::{
    ClientAuth, Endpoint, Grant, IssuerOptions, Registration, StaticClient as Known,
};
use url::Url;

use crate::desk::{Called, Desk, Person, call};

const SECRET: &str = "s:%3cret &=+/ ü";

fn known(desk: &Desk, id: &str, secret: Option<&str>) -> Result<ServerAuth> {
    let mut server = desk.server()?;
    server.client = Some(StaticClient { id: id.to_owned(), secret: secret.map(Secret::in_use) });
    Ok(server)
}

#[tokio::test]
async fn a_client_of_the_configuration_proves_itself_as_the_issuer_wants() -> Result<()> {
    for (secret, offered, used) in [
        (None, vec![ClientAuth::None], ClientAuth::None),
        (Some(SECRET), vec![ClientAuth::Basic, ClientAuth::Post], ClientAuth::Basic),
        (Some(SECRET), vec![ClientAuth::Post], ClientAuth::Post),
        (Some(SECRET), vec![ClientAuth::Basic], ClientAuth::Basic),
    ] {
        let client = secret.map_or_else(|| Known::public("app"), |secret| Known::confidential("app", secret));
        let options = IssuerOptions {
            clients: vec![client],
            client_auth: offered,
            registration: Registration::Absent,
            ..IssuerOptions::default()
        };
        let desk = Desk::new(options)?;
        let session = desk.auth.session(known(&desk, "app", secret)?);
        let signed = session.login(&[], false, &Person::default()).await?;
        ensure!((signed.client, signed.client_id.as_str()) == ("static", "app"), "{signed:?}");
        desk.issuer.expire_access_tokens();
        ensure!(call(&session, "whoami").await? == Called::Good("AT2 mcp".to_owned()));
        let out = session.revoke().await?;
        ensure!(out.forgotten == 1 && out.not_told.is_empty(), "{out:?}");
        let journal = desk.issuer.journal();
        for exchange in journal.at(Endpoint::Token).into_iter().chain(journal.at(Endpoint::Revocation)) {
            ensure!(exchange.client_auth == Some(used) && exchange.error().is_none(), "{exchange:?}");
        }
        ensure!(journal.at(Endpoint::Registration).is_empty());
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_wrong_secret_is_said_and_costs_nobody_the_sign_in() -> Result<()> {
    let options =
        IssuerOptions { clients: vec![Known::confidential("app", SECRET)], ..IssuerOptions::default() };
    let desk = Desk::new(options)?;
    let right = desk.auth.session(known(&desk, "app", Some(SECRET))?);
    right.login(&[], false, &Person::default()).await?;
    desk.issuer.expire_access_tokens();
    let wrong = desk.again(|_| {}).session(known(&desk, "app", Some("another"))?);
    let error = call(&wrong, "whoami").await?.error()?;
    let text = desk.text(&error);
    ensure!(
        matches!(error, AuthError::Client { .. })
            && text.contains("\"app\"")
            && text.contains("CLIENT_SECRET"),
        "{text}"
    );
    // Neither is a login with it any use, and nobody is sent to a browser for nothing but that.
    let error = wrong.login(&[], true, &Person::default()).await.unwrap_err();
    ensure!(desk.text(&error).contains("invalid_client"), "{error}");
    ensure!(call(&right, "whoami").await? == Called::Good("AT2 mcp".to_owned()), "the sign-in was lost");
    desk.clean()
}

#[tokio::test]
async fn a_metadata_document_comes_before_registration() -> Result<()> {
    let document = "https://toolway.example/client.json";
    let metadata = serde_json::json!({
        "client_id": document, "client_name": "Toolway", "redirect_uris": ["http://127.0.0.1/callback"],
        "token_endpoint_auth_method": "none",
    });
    let options = IssuerOptions {
        client_documents: true,
        known_documents: [(document.to_owned(), metadata)].into(),
        ..IssuerOptions::default()
    };
    let desk = Desk::new(options.clone())?;
    let auth = desk.again(|settings| settings.metadata_document = Url::parse(document).ok());
    let session = auth.session(desk.server()?);
    let signed = session.login(&[], false, &Person::default()).await?;
    ensure!((signed.client, signed.client_id.as_str()) == ("metadata document", document), "{signed:?}");
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT1"));
    ensure!(desk.issuer.journal().at(Endpoint::Registration).is_empty());
    // The address may be the configured client as well, and that comes first.
    let desk = Desk::new(IssuerOptions { registration: Registration::Absent, ..options })?;
    let session = desk.auth.session(known(&desk, document, None)?);
    let signed = session.login(&[], false, &Person::default()).await?;
    ensure!(signed.client == "metadata document", "{signed:?}");
    // An issuer that reads none is registered with.
    let desk = Desk::plain()?;
    let auth = desk.again(|settings| settings.metadata_document = Url::parse(document).ok());
    let signed = auth.session(desk.server()?).login(&[], false, &Person::default()).await?;
    ensure!(signed.client == "registered", "{signed:?}");
    desk.clean()
}

#[tokio::test]
async fn a_registration_is_used_again_while_its_port_is_free() -> Result<()> {
    for registration in [Registration::Public, Registration::Confidential] {
        let options = IssuerOptions { registration, exact_ports: true, ..IssuerOptions::default() };
        let desk = Desk::new(options)?;
        let session = desk.signed_in().await?;
        session.login(&[], true, &Person::default()).await?;
        let journal = desk.issuer.journal();
        ensure!(journal.at(Endpoint::Registration).len() == 1, "{}", journal.told());
        // Somebody has the port: another client, and what is kept of the first goes.
        let redirect =
            journal.at(Endpoint::Authorization)[1].parameter("redirect_uri").context("none")?.to_owned();
        let taken = std::net::TcpListener::bind(Url::parse(&redirect)?.socket_addrs(|| None)?[0])?;
        let signed = session.login(&[], true, &Person::default()).await?;
        drop(taken);
        let journal = desk.issuer.journal();
        ensure!(
            journal.at(Endpoint::Registration).len() == 2
                && journal.grants(Grant::AuthorizationCode).len() == 3
        );
        ensure!(signed.client_id == "registered-2" && desk.sealed()?.len() == 1, "{signed:?}");
        ensure!(call(&session, "whoami").await? == Called::Good("AT3 mcp".to_owned()));
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_registration_that_the_issuer_forgot_is_made_anew() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    ensure!(desk.issuer.forget_client("registered-1"));
    desk.issuer.expire_access_tokens();
    let error = call(&session, "whoami").await?.error()?;
    ensure!(error.wants_login() && desk.text(&error).contains("invalid_client"), "{error:?}");
    session.login(&[], false, &Person::default()).await?;
    ensure!(desk.issuer.journal().at(Endpoint::Registration).len() == 2);
    ensure!(call(&session, "whoami").await?.text()?.starts_with("AT2"));
    desk.clean()
}

#[tokio::test]
async fn where_there_is_no_client_it_is_said_what_to_do() -> Result<()> {
    let none = IssuerOptions { registration: Registration::Absent, ..IssuerOptions::default() };
    let reads = IssuerOptions { client_documents: true, ..none.clone() };
    let refuses = IssuerOptions {
        registration: Registration::Refuses("invalid_client_metadata".to_owned()),
        ..IssuerOptions::default()
    };
    for (options, why) in
        [(none, "CLIENT_SECRET"), (reads, "the address of one"), (refuses, "invalid_client_metadata")]
    {
        let desk = Desk::new(options)?;
        let person = Person::default();
        let error = desk.session()?.login(&[], false, &person).await.unwrap_err();
        let text = desk.text(&error);
        ensure!(text.contains(why) && text.contains(desk.issuer.url()), "{text}");
        ensure!(person.count() == 0, "nobody is shown what cannot end well");
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn accounts_have_tokens_of_their_own() -> Result<()> {
    let desk = Desk::plain()?;
    let of = |account: &str| {
        let mut server = desk.server()?;
        account.clone_into(&mut server.account);
        anyhow::Ok(desk.auth.session(server))
    };
    let (work, home) = (of("work")?, of("home")?);
    for session in [&work, &home] {
        session.login(&[], false, &Person::default()).await?;
    }
    ensure!(call(&work, "whoami").await? == Called::Good("AT1 mcp".to_owned()));
    ensure!(call(&home, "whoami").await? == Called::Good("AT2 mcp".to_owned()));
    ensure!(call(&of("")?, "whoami").await?.error()?.wants_login());
    work.revoke().await?;
    ensure!(call(&work, "whoami").await?.error()?.wants_login());
    ensure!(call(&home, "whoami").await? == Called::Good("AT2 mcp".to_owned()));
    let all = desk.auth.all().await?;
    ensure!(all.len() == 1 && all[0].1.as_ref().unwrap().account == "home", "{all:?}");
    desk.clean()
}
