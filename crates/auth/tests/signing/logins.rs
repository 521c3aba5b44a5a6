//! Logins by people: by the loopback redirect, by what they paste, with redirects that are given, and what goes wrong
//! between the browser and here.

use std::net::TcpListener;
use std::sync::PoisonError;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use toolway_auth::{AuthError, Redirect, SignInState, StaticClient};
use toolway_testkit::SOON;
use toolway_testkit::oauth::{
    Approval, Ask, Browser, Endpoint, Grant, IssuerOptions, MetadataPlaces, Parameter, StaticClient as Known,
};
use url::Url;

use crate::desk::{Called, Desk, Person, call, soon};

#[tokio::test]
async fn a_login_by_the_browser_ends_with_a_token_that_the_server_takes() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.session()?;
    ensure!(session.status().await?.is_none() && session.ready().is_none());
    let before = call(&session, "whoami").await?.error()?;
    ensure!(before.wants_login() && desk.text(&before).contains("nobody is signed in"), "{before:?}");

    let person = Person::default();
    let signed = session.login(&[], false, &person).await?;
    ensure!(person.count() == 1 && signed.scopes == ["mcp"] && signed.state == SignInState::SignedIn);
    ensure!(signed.issuer == desk.issuer.url() && signed.client == "registered", "{signed:?}");
    ensure!(call(&session, "whoami").await? == Called::Good("AT1 mcp".to_owned()));

    let journal = desk.issuer.journal();
    let asked = journal.at(Endpoint::Authorization)[0];
    ensure!(asked.parameter("resource") == Some(desk.issuer.resource_url()), "{asked:?}");
    ensure!(
        asked.parameter("code_challenge_method") == Some("S256") && asked.parameter("scope") == Some("mcp")
    );
    let code = journal.grants(Grant::AuthorizationCode)[0];
    ensure!(code.parameter("resource") == Some(desk.issuer.resource_url()), "{code:?}");

    // Another process has nothing to ask anybody.
    let other = desk.again(|_| {}).session(desk.server()?);
    ensure!(call(&other, "whoami").await? == Called::Good("AT1 mcp".to_owned()));
    let second = Person::default();
    other.login(&[], false, &second).await?;
    ensure!(second.count() == 0 && desk.issuer.journal().authorizations() == 1);
    // Unless it wants to.
    other.login(&[], true, &second).await?;
    ensure!(second.count() == 1 && call(&other, "whoami").await? == Called::Good("AT2 mcp".to_owned()));
    desk.clean()
}

#[tokio::test]
async fn the_browser_may_be_on_another_machine() -> Result<()> {
    let desk = Desk::new(IssuerOptions { approval: Approval::Form, ..IssuerOptions::default() })?;
    let session = desk.session()?;
    // What is no answer is said, and the right one is taken all the same.
    let person = Person::who_copies().pasting("I do not know what to do").await?;
    let person = person.pasting("http://127.0.0.1:1/callback?code=stolen&state=other").await?;
    soon(session.login(&[], false, &person)).await??;
    ensure!(call(&session, "whoami").await? == Called::Good("AT1 mcp".to_owned()));
    desk.clean()
}

#[tokio::test]
async fn a_login_that_was_begun_is_completed_by_whoever_has_the_answer() -> Result<()> {
    let desk = Desk::plain()?;
    let mut server = desk.server()?;
    server.redirect = Redirect::parse("https://app.example/oauth/callback")?;
    let session = desk.auth.session(server);
    let mut login = session.begin(&["admin".to_owned()]).await?;
    ensure!(login.redirect().as_str() == "https://app.example/oauth/callback");
    let visit = Browser::on_another_machine().visit(login.url().as_str())?;
    let answer = visit.redirect.context("no redirect")?;
    for wrong in ["", "code=x", "https://app.example/oauth/callback?code=x&state=y"] {
        let error = login.complete(wrong).await.unwrap_err();
        ensure!(matches!(error, AuthError::Answer { .. }), "{error:?}");
        desk.text(&error);
    }
    let signed = login.complete(&answer).await?;
    ensure!(signed.scopes == ["mcp", "admin"], "{signed:?}");
    let error = login.complete(&answer).await.unwrap_err();
    ensure!(desk.text(&error).contains("its answer already"));
    ensure!(call(&session, "admin").await?.text()?.contains("administrator"));
    ensure!(desk.issuer.journal().reused() == 0);
    desk.clean()
}

