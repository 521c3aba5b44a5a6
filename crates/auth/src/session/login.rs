//! Owns a login: what is asked of the person, the answer, and that of all processes of a user one asks and the others
//! wait.

use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Method};
use oauth2::PkceCodeVerifier;
use toolway_secret::Secret;
use url::Url;

use super::status::SignIn;
use super::{Inner, Live, Session};
use crate::answer::{Answered, Expected};
use crate::challenge::BearerChallenge;
use crate::client::client;
use crate::discover::{Found, Issuer, discover};
use crate::error::AuthError;
use crate::grant::{Asked, Granting};
use crate::http::Http;
use crate::loopback::Loopback;
use crate::settings::{Redirect, union};
use crate::store::{ClientRecord, Endpoints, Entry, Lock, Origin, resource_part};
use crate::token::Tokens;

/// How often those who wait look.
const LOOK: Duration = Duration::from_millis(150);
/// How a login that failed begins its word to those who waited.
const FAILED: &str = "failed: ";

/// How a login reaches the person. The command line and programs that embed this implement it; [`Session::login`] calls it.
pub trait Opener: Send + Sync {
    /// Shows the address at which the person signs in. Called by one process of a user at a time.
    fn show(&self, url: &Url);

    /// Another process has shown its address already, and its login is waited for.
    fn waits(&self) {}

    /// What the person pastes: the address that the browser was sent to. It may never be ready.
    fn pasted(&self) -> BoxFuture<'_, String> {
        Box::pin(std::future::pending())
    }
}

/// A login that was begun: its state and its verifier are nowhere but here.
pub struct Login {
    inner: Arc<Inner>,
    url: Url,
    expected: Expected,
    verifier: Option<PkceCodeVerifier>,
    _known: Secret,
    issuer: Issuer,
    resource: Url,
    client: ClientRecord,
    redirect: Url,
    loopback: Option<Loopback>,
    scopes: Vec<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("issuer", &self.issuer.name).finish_non_exhaustive()
    }
}

impl Login {
    /// The address at which the person signs in.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Where the answer will be sent to.
    pub fn redirect(&self) -> &Url {
        &self.redirect
    }

    /// Waits for the answer at the loopback redirect, and gets the tokens. Where the redirect is somebody else's, this waits
    /// for ever: use [`Self::complete`].
    pub async fn answered(mut self) -> Result<SignIn, AuthError> {
        let Some(loopback) = self.loopback.take() else { return std::future::pending().await };
        let answered = loopback.answer(&self.expected).await?;
        self.accept(answered).await
    }

    /// Gets the tokens for an answer that came by another way: the address that the browser was sent to, or its query. An
    /// answer that is none, or another login's, changes nothing: it can be tried again.
    pub async fn complete(&mut self, answer: &str) -> Result<SignIn, AuthError> {
        self.accept(Answered::pasted(answer)?).await
    }

    async fn accept(&mut self, answered: Answered) -> Result<SignIn, AuthError> {
        let code = answered.code(&self.expected)?;
        let Some(verifier) = self.verifier.take() else {
            return Err(AuthError::answer("this login has its answer already"));
        };
        let inner = Arc::clone(&self.inner);
        let entry = Entry {
            issuer: self.issuer.name.clone(),
            asked: inner.asked().to_owned(),
            resource: self.resource.clone(),
            account: inner.server.account.clone(),
            client: self.client.clone(),
            endpoints: Endpoints {
                token: self.issuer.token.clone(),
                revocation: self.issuer.revocation.clone(),
            },
            tokens: None,
            wanted: Vec::new(),
            ended: None,
            generation: 0,
            changed_at: 0,
        };
        let (redirect, scopes) = (self.redirect.clone(), self.scopes.clone());
        let exchange = async move { inner.exchanged(entry, code, verifier, redirect, scopes).await };
        let task = super::TASKS.spawn(exchange);
        task.await.unwrap_or_else(|error| {
            Err(AuthError::Late { reason: format!("the login was cut off: {error}") })
        })
    }
}

