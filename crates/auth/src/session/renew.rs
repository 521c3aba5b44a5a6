//! Owns the renewal of tokens: one at a time in a process, one at a time over all processes of a user, and never with a
//! refresh token that somebody else has used.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

use super::machine::not_accepted;
use super::{Inner, Live, MOST_REFUSALS, PAUSE, SPAN, Session};
use crate::error::AuthError;
use crate::grant::{Granting, is_spent, is_unknown_client};
use crate::settings::union;
use crate::store::{Entry, Lock, Origin, Over, Written};
use crate::token::{TokenReply, Tokens, now_ms};

type Header = Option<HeaderValue>;

/// How often it is begun anew where somebody changes the store without its lock.
const ATTEMPTS: usize = 3;

/// What became of one attempt.
enum Attempt {
    Done(Header),
    /// Somebody who does not ask for the lock has changed the store meanwhile.
    Overtaken,
}

impl Session {
    /// A token other than the refused one. It goes on when nobody waits for it any more.
    pub(super) async fn renew(&self, refused: Header) -> Result<Header, AuthError> {
        let inner = Arc::clone(&self.inner);
        let task = super::TASKS.spawn(async move { inner.renewed(refused).await });
        joined(task.await)
    }

    /// The same, and no longer than half the time for which the token of now is still good: that one is used then.
    pub(super) async fn renew_in_time(&self) -> Result<Header, AuthError> {
        let Some((header, left)) = self.inner.spare() else { return self.renew(None).await };
        if let Ok(done) = tokio::time::timeout(left / 2, self.renew(None)).await {
            return done;
        }
        self.inner.lend(&header);
        Ok(Some(header))
    }

    /// A token that reaches as far as these scopes and those that were granted.
    pub(super) async fn step_up(&self, scopes: Vec<String>, refused: Header) -> Result<bool, AuthError> {
        let inner = Arc::clone(&self.inner);
        let task = super::TASKS.spawn(async move { inner.stepped_up(scopes, refused).await });
        joined(task.await)
    }
}

fn joined<T>(done: Result<Result<T, AuthError>, tokio::task::JoinError>) -> Result<T, AuthError> {
    done.unwrap_or_else(|error| Err(AuthError::Late { reason: format!("the renewal was cut off: {error}") }))
}

impl Inner {
    async fn renewed(&self, refused: Header) -> Result<Header, AuthError> {
        let _one = self.renewing.lock().await;
        // Whoever held the lock before may have done it.
        if let Some(header) = self.ready().filter(|header| Some(header) != refused.as_ref()) {
            return Ok(Some(header));
        }
        if let Some((at, error)) = &self.state().failed
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        let done = self.found_or_refreshed(refused.as_ref()).await;
        match &done {
            Ok(None) => self.absent(),
            Ok(Some(_)) => {}
            Err(error) => {
                let mut state = self.state_mut();
                if error.wants_login() {
                    state.live = Live::Absent;
                } else {
                    state.failed = Some((Instant::now(), error.clone()));
                }
            }
        }
        done
    }

    async fn found_or_refreshed(&self, refused: Option<&HeaderValue>) -> Result<Header, AuthError> {
        if self.is_machine() {
            self.machine_client()?;
        }
        for _ in 0..ATTEMPTS {
            let kept = match self.kept().await {
                // What is not kept for others can be had all the same.
                Err(AuthError::Store { .. }) if self.is_machine() => None,
                kept => kept?,
            };
            if let Some(header) = kept.as_ref().and_then(|entry| self.adopt(entry, refused)) {
                return Ok(Some(header));
            }
            if refused.is_some() && self.is_refused_too_often() {
                return Ok(refused.cloned());
            }
            if self.is_machine() {
                let wanted = kept.as_ref().map(|entry| entry.wanted.clone()).unwrap_or_default();
                return self.as_machine(kept, wanted, refused).await.map(Some);
            }
            let Some(entry) = kept else { return Ok(None) };
            let Some(tokens) = &entry.tokens else { return Ok(None) };
            if tokens.refresh.is_none() {
                return self.used_to_the_end(&entry, refused);
            }
            let lock = match self.shared.lock(&entry.id()).await {
                Ok(lock) => lock,
                Err(error) => return self.still_good(&entry, refused).ok_or(error).map(Some),
            };
            match self.refreshed(&entry, refused, lock).await? {
                Attempt::Done(header) => return Ok(header),
                Attempt::Overtaken => {}
            }
        }
        let reason = "the sign-in is changed again and again by a program that does not ask for its lock";
        Err(AuthError::Late { reason: reason.to_owned() })
    }

