//! Owns tokens for the client itself (client credentials; RFC 6749, 4.4): nobody is asked, so whoever needs one gets one.

use http::HeaderValue;

use super::Inner;
use super::renew::covers;
use crate::client::configured;
use crate::discover::discover;
use crate::error::AuthError;
use crate::grant::{Granting, is_unknown_client};
use crate::http::Http;
use crate::settings::{StaticClient, union};
use crate::store::{Endpoints, Entry, Lock, Over, Prepared};
use crate::token::{Tokens, now_ms};

impl Inner {
    /// A token that reaches as far as `wanted`, if the server gives one. It is kept for other processes where that can be
    /// done: no token is used up by this one, so it is no harm if not.
    pub(super) async fn as_machine(
        &self,
        kept: Option<Entry>,
        wanted: Vec<String>,
        refused: Option<&HeaderValue>,
    ) -> Result<HeaderValue, AuthError> {
        let client = self.machine_client()?;
        let http = self.http.near(&self.server.resource).await;
        let mut entry = match kept {
            Some(entry) => entry,
            None => self.machine_entry(&http, client, wanted.clone()).await?,
        };
        let id = entry.id();
        let lock = unless_unwritable(self.shared.lock(&id).await)?;
        let mut generation = 0;
        if lock.is_some()
            && let Some(read) = self.shared.read(&id).await?
        {
            if let Some(header) = self.adopt(&read, refused).filter(|_| covers(&read, &wanted)) {
                return Ok(header);
            }
            generation = read.generation;
            entry = read;
        }
        // The configuration may have another secret by now.
        entry.client.secret.clone_from(&client.secret);
        let prepared = match &lock {
            Some(lock) => unless_unwritable(self.shared.prepare(&id, lock).await)?,
            None => None,
        };
        entry.tokens = Some(self.granted_at_most(&http, &mut entry, &wanted).await?);
        entry.ended = None;
        if let (Some(lock), Some(prepared)) = (&lock, prepared) {
            self.kept_for_others(prepared, entry.clone(), generation, lock).await;
        }
        drop(lock);
        self.adopt_new(&entry)
    }

    /// Tokens for all that is wanted; else for what was given before; else for what is configured. A scope that the server
    /// speaks of, and that its issuer does not know, keeps nobody out.
    async fn granted_at_most(
        &self,
        http: &Http,
        entry: &mut Entry,
        wanted: &[String],
    ) -> Result<Tokens, AuthError> {
        let known = std::mem::take(&mut entry.wanted);
        for wanted in [union(known.iter().chain(wanted)), known.clone(), Vec::new()] {
            let scopes = self.scopes(&wanted, &[]);
            match self.granted(http, entry, &scopes).await {
                Err(AuthError::Refused { code, .. }) if code == "invalid_scope" && !wanted.is_empty() => {
                    let mut state = self.state_mut();
                    let vain = wanted.iter().filter(|scope| !known.contains(scope));
                    state.vain = union(state.vain.iter().chain(vain));
                }
                done => {
                    entry.wanted = wanted;
                    return done;
                }
            }
        }
        Err(AuthError::answer("no scope is accepted"))
    }

    async fn granted(&self, http: &Http, entry: &Entry, scopes: &[String]) -> Result<Tokens, AuthError> {
        let granting = Granting::of(http, entry);
        let asked_at = now_ms();
        match granting.credentials(scopes).await {
            Ok(reply) => Ok(Tokens::of(&reply, asked_at, scopes, None)),
            Err(error) if is_unknown_client(&error) => Err(not_accepted(entry, &error)),
            Err(error) => Err(error),
        }
    }

    async fn kept_for_others(&self, prepared: Prepared, entry: Entry, generation: u64, lock: &Lock) {
        let over = Over::Generation(generation);
        if let Err(error) = self.shared.keep(prepared, entry, over, lock).await {
            tracing::debug!(%error, "a token of client credentials is not kept for others");
        }
    }

    pub(super) fn machine_client(&self) -> Result<&StaticClient, AuthError> {
        self.server
            .client
            .as_ref()
            .ok_or_else(|| AuthError::setting("CLIENT_ID", "client credentials need a client and its secret"))
    }

    async fn machine_entry(
        &self,
        http: &Http,
        client: &StaticClient,
        wanted: Vec<String>,
    ) -> Result<Entry, AuthError> {
        let challenge = self.state().challenge.clone();
        let found = discover(http, &self.server.resource, challenge.as_ref(), None, false).await?;
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
}

/// What was configured is wrong: nobody who signs in anew mends that.
pub(super) fn not_accepted(entry: &Entry, error: &AuthError) -> AuthError {
    AuthError::Client {
        issuer: entry.issuer.clone(),
        reason: format!(
            "it does not accept the CLIENT_ID \"{}\" with its CLIENT_SECRET; correct them in the configuration ({error})",
            crate::error::told(&entry.client.id)
        ),
    }
}

/// `None` where the store cannot be written, or somebody has it for too long.
fn unless_unwritable<T>(done: Result<T, AuthError>) -> Result<Option<T>, AuthError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error @ (AuthError::Store { .. } | AuthError::Late { .. })) => {
            tracing::debug!(%error, "a token of client credentials will not be kept for others");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
