//! Many processes and one refresh token that is good once, whose second use ends the sign-in of all. Five and twenty of
//! them call a tool twenty times each while the access token lives for two seconds.
//!
//! `TOOLWAY_T14_ROUNDS=100 cargo test -p toolway-auth --test signing many` repeats each of these so often, and
//! `TOOLWAY_T14_SECONDS=10` gives the twenty calls ten seconds instead of four.

use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use toolway_auth::SignInState;
use toolway_testkit::SOON;
use toolway_testkit::oauth::{Grant, IssuerOptions, Stage, Which};

use crate::desk::{Called, Desk, call};
use crate::processes::{Other, holder};

const CALLS: u32 = 20;
/// A lock is to be taken over within five seconds; the machine of a test may be ten times slower.
const TAKEN_OVER: Duration = Duration::from_secs(50);

fn told<T: FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn rounds() -> u32 {
    told("TOOLWAY_T14_ROUNDS", 1)
}

fn span() -> Duration {
    Duration::from_secs(told("TOOLWAY_T14_SECONDS", 4))
}

/// Signed in, with an access token that is at its end, and as many processes as are wanted.
struct Crowd {
    desk: Desk,
    others: Vec<Other>,
}

impl Crowd {
    async fn gather(count: usize, hold: Option<Stage>) -> Result<Self> {
        let options = IssuerOptions { access_token_life: Duration::from_secs(2), ..IssuerOptions::default() };
        let desk = Desk::new(options)?;
        desk.signed_in().await?;
        desk.issuer.expire_access_tokens();
        if let Some(stage) = hold {
            desk.issuer.hold(stage, Which::Next);
        }
        let pace = span() / CALLS;
        let others = (0..count).map(|_| Other::calling(&desk, CALLS, pace)).collect::<Result<_>>()?;
        Ok(Self { desk, others })
    }

    /// The one that has the lock, out of the others.
    fn take_holder(&mut self) -> Result<Other> {
        let id = holder(&self.desk.directory())?;
        let place = self.others.iter().position(|other| other.id() == id);
        Ok(self.others.swap_remove(place.with_context(|| format!("process {id} is none of these"))?))
    }

    /// What all say until they end, one list for each.
    fn ended(&mut self) -> Result<Vec<Vec<(String, String)>>> {
        self.others.drain(..).map(|other| other.ended(span())).collect()
    }

    /// All living processes could do all their calls, and nobody noticed anything.
    async fn goes_well(mut self) -> Result<()> {
        for said in self.ended()? {
            let good = said.iter().filter(|(what, _)| what == "good").count();
            ensure!(good == CALLS as usize, "{said:?}\n{}", self.desk.issuer.journal().told());
        }
        let journal = self.desk.issuer.journal();
        let told = || journal.told();
        ensure!(journal.reused() == 0 && journal.refused("invalid_grant").is_empty(), "{}", told());
        ensure!(journal.authorizations() == 1, "a browser was opened: {}", told());
        let refreshes = journal.refreshes();
        ensure!(refreshes.len() >= 2, "the tokens were to end meanwhile: {}", told());
        // What is kept is the newest: the next refresh presents the refresh token that was given last.
        let newest = refreshes.last().and_then(|last| last.issued.get(1)).cloned();
        self.desk.issuer.expire_access_tokens();
        ensure!(matches!(call(&self.desk.session()?, "whoami").await?, Called::Good(_)));
        let after = self.desk.issuer.journal();
        ensure!(
            after.refreshes().last().and_then(|last| last.presented.clone()) == newest,
            "{}",
            after.told()
        );
        self.modes()?;
        self.desk.clean()
    }

    #[cfg(unix)]
    fn modes(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let mode =
            |path: &std::path::Path| Ok::<_, std::io::Error>(path.metadata()?.permissions().mode() & 0o777);
        ensure!(mode(&self.desk.directory())? == 0o700);
        for file in std::fs::read_dir(self.desk.directory())? {
            let path = file?.path();
            ensure!(mode(&path)? == 0o600, "{}", path.display());
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let new = path.extension().is_some_and(|extension| extension == "new");
            ensure!(!new && !name.starts_with(".tmp"), "{name} was left");
        }
        ensure!(self.desk.sealed()?.len() == 1);
        Ok(())
    }
}

async fn all_go_on(count: usize) -> Result<()> {
    for _ in 0..rounds() {
        Crowd::gather(count, None).await?.goes_well().await?;
    }
    Ok(())
}

/// The holder is killed before its refresh was processed: the token is as good as before.
async fn killed_before(count: usize) -> Result<()> {
    for _ in 0..rounds() {
        let mut crowd = Crowd::gather(count, Some(Stage::BeforeProcessing)).await?;
        crowd.desk.issuer.held(SOON * 3)?;
        crowd.take_holder()?.kill()?;
        let killed = Instant::now();
        crowd.desk.issuer.wait_for(TAKEN_OVER, |journal| !journal.refreshes().is_empty())?;
        ensure!(killed.elapsed() < TAKEN_OVER, "taken over after {:?}", killed.elapsed());
        crowd.goes_well().await?;
    }
    Ok(())
}

