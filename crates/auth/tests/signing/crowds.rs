//! Several processes of one user that all want to sign in, and programs that change the store without its lock.

use anyhow::{Result, ensure};
use rustix::process::Signal;
use std::time::Duration;
use toolway_testkit::SOON;
use toolway_testkit::oauth::{Approval, Browser, Grant, IssuerOptions, Stage, Which};

use crate::desk::{Called, Desk, Person, call, called, calling, soon};
use crate::processes::Other;

fn count(said: &[(String, String)], wanted: &str) -> usize {
    said.iter().filter(|(what, _)| what == wanted).count()
}

#[tokio::test]
async fn four_that_start_at_once_open_one_browser_and_are_all_signed_in() -> Result<()> {
    let desk = Desk::plain()?;
    let others: Vec<_> = (0..4).map(|_| Other::signing_in(&desk, "login")).collect::<Result<_>>()?;
    let all: Vec<_> = others.into_iter().map(|other| other.ended(SOON)).collect::<Result<_>>()?;
    ensure!(all.iter().all(|said| count(said, "signed-in") == 1), "{all:?}");
    ensure!(all.iter().map(|said| count(said, "shown")).sum::<usize>() == 1, "{all:?}");
    let journal = desk.issuer.journal();
    ensure!(journal.authorizations() == 1 && journal.grants(Grant::AuthorizationCode).len() == 1);
    ensure!(desk.sealed()?.len() == 1);
    desk.clean()
}

#[tokio::test]
async fn who_says_no_is_asked_once() -> Result<()> {
    let desk = Desk::plain()?;
    // One after the other, so that all of them wait before the person says no.
    let mut first = Other::signing_in(&desk, "away")?;
    let shown = first.says("shown")?;
    let mut others: Vec<_> = (0..3).map(|_| Other::signing_in(&desk, "login")).collect::<Result<_>>()?;
    for other in &mut others {
        other.says("waits")?;
    }
    desk.issuer.change(|options| options.approval = Approval::Deny("access_denied".to_owned()));
    Browser::open(&shown)?;
    others.push(first);
    let all: Vec<_> = others.into_iter().map(|other| other.ended(SOON)).collect::<Result<_>>()?;
    ensure!(all.iter().all(|said| count(said, "error") == 1 && count(said, "signed-in") == 0), "{all:?}");
    ensure!(all.iter().map(|said| count(said, "shown")).sum::<usize>() == 1, "{all:?}");
    let told = |said: &Vec<(String, String)>| said.iter().any(|(_, text)| text.contains("access_denied"));
    ensure!(all.iter().all(told), "{all:?}");
    // Who comes later is asked anew.
    desk.issuer.change(|options| options.approval = Approval::Auto);
    let said = Other::signing_in(&desk, "login")?.ended(SOON)?;
    ensure!(count(&said, "signed-in") == 1, "{said:?}");
    desk.clean()
}

#[tokio::test]
async fn the_browser_of_one_that_is_killed_is_taken_over() -> Result<()> {
    let desk = Desk::plain()?;
    let mut first = Other::signing_in(&desk, "away")?;
    first.says("shown")?;
    let mut second = Other::signing_in(&desk, "login")?;
    second.says("waits")?;
    ensure!(count(&second.said, "shown") == 0);
    first.kill()?;
    let said = second.ended(SOON)?;
    ensure!(count(&said, "shown") == 1 && count(&said, "signed-in") == 1, "{said:?}");
    desk.clean()
}

#[tokio::test]
async fn who_waits_for_a_process_that_is_stopped_is_not_kept_for_ever() -> Result<()> {
    let desk = Desk::plain()?;
    let mut first = Other::signing_in(&desk, "away")?;
    first.says("shown")?;
    first.signal(Signal::STOP)?;
    let auth = desk.again(|settings| settings.login_timeout = Duration::from_secs(1));
    let person = Person::default();
    let error = soon(auth.session(desk.server()?).login(&[], false, &person)).await?.unwrap_err();
    ensure!(desk.text(&error).contains("nobody signed in within 1 s"), "{error}");
    ensure!(person.count() == 0 && person.waits.load(std::sync::atomic::Ordering::SeqCst) == 1);
    desk.clean()
}

#[tokio::test]
async fn a_newer_sign_in_is_never_lost_to_the_end_of_an_older_one() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.signed_in().await?;
    let file = desk.sealed()?.remove(0);
    let old = std::fs::read(&file)?;
    session.login(&[], true, &Person::default()).await?;
    let newer = std::fs::read(&file)?;
    // A program that copies files, and knows no locks, brings the older one back, whose sign-in has ended.
    std::fs::write(&file, &old)?;
    ensure!(desk.issuer.revoke_family("RT1"));
    desk.issuer.hold(Stage::BeforeProcessing, Which::Next);
    let late = desk.again(|_| {}).session(desk.server()?);
    let waiting = calling(&late);
    desk.held().await?;
    // While that is tried, it brings the newer one.
    std::fs::write(&file, &newer)?;
    desk.issuer.open_gates();
    ensure!(called(waiting).await? == Called::Good("AT2 mcp".to_owned()), "{}", desk.issuer.journal().told());
    ensure!(std::fs::read(&file)? == newer, "what is newer was changed");
    // Nobody but that one has noticed anything, and the newer one is renewed as ever.
    desk.issuer.expire_access_tokens();
    ensure!(call(&session, "whoami").await? == Called::Good("AT3 mcp".to_owned()));
    let journal = desk.issuer.journal();
    let labels: Vec<_> = journal.refreshes().iter().map(|one| one.presented.as_deref()).collect();
    ensure!(labels == [Some("RT1"), Some("RT2")] && journal.authorizations() == 2, "{labels:?}");
    desk.clean()
}

#[tokio::test]
async fn a_login_by_somebody_else_is_noticed() -> Result<()> {
    let desk = Desk::plain()?;
    let session = desk.session()?;
    ensure!(call(&session, "whoami").await?.error()?.wants_login());
    let changed = session.changed();
    let other = async {
        desk.again(|_| {}).session(desk.server()?).login(&[], false, &Person::default()).await?;
        anyhow::Ok(())
    };
    let ((), other) = soon(async { tokio::join!(changed, other) }).await?;
    other?;
    ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
    desk.clean()
}

#[tokio::test]
async fn what_one_has_asked_for_in_vain_the_others_do_not_ask_for_again() -> Result<()> {
    let desk = Desk::new(IssuerOptions { say_scope: true, ..IssuerOptions::default() })?;
    desk.issuer.fault(toolway_testkit::oauth::FaultRule::always(
        toolway_testkit::oauth::Endpoint::Token,
        toolway_testkit::oauth::Fault::Edit(serde_json::json!({ "scope": "mcp" })),
    ));
    let admin = ["admin".to_owned()];
    let (first, second) = (desk.session()?, desk.again(|_| {}).session(desk.server()?));
    let (one, two) = (Person::default(), Person::default());
    let both = async { tokio::join!(first.login(&admin, false, &one), second.login(&admin, false, &two)) };
    let (signed, waited) = soon(both).await?;
    ensure!(signed?.scopes == ["mcp"] && waited?.scopes == ["mcp"]);
    ensure!(one.count() + two.count() == 1 && desk.issuer.journal().authorizations() == 1);
    desk.clean()
}
