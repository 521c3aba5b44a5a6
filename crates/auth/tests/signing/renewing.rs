//! Renewals in one process: by time, by refusal, once for all who wait, to their end when nobody waits any more, and
//! without a word to servers that they are not about.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use toolway_testkit::SOON;
use toolway_testkit::oauth::{
    Endpoint, ExpiresIn, Fault, FaultRule, Grant, IssuerOptions, Outcome, Stage, Which,
};

use crate::desk::{Called, Desk, Person, call, called, calling};

fn good(token: &str) -> Called {
    Called::Good(format!("{token} mcp"))
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_when_it_is_refused() -> Result<()> {
    let life = Duration::from_secs(2);
    let desk = Desk::new(IssuerOptions { access_token_life: life, ..IssuerOptions::default() })?;
    let session = desk.signed_in().await?;
    ensure!(session.ready().is_some());
    // It is used until shortly before its end, and then no more.
    tokio::time::timeout(SOON, async {
        while session.ready().is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await?;
    ensure!(call(&session, "whoami").await? == good("AT2"));
    let refused = desk.issuer.journal().at(Endpoint::Mcp).iter().filter(|one| one.status == 401).count();
    desk.issuer.change(|options| options.access_token_life = Duration::from_hours(1));
    desk.issuer.expire_access_tokens();
    ensure!(call(&session, "whoami").await? == good("AT3"));
    let journal = desk.issuer.journal();
    ensure!(journal.at(Endpoint::Mcp).iter().filter(|one| one.status == 401).count() == refused + 1);
    ensure!(journal.refreshes()[0].parameter("resource") == Some(desk.issuer.resource_url()));
    ensure!(journal.reused() == 0 && journal.authorizations() == 1);
    desk.clean()
}

#[tokio::test]
async fn fifty_requests_at_once_are_one_refresh() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    for fresh in [false, true] {
        // Refused all at once with the same token; or come to a process that has not looked yet.
        desk.issuer.expire_access_tokens();
        let session = if fresh { desk.again(|_| {}).session(desk.server()?) } else { session.clone() };
        let mut all = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let session = session.clone();
            all.spawn(async move { call(&session, "whoami").await });
        }
        let expected = good(if fresh { "AT3" } else { "AT2" });
        while let Some(called) = all.join_next().await {
            let called = called??;
            ensure!(called == expected, "{called:?}");
        }
    }
    ensure!(desk.issuer.journal().refreshes().len() == 2 && desk.issuer.journal().reused() == 0);
    desk.clean()
}

#[tokio::test]
async fn a_refresh_that_nobody_waits_for_any_more_is_finished_and_kept() -> Result<()> {
    for stage in [Stage::BeforeProcessing, Stage::BeforeAnswer] {
        let desk = Desk::plain()?;
        let session = desk.signed_in().await?;
        desk.issuer.expire_access_tokens();
        desk.issuer.hold(stage, Which::Next);
        let asking = calling(&session);
        desk.held().await?;
        drop(asking);
        desk.issuer.open_gates();
        desk.auth.finish(SOON).await;
        ensure!(
            call(&desk.again(|_| {}).session(desk.server()?), "whoami").await? == good("AT2"),
            "{stage:?}"
        );
        ensure!(call(&session, "whoami").await? == good("AT2"));
        ensure!(desk.issuer.journal().refreshes().len() == 1, "{}", desk.issuer.journal().told());
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_refresh_that_hangs_holds_up_nothing_but_its_server() -> Result<()> {
    let (slow, other) = (Desk::plain()?, Desk::plain()?);
    let (hangs, goes) = (slow.signed_in().await?, other.signed_in().await?);
    slow.issuer.expire_access_tokens();
    other.issuer.expire_access_tokens();
    slow.issuer.hold(Stage::BeforeAnswer, Which::Next);
    // Both of one process, and of one store.
    let auth = slow.again(|_| {});
    let third = auth.session(other.server()?);
    third.login(&[], false, &Person::default()).await?;
    let mut waiting = calling(&auth.session(slow.server()?));
    slow.held().await?;
    for _ in 0..20 {
        ensure!(matches!(call(&third, "whoami").await?, Called::Good(_)));
    }
    other.issuer.expire_access_tokens();
    ensure!(
        matches!(call(&third, "whoami").await?, Called::Good(_)),
        "its own refresh is not held up either"
    );
    ensure!(matches!(call(&goes, "whoami").await?, Called::Good(_)) && waiting.try_join_next().is_none());
    slow.issuer.open_gates();
    ensure!(called(waiting).await? == good("AT2") && call(&hangs, "whoami").await? == good("AT2"));
    slow.clean()?;
    other.clean()
}

#[tokio::test]
async fn a_token_that_is_still_good_is_used_while_another_is_on_its_way() -> Result<()> {
    // What it says of its life is shorter than the truth, so that only this side thinks of its end: a tenth before it.
    let options = IssuerOptions { expires_in: ExpiresIn::Says(json!(20)), ..IssuerOptions::default() };
    let desk = Desk::new(options)?;
    let session = desk.signed_in().await?;
    desk.issuer.hold(Stage::BeforeAnswer, Which::Next);
    tokio::time::timeout(SOON * 3, async {
        while session.ready().is_some() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await?;
    ensure!(call(&session, "whoami").await? == good("AT1"), "the old one serves");
    desk.held().await?;
    desk.issuer.open_gates();
    desk.auth.finish(SOON).await;
    ensure!(call(&session, "whoami").await? == good("AT2"));
    ensure!(desk.issuer.journal().refreshes().len() == 1);
    desk.clean()
}

#[tokio::test]
async fn whatever_is_said_of_a_tokens_life_it_is_used_and_renewed() -> Result<()> {
    for says in [
        ExpiresIn::Absent,
        ExpiresIn::Says(json!("3600")),
        ExpiresIn::Says(json!(3600.5)),
        ExpiresIn::Says(json!(0)),
        ExpiresIn::Says(json!(-1)),
        ExpiresIn::Says(json!(null)),
        ExpiresIn::Says(json!("soon")),
        ExpiresIn::Says(json!(1e300)),
        ExpiresIn::Says(json!({ "seconds": 3600 })),
    ] {
        let desk = Desk::new(IssuerOptions { expires_in: says.clone(), ..IssuerOptions::default() })?;
        let session = desk.signed_in().await?;
        for _ in 0..3 {
            ensure!(call(&session, "whoami").await? == good("AT1"), "{says:?}");
        }
        ensure!(desk.issuer.journal().refreshes().is_empty(), "{says:?}");
        desk.issuer.expire_access_tokens();
        ensure!(call(&session, "whoami").await? == good("AT2"), "{says:?}");
        desk.clean()?;
    }
    Ok(())
}

#[tokio::test]
async fn a_refresh_token_that_stays_the_same_is_used_again() -> Result<()> {
    let desk = Desk::new(IssuerOptions { rotation: false, say_scope: false, ..IssuerOptions::default() })?;
    let session = desk.signed_in().await?;
    for token in ["AT2", "AT3"] {
        desk.issuer.expire_access_tokens();
        ensure!(call(&session, "whoami").await? == good(token));
    }
    // An empty one means none.
    desk.issuer.fault(FaultRule::always(Endpoint::Token, Fault::Edit(json!({ "refresh_token": "" }))));
    for token in ["AT4", "AT5"] {
        desk.issuer.expire_access_tokens();
        ensure!(call(&session, "whoami").await? == good(token));
    }
    ensure!(desk.issuer.journal().refreshes().iter().all(|one| one.presented.as_deref() == Some("RT1")));
    desk.clean()
}

#[tokio::test]
async fn without_a_refresh_token_somebody_signs_in_when_the_server_refuses() -> Result<()> {
    let desk = Desk::new(IssuerOptions { refresh_tokens: false, ..IssuerOptions::default() })?;
    let session = desk.signed_in().await?;
    ensure!(call(&session, "whoami").await? == good("AT1"));
    desk.issuer.expire_access_tokens();
    for _ in 0..3 {
        let error = call(&session, "whoami").await?.error()?;
        ensure!(error.wants_login() && desk.text(&error).contains("nothing to renew it with"), "{error:?}");
    }
    ensure!(desk.issuer.journal().grants(Grant::RefreshToken).is_empty());
    session.login(&[], true, &Person::default()).await?;
    ensure!(call(&session, "whoami").await? == good("AT2"));
    desk.clean()
}

#[tokio::test]
async fn a_server_that_refuses_every_token_is_not_asked_for_ever() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    desk.issuer.fault(FaultRule::always(Endpoint::Mcp, Fault::status(401, "invalid_token")));
    for _ in 0..10 {
        let called = call(&session, "whoami").await?;
        ensure!(called == Called::Status(401), "{called:?}");
    }
    let refreshes = desk.issuer.journal().refreshes().len();
    ensure!(refreshes < 10, "a storm: {refreshes}");
    desk.issuer.no_faults();
    ensure!(
        matches!(call(&session, "whoami").await?, Called::Good(_)),
        "and its sign-in is as good as before"
    );
    ensure!(desk.issuer.journal().exchanges.iter().all(|one| one.outcome != Outcome::Dropped));
    desk.clean()
}