    fn is_refused_too_often(&self) -> bool {
        let mut state = self.state_mut();
        state.refusals.retain(|at| at.elapsed() < SPAN);
        let often = state.refusals.len() >= MOST_REFUSALS;
        if !often {
            state.refusals.push(Instant::now());
        }
        often
    }

    /// A token that cannot be renewed is used until it is refused: the clock may be wrong.
    fn used_to_the_end(&self, entry: &Entry, refused: Option<&HeaderValue>) -> Result<Header, AuthError> {
        let header = entry.tokens.as_ref().and_then(Tokens::header);
        if header.as_ref() == refused {
            self.state_mut().dead.clone_from(&header);
        }
        let dead = self.state().dead.clone();
        match header.filter(|header| Some(header) != dead.as_ref()) {
            Some(header) => {
                self.hold(header.clone(), None, None);
                Ok(Some(header))
            }
            None => Err(AuthError::needs_login(
                "the sign-in has ended, and its server gave nothing to renew it with",
            )),
        }
    }

    /// The lock is held until what came is kept.
    async fn refreshed(
        &self,
        seen: &Entry,
        refused: Option<&HeaderValue>,
        lock: Lock,
    ) -> Result<Attempt, AuthError> {
        let id = seen.id();
        let Some(mut entry) = self.shared.read(&id).await? else { return Ok(Attempt::Done(None)) };
        if let Some(header) = self.adopt(&entry, refused) {
            return Ok(Attempt::Done(Some(header)));
        }
        let Some(tokens) = entry.tokens.clone() else { return Ok(Attempt::Done(None)) };
        let Some(refresh) = tokens.refresh.clone() else {
            return self.used_to_the_end(&entry, refused).map(Attempt::Done);
        };
        let over = Over::Generation(entry.generation);
        let prepared = match self.shared.prepare(&id, &lock).await {
            Ok(prepared) => prepared,
            // A token that could not be kept would be lost, and with it the sign-in of all others.
            Err(error) => return self.still_good(&entry, refused).ok_or(error).map(Some).map(Attempt::Done),
        };
        if let Some(client) = &self.server.client {
            // The configuration may have another secret by now.
            entry.client.secret.clone_from(&client.secret);
        }
        let http = self.http.near(&self.server.resource).await;
        let granting = Granting::of(&http, &entry);
        let asked_at = now_ms();
        let reply = granting.refresh(&refresh).await;
        let failure = match reply {
            Ok(reply) => {
                renewed_by(&mut entry, &reply, asked_at, &tokens);
                None
            }
            Err(error) => {
                let Some(ended) = ended_by(&mut entry, &error) else {
                    let error = if is_unknown_client(&error) { not_accepted(&entry, &error) } else { error };
                    return self.still_good(&entry, refused).ok_or(error).map(Some).map(Attempt::Done);
                };
                Some(ended)
            }
        };
        let written = match (self.shared.keep(prepared, entry.clone(), over, &lock).await, &failure) {
            (Ok(written), _) => written,
            // The new token exists in this process alone, and the old one is used up: better used than thrown away.
            (Err(error), None) => {
                tracing::error!(%error, "a refreshed token could not be kept: others have to sign in again");
                Written::Kept(Box::new(entry))
            }
            (Err(error), Some(_)) => return Err(error),
        };
        drop(lock);
        match (written, failure) {
            (Written::Overtaken, _) => Ok(Attempt::Overtaken),
            (Written::Kept(_), Some(failure)) => Err(failure),
            (Written::Kept(entry), None) => self.adopt_new(&entry).map(Some).map(Attempt::Done),
        }
    }

    /// A token that came this moment is used, however short its life.
    pub(super) fn adopt_new(&self, entry: &Entry) -> Result<HeaderValue, AuthError> {
        let header = entry.tokens.as_ref().and_then(Tokens::header);
        let header = header.ok_or_else(|| AuthError::answer("its token cannot be sent in a header"))?;
        if self.adopt(entry, None).is_none() {
            let end = entry.tokens.as_ref().and_then(|tokens| tokens.expires_in);
            let end = end.map(|life| Instant::now() + life);
            self.hold(header.clone(), end, end);
        }
        Ok(header)
    }

    /// A token is renewed a little before its end: until then the old one serves, if the new one cannot be had.
    fn still_good(&self, entry: &Entry, refused: Option<&HeaderValue>) -> Header {
        let tokens = entry.tokens.as_ref()?;
        let header = tokens.header().filter(|header| refused != Some(header))?;
        let left = tokens.left(now_ms()).filter(|left| !left.is_zero())?;
        let now = Instant::now();
        self.hold(header.clone(), Some(now + left.min(PAUSE)), Some(now + left));
        Some(header)
    }