impl Session {
    /// Begins a login: finds the authorization server, becomes a client there, listens for the answer. `scopes` are asked
    /// for beside those that are configured or wanted by the server.
    pub async fn begin(&self, scopes: &[String]) -> Result<Login, AuthError> {
        let inner = &self.inner;
        let http = inner.http.near(&inner.server.resource).await;
        let kept = inner.kept_or_set_aside().await?;
        let found = inner.found(&http, kept.as_ref()).await?;
        let kept = kept.filter(|kept| kept.issuer == found.issuer.name);
        let port = kept.as_ref().and_then(|kept| Url::parse(kept.client.redirect.as_deref()?).ok()?.port());
        let loopback = Loopback::listen(&inner.server.redirect, port).await?;
        let redirect = match (&loopback, &inner.server.redirect) {
            (Some(loopback), _) => loopback.redirect().clone(),
            (None, Redirect::Elsewhere(url) | Redirect::Fixed(url)) => url.clone(),
            (None, Redirect::Loopback) => {
                return Err(AuthError::Redirect { reason: "there is none".to_owned() });
            }
        };
        let document = inner.shared.settings.metadata_document.as_ref();
        let client =
            client(&http, &inner.server, &found.issuer, document, kept.as_ref(), redirect.as_str()).await?;
        let scopes = inner.login_scopes(kept.as_ref(), &found, scopes);
        let granting =
            Granting { http: &http, client: &client, token: &found.issuer.token, resource: &found.resource };
        let Some(authorization) = &found.issuer.authorization else {
            let reason = "it has no authorization_endpoint".to_owned();
            return Err(AuthError::Metadata { url: found.issuer.name, reason });
        };
        let Asked { url, state, verifier, known } = granting.ask(authorization, &redirect, &scopes);
        let expected =
            Expected { state, issuer: found.issuer.name.clone(), names_itself: found.issuer.names_itself };
        Ok(Login {
            inner: Arc::clone(inner),
            url,
            expected,
            verifier: Some(verifier),
            _known: known,
            issuer: found.issuer,
            resource: found.resource,
            client,
            redirect,
            loopback,
            scopes,
        })
    }

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
            let kept = inner.kept_or_set_aside().await?;
            inner.as_machine(kept, scopes.to_vec(), inner.ready().as_ref()).await?;
            return self.current().await;
        }
        let before = inner.kept_or_set_aside().await?;
        if !anew && let Some(entry) = before.as_ref().filter(|entry| serves(entry, scopes)) {
            inner.adopt(entry, None);
            return Ok(SignIn::of(entry));
        }
        let before = before.map(|entry| (entry.id(), entry.generation));
        let late = inner.shared.settings.login_timeout;
        let attempt = self.in_turn(scopes, before, opener);
        tokio::time::timeout(late, attempt).await.unwrap_or_else(|_| {
            Err(AuthError::Late { reason: format!("nobody signed in within {} s", late.as_secs()) })
        })
    }

    async fn in_turn(
        &self,
        scopes: &[String],
        before: Option<(crate::store::EntryId, u64)>,
        opener: &dyn Opener,
    ) -> Result<SignIn, AuthError> {
        let inner = &self.inner;
        let name = inner.login_lock();
        let mut waited = false;
        loop {
            let new = inner.kept_or_set_aside().await?.filter(|entry| {
                let known = before.as_ref().filter(|(id, _)| *id == entry.id());
                known.is_none_or(|(_, generation)| *generation < entry.generation) && serves(entry, scopes)
            });
            if let Some(entry) = new {
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
                    // Somebody may have finished between the look and the lock.
                    if waited && inner.is_newer(before.as_ref(), scopes).await? {
                        continue;
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
        let mut leaving = Leaving(&mut lock, Some("it was cancelled".to_owned()));
        let done = self.shown(scopes, opener).await;
        leaving.1 = done.as_ref().err().map(ToString::to_string);
        drop(leaving);
        done
    }

    async fn shown(&self, scopes: &[String], opener: &dyn Opener) -> Result<SignIn, AuthError> {
        let mut login = self.begin(scopes).await?;
        opener.show(login.url());
        let loopback = login.loopback.take();
        let expected = login.expected.clone();
        let answer = async {
            match loopback {
                Some(loopback) => loopback.answer(&expected).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(answer);
        loop {
            tokio::select! {
                answered = &mut answer => return login.accept(answered?).await,
                text = opener.pasted() => match login.complete(&text).await {
                    Err(error @ AuthError::Answer { .. }) if login.verifier.is_some() => {
                        tracing::warn!(%error, "what was pasted is not the answer");
                    }
                    done => return done,
                },
            }
        }
    }

    async fn current(&self) -> Result<SignIn, AuthError> {
        match self.inner.kept().await? {
            Some(entry) => Ok(SignIn::of(&entry)),
            None => Err(self.inner.needs_login().await),
        }
    }
}

/// Those who wait learn how it ended, also where it is cut off.
struct Leaving<'a>(&'a mut Lock, Option<String>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        match self.1.take() {
            Some(reason) => self.0.leave(&format!("{FAILED}{reason}")),
            None => self.0.leave("done"),
        }
    }
}

impl Inner {
    /// The newest sign-in. What cannot be read any more stands in nobody's way who signs in anew.
    async fn kept_or_set_aside(&self) -> Result<Option<Entry>, AuthError> {
        match self.kept().await {
            Err(AuthError::Store { path, reason }) => {
                tracing::warn!(path = %path.display(), reason, "what was kept of a sign-in cannot be used");
                Ok(None)
            }
            kept => kept,
        }
    }

    fn login_lock(&self) -> String {
        let whose = format!("{}\n{}", self.client_id().unwrap_or_default(), self.server.account);
        format!("{}-{}.login", resource_part(self.asked()), resource_part(&whose))
    }

    async fn is_newer(
        &self,
        before: Option<&(crate::store::EntryId, u64)>,
        scopes: &[String],
    ) -> Result<bool, AuthError> {
        let kept = self.kept_or_set_aside().await?;
        Ok(kept.is_some_and(|entry| {
            let known = before.filter(|(id, _)| *id == entry.id());
            known.is_none_or(|(_, generation)| *generation < entry.generation) && serves(&entry, scopes)
        }))
    }

    /// Who signs people in for this server. Where nothing is known of what it wants, it is asked.
    async fn found(&self, http: &Http, kept: Option<&Entry>) -> Result<Found, AuthError> {
        let known = self.state().challenge.clone();
        let challenge = match known {
            Some(challenge) => Some(challenge),
            None => self.probe(http).await?,
        };
        let issuer = kept.map(|kept| kept.issuer.as_str());
        discover(http, &self.server.resource, challenge.as_ref(), issuer, true).await
    }

    /// A request without a token, to see what the server says to it.
    async fn probe(&self, http: &Http) -> Result<Option<BearerChallenge>, AuthError> {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(http::header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#.to_vec();
        let reply = http.send(Method::POST, &self.server.resource, headers, ping).await?;
        let values = reply.headers.get_all(http::header::WWW_AUTHENTICATE);
        Ok(BearerChallenge::parse(values.iter().filter_map(|value| value.to_str().ok())))
    }

    fn login_scopes(&self, kept: Option<&Entry>, found: &Found, more: &[String]) -> Vec<String> {
        let mut offered = found.scopes.clone();
        // Else many give no refresh token (OpenID Connect Core, 11).
        if self.server.scopes.is_empty() && found.issuer.scopes.iter().any(|scope| scope == "offline_access")
        {
            offered.push("offline_access".to_owned());
        }
        let wanted = kept.map(|kept| kept.wanted.as_slice()).unwrap_or_default();
        let challenged = self.state().challenge.clone().filter(BearerChallenge::is_insufficient_scope);
        let challenged = challenged.map(|challenge| challenge.scopes).unwrap_or_default();
        self.scopes(&union(wanted.iter().chain(&challenged).chain(more)), &offered)
    }

    /// Room is made before the code is used up.
    async fn exchanged(
        &self,
        mut entry: Entry,
        code: Secret,
        verifier: PkceCodeVerifier,
        redirect: Url,
        scopes: Vec<String>,
    ) -> Result<SignIn, AuthError> {
        let store = &self.shared.store;
        let id = entry.id();
        let lock = store.lock(&id, self.shared.settings.lock_timeout).await?;
        let generation = match store.read(&id) {
            Ok(there) => there.map_or(0, |there| there.generation),
            Err(AuthError::Store { .. }) => {
                store.set_aside(&id, &lock)?;
                0
            }
            Err(error) => return Err(error),
        };
        let prepared = store.prepare(&id, &lock)?;
        let http = self.http.near(&self.server.resource).await;
        let granting = Granting {
            http: &http,
            client: &entry.client,
            token: &entry.endpoints.token,
            resource: &entry.resource,
        };
        let reply = granting.exchange(&code, verifier, &redirect).await?;
        entry.tokens = Some(Tokens::of(&reply, &scopes, None));
        prepared.keep(&mut entry, generation)?;
        drop(lock);
        {
            let mut state = self.state_mut();
            (state.live, state.challenge, state.renewed, state.failed) = (Live::Unknown, None, None, None);
        }
        self.adopt(&entry, None);
        self.forget_superseded(&entry).await;
        Ok(SignIn::of(&entry))
    }

    /// Clients that were registered for an earlier login of the same are used no more.
    async fn forget_superseded(&self, entry: &Entry) {
        let store = &self.shared.store;
        let Ok(all) = store.find(self.asked(), None, &self.server.account) else { return };
        for other in all {
            if other.id() == entry.id() || other.client.origin != Origin::Registered {
                continue;
            }
            let Ok(lock) = store.lock(&other.id(), self.shared.settings.lock_timeout).await else { continue };
            if let Err(error) = store.remove(&other.id(), other.generation, &lock) {
                tracing::debug!(%error, "an earlier sign-in could not be removed");
            }
        }
    }
}

/// It has tokens that reach as far as is wanted.
fn serves(entry: &Entry, scopes: &[String]) -> bool {
    let wanted = union(scopes.iter().chain(&entry.wanted));
    entry.tokens.as_ref().is_some_and(|tokens| {
        let usable =
            tokens.refresh.is_some() || tokens.left(crate::token::now()).is_none_or(|left| !left.is_zero());
        usable && wanted.iter().all(|scope| tokens.scopes.contains(scope))
    })
}
