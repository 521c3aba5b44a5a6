//! Owns the renewal of tokens: one at a time in a process, one at a time over all processes of a user, and never with a
//! refresh token that somebody else has used.

use std::sync::Arc;

use http::HeaderValue;
use tokio::time::Instant;

use super::{Inner, Live, PAUSE, Session};
use crate::client::configured;
use crate::discover::discover;
use crate::error::AuthError;
use crate::grant::{Granting, is_spent, is_unknown_client};
use crate::settings::union;
use crate::store::{Endpoints, Entry, Lock, Written};
use crate::token::{Tokens, now};

type Header = Option<HeaderValue>;

impl Session {
    /// A token other than the refused one. It goes on when nobody waits for it any more.
    pub(super) async fn renew(&self, refused: Header) -> Result<Header, AuthError> {
        let inner = Arc::clone(&self.inner);
        let task = super::TASKS.spawn(async move { inner.renewed(refused).await });
        joined(task.await)
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
        let kept = self.kept().await?;
        if let Some(header) = kept.as_ref().and_then(|entry| self.adopt(entry, refused)) {
            return Ok(Some(header));
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
        let lock = self.shared.store.lock(&entry.id(), self.shared.settings.lock_timeout).await?;
        self.refreshed(&entry, refused, lock).await
    }

    /// A token that cannot be renewed is used until it is refused: the clock may be wrong.
    fn used_to_the_end(&self, entry: &Entry, refused: Option<&HeaderValue>) -> Result<Header, AuthError> {
        match entry.tokens.as_ref().and_then(Tokens::header) {
            Some(header) if refused != Some(&header) => {
                self.hold(header.clone(), None);
                Ok(Some(header))
            }
            _ => Err(AuthError::needs_login(
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
    ) -> Result<Header, AuthError> {
        let id = seen.id();
        let read = {
            let id = id.clone();
            self.shared.with_store(move |store| store.read(&id)).await?
        };
        let Some(mut entry) = read else { return Ok(None) };
        if let Some(header) = self.adopt(&entry, refused) {
            return Ok(Some(header));
        }
        let Some(tokens) = entry.tokens.clone() else { return Ok(None) };
        let Some(refresh) = tokens.refresh.clone() else { return self.used_to_the_end(&entry, refused) };
        let generation = entry.generation;
        let still_good = |error: AuthError| self.still_good(&entry, refused).ok_or(error).map(Some);
        let prepared = match self.shared.store.prepare(&id, &lock) {
            Ok(prepared) => prepared,
            // A token that could not be kept would be lost, and with it the sign-in of all others.
            Err(error) => return still_good(error),
        };
        let http = self.http.near(&self.server.resource).await;
        let granting = Granting {
            http: &http,
            client: &entry.client,
            token: &entry.endpoints.token,
            resource: &entry.resource,
        };
        let reply = granting.refresh(&refresh).await;
        let failure = match &reply {
            Ok(reply) => {
                entry.tokens = Some(Tokens::of(reply, &tokens.scopes, Some(&refresh)));
                entry.ended = None;
                None
            }
            Err(error) if is_spent(error) || is_unknown_client(error) => {
                entry.tokens = None;
                if is_unknown_client(error) {
                    entry.client.redirect = None;
                }
                let reason = format!("the sign-in is no longer accepted: {error}");
                entry.ended = Some(reason.clone());
                Some(AuthError::needs_login(reason))
            }
            Err(error) => return still_good(error.clone()),
        };
        // Prepared: no time passes here that would need another thread.
        let written = match (prepared.keep(&mut entry, generation), &failure) {
            (Ok(written), _) => written,
            // The new token exists in this process alone, and the old one is used up: better used than thrown away.
            (Err(error), None) => {
                tracing::error!(%error, "a refreshed token could not be kept: others have to sign in again");
                Written::Kept
            }
            (Err(error), Some(_)) => return Err(error),
        };
        drop(lock);
        match (written, failure) {
            (Written::Newer(Some(newer)), _) => match self.adopt(&newer, refused) {
                Some(header) => Ok(Some(header)),
                None => {
                    Err(AuthError::needs_login("the sign-in was changed by somebody else at the same time"))
                }
            },
            (Written::Newer(None), _) => Ok(None),
            (Written::Kept, Some(failure)) => Err(failure),
            (Written::Kept, None) => Ok(self.adopt_new(&entry)),
        }
    }

    /// A token that came this moment is used, however short its life.
    fn adopt_new(&self, entry: &Entry) -> Header {
        self.adopt(entry, None).or_else(|| {
            let tokens = entry.tokens.as_ref()?;
            let header = tokens.header()?;
            self.hold(header.clone(), tokens.expires_in.map(|life| Instant::now() + life));
            Some(header)
        })
    }

    /// A token is renewed a little before its end: until then the old one serves, if the new one cannot be had.
    fn still_good(&self, entry: &Entry, refused: Option<&HeaderValue>) -> Header {
        let tokens = entry.tokens.as_ref()?;
        let header = tokens.header().filter(|header| refused != Some(header))?;
        let left = tokens.left(now()).filter(|left| !left.is_zero())?;
        self.hold(header.clone(), Some(Instant::now() + left.min(PAUSE)));
        Some(header)
    }

    /// Client credentials (RFC 6749, 4.4): nobody is asked, so whoever needs a token gets one.
    pub(super) async fn as_machine(
        &self,
        kept: Option<Entry>,
        wanted: Vec<String>,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, AuthError> {
        let Some(client) = &self.server.client else {
            return Err(AuthError::setting("CLIENT_ID", "client credentials need a client and its secret"));
        };
        let http = self.http.near(&self.server.resource).await;
        let mut entry = match kept {
            Some(entry) => entry,
            None => self.machine_entry(&http, wanted.clone()).await?,
        };
        let id = entry.id();
        let lock = self.shared.store.lock(&id, self.shared.settings.lock_timeout).await?;
        let read = {
            let id = id.clone();
            self.shared.with_store(move |store| store.read(&id)).await?
        };
        let generation = read.as_ref().map_or(0, |read| read.generation);
        if let Some(read) = read {
            if let Some(header) = self.adopt(&read, refused).filter(|_| covers(&read, &wanted)) {
                return Ok(header);
            }
            entry = read;
        }
        // The configuration may have another secret by now.
        entry.client.secret.clone_from(&client.secret);
        entry.wanted = union(entry.wanted.iter().chain(&wanted));
        let prepared = self.shared.store.prepare(&id, &lock)?;
        let scopes = self.scopes(&entry.wanted, &[]);
        let granting = Granting {
            http: &http,
            client: &entry.client,
            token: &entry.endpoints.token,
            resource: &entry.resource,
        };
        let reply = granting.credentials(&scopes).await?;
        entry.tokens = Some(Tokens::of(&reply, &scopes, None));
        prepared.keep(&mut entry, generation)?;
        drop(lock);
        self.adopt_new(&entry).ok_or_else(|| AuthError::answer("its token cannot be sent in a header"))
    }

    async fn machine_entry(&self, http: &crate::http::Http, wanted: Vec<String>) -> Result<Entry, AuthError> {
        let challenge = self.state().challenge.clone();
        let found = discover(http, &self.server.resource, challenge.as_ref(), None, false).await?;
        let Some(client) = &self.server.client else {
            return Err(AuthError::setting("CLIENT_ID", "client credentials need a client and its secret"));
        };
        Ok(Entry {
            asked: self.asked().to_owned(),
            account: self.server.account.clone(),
            client: configured(client, &found.issuer),
            endpoints: Endpoints { token: found.issuer.token, revocation: found.issuer.revocation },
            issuer: found.issuer.name,
            resource: found.resource,
            tokens: None,
            wanted: union(found.scopes.iter().filter(|_| self.server.scopes.is_empty()).chain(&wanted)),
            ended: None,
            generation: 0,
            changed_at: 0,
        })
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
        if scopes.iter().all(|scope| granted.contains(scope)) {
            // It has what the server says it lacks: a wider one cannot be asked for.
            return Ok(false);
        }
        // What was granted is asked for again: the new token is to do all that the old one did.
        let wanted = union(granted.iter().chain(&scopes));
        if self.is_machine() {
            return self.as_machine(Some(entry), wanted, refused.as_ref()).await.map(|_| true);
        }
        self.note_wanted(&entry, &wanted).await;
        let reason = format!("the server wants more than was granted: scope \"{}\"", scopes.join(" "));
        Err(AuthError::NeedsLogin { reason, scopes: wanted })
    }

    /// The next login asks for these too, in whichever process it is. Where that cannot be kept, it is asked again then.
    async fn note_wanted(&self, seen: &Entry, wanted: &[String]) {
        let id = seen.id();
        let noted = async {
            let lock = self.shared.store.lock(&id, self.shared.settings.lock_timeout).await?;
            let Some(mut entry) = self.shared.store.read(&id)? else { return Ok(()) };
            let generation = entry.generation;
            let all = union(entry.wanted.iter().chain(wanted));
            if all != entry.wanted {
                entry.wanted = all;
                self.shared.store.prepare(&id, &lock)?.keep(&mut entry, generation)?;
            }
            Ok::<(), AuthError>(())
        };
        if let Err(error) = noted.await {
            tracing::debug!(%error, "the scopes that a server wants could not be noted");
        }
    }
}

fn covers(entry: &Entry, scopes: &[String]) -> bool {
    entry.tokens.as_ref().is_some_and(|tokens| scopes.iter().all(|scope| tokens.scopes.contains(scope)))
}
