//! Owns that of all processes of a user one asks the person, while the others wait for its answer.

use std::time::Duration;

use super::login::Opener;
use super::status::SignIn;
use super::{Inner, Session};
use crate::error::AuthError;
use crate::settings::{scopes_of, union};
use crate::store::{Entry, EntryId, Lock, resource_part};

/// How often those who wait look.
const LOOK: Duration = Duration::from_millis(150);
/// How a login that failed begins its word to those who waited.
const FAILED: &str = "failed: ";
/// How one that went well does, before the scopes that were asked for.
const DONE: &str = "done: ";

impl Session {
    /// Signs in: shows the address to the person and waits for the answer, or waits for another process of this user that
    /// has done so. A sign-in that somebody else has finished meanwhile is taken; `anew`: one that was there before is not.
    pub async fn login(
        &self,
        scopes: &[String],
        anew: bool,
        opener: &dyn Opener,
    ) -> Result<SignIn, AuthError> {
        let inner = &self.inner;
        if inner.is_machine() {
            let kept = inner.kept_or_unusable().await?;
            let refused = inner.ready();
            Box::pin(inner.as_machine(kept, scopes.to_vec(), refused.as_ref())).await?;
            return self.current().await;
        }
        let before = inner.kept_or_unusable().await?;
        if !anew && let Some(entry) = before.as_ref().filter(|entry| serves(entry, scopes)) {
            inner.adopt(entry, None);
            return Ok(SignIn::of(entry));
        }
        let before = before.map(|entry| (entry.id(), entry.generation));
        let late = inner.shared.settings.login_timeout;
        // Large, and held by whoever embeds this.
        let attempt = Box::pin(self.in_turn(scopes, before, opener));
        tokio::time::timeout(late, attempt).await.unwrap_or_else(|_| {
            Err(AuthError::Late { reason: format!("nobody signed in within {} s", late.as_secs()) })
        })
    }

    async fn in_turn(
        &self,
        scopes: &[String],
        before: Option<(EntryId, u64)>,
        opener: &dyn Opener,
    ) -> Result<SignIn, AuthError> {
        let inner = &self.inner;
        let name = inner.login_lock();
        let mut waited = false;
        loop {
            let new = inner.newer(before.as_ref()).await?;
            if let Some(entry) = new.filter(|entry| serves(entry, scopes)) {
                inner.adopt(&entry, None);
                return Ok(SignIn::of(&entry));
            }
            match inner.shared.store.try_lock_named(&name)? {
                Some(mut lock) => {
                    // One who said no is not asked again by everybody who waited.
                    let told = lock.before().strip_prefix(FAILED).filter(|_| waited).map(str::to_owned);
                    if let Some(told) = told {
                        lock.leave(&format!("{FAILED}{told}"));
                        return Err(AuthError::Late {
                            reason: format!("another process's login failed: {told}"),
                        });
                    }
                    // Somebody may have finished between the look and the lock. What was asked for then and not given
                    // would not be given now.
                    let asked = lock.before().strip_prefix(DONE).filter(|_| waited).map(scopes_of);
                    let enough = asked.is_some_and(|asked| scopes.iter().all(|scope| asked.contains(scope)));
                    if waited
                        && let Some(entry) = inner.newer(before.as_ref()).await?
                        && (enough || serves(&entry, scopes))
                    {
                        // For those who have waited as well.
                        let word = lock.before().to_owned();
                        lock.leave(&word);
                        inner.adopt(&entry, None);
                        return Ok(SignIn::of(&entry));
                    }
                    return self.asked(scopes, opener, lock).await;
                }
                None if !waited => {
                    waited = true;
                    opener.waits();
                }
                None => {}
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn asked(
        &self,
        scopes: &[String],
        opener: &dyn Opener,
        mut lock: Lock,
    ) -> Result<SignIn, AuthError> {
        let mut leaving = Leaving(&mut lock, format!("{FAILED}nobody finished it"));
        let done = self.shown(scopes, opener).await;
        leaving.1 = match &done {
            Ok(_) => format!("{DONE}{}", scopes.join(" ")),
            Err(error) => format!("{FAILED}{error}"),
        };
        drop(leaving);
        done
    }

    async fn current(&self) -> Result<SignIn, AuthError> {
        match self.inner.kept().await? {
            Some(entry) => Ok(SignIn::of(&entry)),
            None => Err(self.inner.needs_login().await),
        }
    }
}

/// Those who wait learn how it ended, also where it is cut off.
struct Leaving<'a>(&'a mut Lock, String);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.leave(&self.1);
    }
}

impl Inner {
    fn login_lock(&self) -> String {
        let whose = format!("{}\n{}", self.client_id().unwrap_or_default(), self.server.account);
        format!("{}-{}.login", resource_part(self.asked()), resource_part(&whose))
    }

    /// What was kept since.
    async fn newer(&self, before: Option<&(EntryId, u64)>) -> Result<Option<Entry>, AuthError> {
        let kept = self.kept_or_unusable().await?;
        Ok(kept.filter(|entry| {
            let known = before.filter(|(id, _)| *id == entry.id());
            entry.tokens.is_some() && known.is_none_or(|(_, generation)| *generation < entry.generation)
        }))
    }
}

/// It has tokens that reach as far as is wanted.
fn serves(entry: &Entry, scopes: &[String]) -> bool {
    let wanted = union(scopes.iter().chain(&entry.wanted));
    entry.tokens.as_ref().is_some_and(|tokens| {
        let usable = tokens.refresh.is_some()
            || tokens.left(crate::token::now_ms()).is_none_or(|left| !left.is_zero());
        usable && wanted.iter().all(|scope| tokens.scopes.contains(scope))
    })
}