/// The holder is killed when its refresh was processed and kept.
async fn killed_after(count: usize) -> Result<()> {
    for _ in 0..rounds() {
        let mut crowd = Crowd::gather(count, None).await?;
        let generation = |desk: &Desk| Ok::<_, anyhow::Error>(desk.sealed()?[0].metadata()?.modified()?);
        let before = generation(&crowd.desk)?;
        let end = Instant::now() + SOON * 3;
        while generation(&crowd.desk)? == before {
            ensure!(Instant::now() < end, "nobody refreshes: {}", crowd.desk.issuer.journal().told());
            tokio::task::yield_now().await;
        }
        crowd.take_holder()?.kill()?;
        crowd.goes_well().await?;
    }
    Ok(())
}

/// The holder is killed between the two: the new tokens are lost, and nobody can know whether they were given. So the
/// old one is tried, once, and then everybody says that somebody has to sign in.
async fn killed_between(count: usize) -> Result<()> {
    for _ in 0..rounds() {
        let mut crowd = Crowd::gather(count, Some(Stage::BeforeAnswer)).await?;
        crowd.desk.issuer.held(SOON * 3)?;
        crowd.take_holder()?.kill()?;
        crowd.desk.issuer.open_gates();
        for said in crowd.ended()? {
            let calls = || said.iter().filter(|(what, _)| what != "done");
            ensure!(
                calls().all(|(what, _)| what == "needs-auth") && calls().count() == CALLS as usize,
                "{said:?}"
            );
            ensure!(calls().all(|(_, text)| text.contains("no longer accepted")), "{said:?}");
        }
        let journal = crowd.desk.issuer.journal();
        ensure!(journal.grants(Grant::RefreshToken).len() == 2, "a storm: {}", journal.told());
        ensure!(journal.reused() == 1 && journal.authorizations() == 1, "{}", journal.told());
        let status = crowd.desk.session()?.status().await?.context("nothing is known")?;
        ensure!(status.state == SignInState::SignedOut && status.ended.is_some(), "{status:?}");
        // Nothing else breaks: somebody signs in, and all is well.
        let session = crowd.desk.signed_in().await?;
        ensure!(matches!(call(&session, "whoami").await?, Called::Good(_)));
        crowd.modes()?;
        crowd.desk.clean()?;
    }
    Ok(())
}

/// The holder is stopped in the middle, and goes on later.
async fn stopped(count: usize) -> Result<()> {
    for _ in 0..rounds() {
        let mut crowd = Crowd::gather(count, Some(Stage::BeforeAnswer)).await?;
        crowd.desk.issuer.held(SOON * 3)?;
        let holder = crowd.take_holder()?;
        holder.signal(Signal::STOP)?;
        crowd.desk.issuer.open_gates();
        // Who waits for it says so in the end, and leaves everything as it is.
        let auth = crowd.desk.again(|settings| settings.lock_timeout = Duration::from_secs(1));
        let error = call(&auth.session(crowd.desk.server()?), "whoami").await?.error()?;
        let text = crowd.desk.text(&error);
        ensure!(
            text.contains(&format!("process {}", holder.id())) && text.contains("for more than 1 s"),
            "{text}"
        );
        ensure!(!error.wants_login(), "{error:?}");
        holder.signal(Signal::CONT)?;
        crowd.others.push(holder);
        crowd.goes_well().await?;
    }
    Ok(())
}

#[tokio::test]
async fn five_processes_share_a_token_that_is_good_once() -> Result<()> {
    all_go_on(5).await
}

#[tokio::test]
async fn twenty_processes_share_a_token_that_is_good_once() -> Result<()> {
    all_go_on(20).await
}

#[tokio::test]
async fn one_of_five_is_killed_before_its_refresh_was_processed() -> Result<()> {
    killed_before(5).await
}

#[tokio::test]
async fn one_of_twenty_is_killed_before_its_refresh_was_processed() -> Result<()> {
    killed_before(20).await
}

#[tokio::test]
async fn one_of_five_is_killed_when_its_refresh_is_kept() -> Result<()> {
    killed_after(5).await
}

#[tokio::test]
async fn one_of_twenty_is_killed_when_its_refresh_is_kept() -> Result<()> {
    killed_after(20).await
}

#[tokio::test]
async fn one_of_five_is_killed_with_the_only_copy_of_the_new_tokens() -> Result<()> {
    killed_between(5).await
}

#[tokio::test]
async fn one_of_twenty_is_killed_with_the_only_copy_of_the_new_tokens() -> Result<()> {
    killed_between(20).await
}

#[tokio::test]
async fn one_of_five_is_stopped_while_it_refreshes() -> Result<()> {
    stopped(5).await
}
