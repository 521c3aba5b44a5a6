//! Owns a login: what is asked of the person, the answer, and the tokens for it.

use std::sync::Arc;

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
use crate::store::{ClientRecord, Endpoints, Entry, Origin, Over, Written};
use crate::token::{Tokens, now_ms};

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

    /// Its code was sent: there is nothing more to wait for.
    pub fn is_over(&self) -> bool {
        self.verifier.is_none()
    }

    /// Gets the tokens for an answer that came by another way: the address that the browser was sent to, or its query. An
    /// answer that is none, or another login's, changes nothing: it can be tried again.
    pub async fn complete(&mut self, answer: &str) -> Result<SignIn, AuthError> {
        self.accept(Answered::pasted(answer)?).await
    }

    async fn accept(&mut self, answered: Answered) -> Result<SignIn, AuthError> {
        let code = match answered.code(&self.expected) {
            Err(error) => {
                self.inner.unwant(&error).await;
                return Err(error);
            }
            code => code?,
        };
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
        inner.shared.with_store(|store| store.writable()).await?;
        let http = inner.http.near(&inner.server.resource).await;
        let kept = inner.kept_or_unusable().await?;
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

    /// Shows the address and waits for the answer, however it comes.
    pub(super) async fn shown(&self, scopes: &[String], opener: &dyn Opener) -> Result<SignIn, AuthError> {
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
}

impl Inner {
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
        let headers = http.head(Method::POST, &self.server.resource, headers, ping).await?;
        let values = headers.get_all(http::header::WWW_AUTHENTICATE);
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
        let id = entry.id();
        let lock = self.shared.lock(&id).await?;
        match self.shared.read(&id).await {
            Ok(_) => {}
            Err(AuthError::Store { .. }) => self.shared.set_aside(&id, &lock).await?,
            Err(error) => return Err(error),
        }
        let prepared = self.shared.prepare(&id, &lock).await?;
        let http = self.http.near(&self.server.resource).await;
        let granting = Granting::of(&http, &entry);
        let asked_at = now_ms();
        let reply = granting.exchange(&code, verifier, &redirect).await?;
        let tokens = Tokens::of(&reply, asked_at, &scopes, None);
        if tokens.header().is_none() {
            return Err(AuthError::answer("its token cannot be sent in a header"));
        }
        entry.tokens = Some(tokens);
        if let Written::Kept(kept) = self.shared.keep(prepared, entry.clone(), Over::Anything, &lock).await? {
            entry = *kept;
        }
        drop(lock);
        {
            let mut state = self.state_mut();
            (state.live, state.challenge, state.failed) = (Live::Unknown, None, None);
        }
        self.adopt_new(&entry)?;
        self.forget_superseded(&entry).await;
        Ok(SignIn::of(&entry))
    }

    /// A scope that the server once asked for, and that its issuer does not know, is not asked for again: else nobody could
    /// ever sign in.
    async fn unwant(&self, error: &AuthError) {
        if !matches!(error, AuthError::Refused { code, .. } if code == "invalid_scope") {
            return;
        }
        self.state_mut().challenge = None;
        if let Ok(Some(entry)) = self.kept().await {
            self.change_wanted(&entry, |_| Vec::new()).await;
        }
    }

    /// Clients that were registered for an earlier login of the same are used no more.
    async fn forget_superseded(&self, entry: &Entry) {
        let (asked, account) = (self.asked().to_owned(), self.server.account.clone());
        let all = self.shared.with_store(move |store| store.find(&asked, None, &account)).await;
        for other in all.unwrap_or_default() {
            if other.id() == entry.id() || other.client.origin != Origin::Registered {
                continue;
            }
            let Ok(lock) = self.shared.lock(&other.id()).await else { continue };
            if let Err(error) = self.shared.remove(&other.id(), other.generation, &lock).await {
                tracing::debug!(%error, "an earlier sign-in could not be removed");
            }
        }
    }
}