#[tokio::test]
async fn a_fixed_redirect_is_the_one_that_is_used_or_it_is_said_why_not() -> Result<()> {
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port();
    let redirect = format!("http://127.0.0.1:{port}/back/here");
    let client = Known { redirect_uris: vec![redirect.clone()], ..Known::public("fixed") };
    let options = IssuerOptions { clients: vec![client], exact_ports: true, ..IssuerOptions::default() };
    let desk = Desk::new(options)?;
    let mut server = desk.server()?;
    server.client = Some(StaticClient { id: "fixed".to_owned(), secret: None });
    server.redirect = Redirect::parse(&redirect)?;
    let session = desk.auth.session(server);
    let error = session.login(&[], false, &Person::default()).await.unwrap_err();
    let text = desk.text(&error);
    ensure!(text.contains(&format!("port {port}")) && text.contains("another redirect"), "{text}");
    ensure!(desk.issuer.journal().authorizations() == 0, "nobody is sent to a page whose answer is lost");
    drop(taken);
    session.login(&[], false, &Person::default()).await?;
    ensure!(
        desk.issuer.journal().at(Endpoint::Authorization)[0].parameter("redirect_uri") == Some(&*redirect)
    );
    desk.clean()
}

#[tokio::test]
async fn an_answer_of_another_login_ends_nothing() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.session()?;
    let person = Person::away();
    let shown = person.shown.clone();
    let strangers = async {
        let url = loop {
            if let Some(url) = shown.lock().unwrap_or_else(PoisonError::into_inner).first().cloned() {
                break url;
            }
            tokio::task::yield_now().await;
        };
        let redirect =
            Url::parse(&url)?.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.to_string();
        for (query, status) in [
            ("?code=evil&state=guessed", 400),
            ("?code=evil", 400),
            ("?error=access_denied&state=guessed", 400),
            ("?error=access_denied", 400),
            ("", 400),
        ] {
            let ask = Ask::get(&format!("{redirect}{query}"));
            let reply = tokio::task::spawn_blocking(move || ask.send()).await??;
            ensure!(reply.status == status && !reply.text().contains("evil"), "{query}: {}", reply.status);
        }
        let elsewhere = redirect.replace("/callback", "/favicon.ico");
        let asks = [Ask::get(&elsewhere), Ask::get(&redirect).method("POST")];
        for (ask, status) in asks.into_iter().zip([404, 405]) {
            ensure!(tokio::task::spawn_blocking(move || ask.send()).await??.status == status);
        }
        // A connection in advance, as browsers open them, that says nothing.
        let idle = std::net::TcpStream::connect(Url::parse(&redirect)?.socket_addrs(|| None)?[0])?;
        tokio::task::spawn_blocking(move || Browser::open(&url)).await??;
        drop(idle);
        Ok(())
    };
    let (signed, told) = soon(async { tokio::join!(session.login(&[], false, &person), strangers) }).await?;
    told?;
    ensure!(
        signed?.state == SignInState::SignedIn
            && desk.issuer.journal().grants(Grant::AuthorizationCode).len() == 1
    );
    desk.clean()
}