    /// The token of now and how long it is still good, where it is.
    fn spare(&self) -> Option<(HeaderValue, Duration)> {
        match &self.state().live {
            Live::Token(token) => {
                let left = token.end?.checked_duration_since(Instant::now())?;
                (!left.is_zero()).then(|| (token.header.clone(), left))
            }
            _ => None,
        }
    }

    /// Uses the token of now a little longer, where nobody has found another meanwhile.
    fn lend(&self, header: &HeaderValue) {
        if let Live::Token(token) = &mut self.state_mut().live
            && token.header == *header
        {
            let until = Instant::now() + PAUSE;
            token.until = Some(token.end.map_or(until, |end| end.min(until)));
        }
    }

    async fn stepped_up(&self, scopes: Vec<String>, refused: Header) -> Result<bool, AuthError> {
        let _one = self.renewing.lock().await;
        if self.ready().is_some_and(|header| Some(&header) != refused.as_ref()) {
            // Another request has done it.
            return Ok(true);
        }
        let Some(entry) = self.kept().await? else { return Err(self.needs_login().await) };
        if covers(&entry, &scopes) && self.adopt(&entry, refused.as_ref()).is_some() {
            return Ok(true);
        }
        let granted = entry.tokens.as_ref().map(|tokens| tokens.scopes.clone()).unwrap_or_default();
        // It has what the server says it lacks, or it was asked for and not given: asking again would be no use.
        let vain = self.state().vain.clone();
        let asked =
            |scope: &String| self.is_machine() && (entry.wanted.contains(scope) || vain.contains(scope));
        if scopes.iter().all(|scope| granted.contains(scope) || asked(scope)) {
            return Ok(false);
        }
        // What was granted is asked for again: the new token is to do all that the old one did.
        let wanted = union(granted.iter().chain(&scopes));
        if self.is_machine() {
            self.as_machine(Some(entry), wanted, refused.as_ref()).await?;
            let entry = self.kept().await?;
            return Ok(entry.is_none_or(|entry| covers(&entry, &scopes)));
        }
        self.note_wanted(&entry, &wanted).await;
        let reason = format!("the server wants more than was granted: scope \"{}\"", scopes.join(" "));
        Err(AuthError::NeedsLogin { reason, scopes: wanted })
    }

    /// The next login asks for these too, in whichever process it is. Where that cannot be kept, it is asked again then.
    async fn note_wanted(&self, seen: &Entry, wanted: &[String]) {
        let all = |entry: &Entry| union(entry.wanted.iter().chain(wanted));
        self.change_wanted(seen, all).await;
    }

    pub(super) async fn change_wanted(&self, seen: &Entry, change: impl Fn(&Entry) -> Vec<String>) {
        let id = seen.id();
        let noted = async {
            let lock = self.shared.lock(&id).await?;
            let Some(mut entry) = self.shared.read(&id).await? else { return Ok(()) };
            let over = Over::Generation(entry.generation);
            let wanted = change(&entry);
            if wanted != entry.wanted {
                entry.wanted = wanted;
                let prepared = self.shared.prepare(&id, &lock).await?;
                self.shared.keep(prepared, entry, over, &lock).await?;
            }
            Ok::<(), AuthError>(())
        };
        if let Err(error) = noted.await {
            tracing::debug!(%error, "the scopes that a server wants could not be noted");
        }
    }
}

fn renewed_by(entry: &mut Entry, reply: &TokenReply, asked_at_ms: u64, before: &Tokens) {
    entry.tokens = Some(Tokens::of(reply, asked_at_ms, &before.scopes, before.refresh.as_ref()));
    entry.ended = None;
}

/// The failure that ends a sign-in. `None`: it is none of these, and the tokens are as good as before.
fn ended_by(entry: &mut Entry, error: &AuthError) -> Option<AuthError> {
    let unknown = is_unknown_client(error);
    if !unknown && !is_spent(error) {
        return None;
    }
    if unknown && entry.client.origin != Origin::Registered {
        // Its secret is wrong, or it may not do this: that is not mended by losing the tokens.
        return None;
    }
    if unknown {
        entry.client.redirect = None;
    }
    entry.tokens = None;
    let reason = format!("the sign-in is no longer accepted: {error}");
    entry.ended = Some(reason.clone());
    Some(AuthError::needs_login(reason))
}

pub(super) fn covers(entry: &Entry, scopes: &[String]) -> bool {
    entry.tokens.as_ref().is_some_and(|tokens| scopes.iter().all(|scope| tokens.scopes.contains(scope)))
}