#[tokio::test]
async fn what_the_issuer_answers_must_be_its_own() -> Result<()> {
    let with = |change: fn(&mut IssuerOptions)| {
        let mut options = IssuerOptions::default();
        change(&mut options);
        options
    };
    for (options, why) in [
        (with(|o| o.iss = Parameter::Wrong), "was asked"),
        (with(|o| o.iss = Parameter::Absent), "does not name its issuer"),
        (with(|o| o.approval = Approval::Deny("access_denied".to_owned())), "access_denied"),
        (with(|o| o.approval = Approval::Deny("server_error".to_owned())), "server_error"),
    ] {
        let desk = Desk::new(options)?;
        let session = desk.session()?;
        let error = soon(session.login(&[], false, &Person::default())).await?.unwrap_err();
        ensure!(desk.text(&error).contains(why), "{error}");
        ensure!(
            desk.issuer.journal().grants(Grant::AuthorizationCode).is_empty(),
            "{error}: the code was used"
        );
        ensure!(session.status().await?.is_none());
        desk.clean()?;
    }
    // Who does not promise to name itself need not, and is not believed if it names another.
    let desk = Desk::new(with(|o| (o.iss, o.iss_promised) = (Parameter::Absent, false)))?;
    desk.signed_in().await?;
    let desk = Desk::new(with(|o| (o.iss, o.iss_promised) = (Parameter::Wrong, false)))?;
    let error = soon(desk.session()?.login(&[], false, &Person::default())).await?.unwrap_err();
    ensure!(desk.text(&error).contains("was asked"), "{error}");
    // A state that is wrong ends nothing: nobody knows whose answer it is. So the person is waited for in vain.
    let desk = Desk::new(with(|o| o.state = Parameter::Wrong))?;
    let auth = desk.again(|settings| settings.login_timeout = Duration::from_secs(2));
    let error = soon(auth.session(desk.server()?).login(&[], false, &Person::default())).await?.unwrap_err();
    ensure!(
        matches!(error, AuthError::Late { .. }) && desk.text(&error).contains("nobody signed in within 2 s")
    );
    desk.issuer.wait_for(SOON, |journal| journal.authorizations() == 1)?;
    desk.clean()
}

#[tokio::test]
async fn metadata_are_found_wherever_servers_have_them() -> Result<()> {
    let none = MetadataPlaces {
        resource_at_path: false,
        resource_at_root: false,
        oauth: false,
        openid_inserted: false,
        openid_appended: false,
    };
    let resource = MetadataPlaces { resource_at_path: true, ..none };
    for (path, places) in [
        ("", MetadataPlaces { oauth: true, ..none }),
        ("", MetadataPlaces { openid_appended: true, ..resource }),
        ("/tenant", MetadataPlaces { oauth: true, ..resource }),
        ("/tenant", MetadataPlaces { openid_inserted: true, ..resource }),
        ("/tenant", MetadataPlaces { openid_appended: true, ..resource }),
        ("/", MetadataPlaces { oauth: true, ..resource }),
        ("/deep/er", MetadataPlaces { oauth: true, resource_at_root: true, ..none }),
    ] {
        for challenge in [toolway_testkit::oauth::Challenge::Full, toolway_testkit::oauth::Challenge::Absent]
        {
            let told = challenge == toolway_testkit::oauth::Challenge::Full;
            if !told && !places.resource_at_path && !places.resource_at_root {
                continue;
            }
            let options = IssuerOptions {
                path: path.to_owned(),
                metadata: places,
                challenge,
                ..IssuerOptions::default()
            };
            let desk = Desk::new(options)?;
            let session = desk.signed_in().await.with_context(|| format!("{path} {places:?} {told}"))?;
            ensure!(call(&session, "whoami").await?.text()?.starts_with("AT1"), "{path} {places:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn servers_of_the_first_revision_are_their_own_issuers() -> Result<()> {
    let none = MetadataPlaces {
        resource_at_path: false,
        resource_at_root: false,
        oauth: false,
        openid_inserted: false,
        openid_appended: false,
    };
    for places in [none, MetadataPlaces { oauth: true, ..none }] {
        let options = IssuerOptions {
            one_origin: true,
            metadata: places,
            challenge: toolway_testkit::oauth::Challenge::Raw("Bearer realm=\"old\"".to_owned()),
            iss: Parameter::Absent,
            iss_promised: false,
            require_resource: false,
            ..IssuerOptions::default()
        };
        let desk = Desk::new(options)?;
        let session = desk.signed_in().await.with_context(|| format!("{places:?}"))?;
        ensure!(call(&session, "whoami").await?.text()?.starts_with("AT1"));
        desk.clean()?;
    }
    Ok(())
}
