//! Owns what is told of sign-ins: no token is in it. And their end.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderValue;
use toolway_secret::Secret;

use super::{Auth, Live, Session};
use crate::error::AuthError;
use crate::grant::Granting;
use crate::store::{Entry, Origin};
use crate::token::now_ms;

/// How a sign-in stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInState {
    /// There is a token that is good by this machine's clock.
    SignedIn,
    /// The token is at its end, and is renewed with the next request.
    Renewable,
    /// The token is at its end and cannot be renewed.
    Expired,
    /// There is none: the client is known, but nobody is signed in.
    SignedOut,
}

impl SignInState {
    /// The word for it in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::SignedIn => "signed_in",
            Self::Renewable => "renewable",
            Self::Expired => "expired",
            Self::SignedOut => "signed_out",
        }
    }
}

/// What is known of one sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The server's address, as it is configured.
    pub resource: String,
    /// Who signs people in for it.
    pub issuer: String,
    /// `client_id`.
    pub client_id: String,
    /// Where the client comes from: `static`, `metadata document`, `registered`.
    pub client: &'static str,
    /// Whose; empty for the only one.
    pub account: String,
    /// How it stands.
    pub state: SignInState,
    /// What was granted.
    pub scopes: Vec<String>,
    /// What the server wants beyond that.
    pub wanted: Vec<String>,
    /// For how long the token is still good; `None`: not known.
    pub expires_in: Option<Duration>,
    /// Why it has ended.
    pub ended: Option<String>,
    /// When it last changed, in seconds since 1970.
    pub changed_at: u64,
}

impl SignIn {
    pub(super) fn of(entry: &Entry) -> Self {
        let left = entry.tokens.as_ref().and_then(|tokens| tokens.left(now_ms()));
        let state = match &entry.tokens {
            None => SignInState::SignedOut,
            Some(_) if left.is_none_or(|left| !left.is_zero()) => SignInState::SignedIn,
            Some(tokens) if tokens.refresh.is_some() => SignInState::Renewable,
            Some(_) => SignInState::Expired,
        };
        let granted = entry.tokens.as_ref().map(|tokens| tokens.scopes.clone()).unwrap_or_default();
        Self {
            resource: entry.asked.clone(),
            issuer: entry.issuer.clone(),
            client_id: entry.client.id.clone(),
            client: match entry.client.origin {
                Origin::Static => "static",
                Origin::Document => "metadata document",
                Origin::Registered => "registered",
            },
            account: entry.account.clone(),
            state,
            wanted: entry.wanted.iter().filter(|scope| !granted.contains(scope)).cloned().collect(),
            scopes: granted,
            expires_in: left,
            ended: entry.ended.clone(),
            changed_at: entry.changed_at,
        }
    }
}

/// What signing out did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SignedOut {
    /// How many sign-ins were forgotten.
    pub forgotten: usize,
    /// Where the server was not told: its tokens may be good until their end.
    pub not_told: Vec<String>,
}

impl Session {
    /// How it stands with this server, as far as this machine knows. `None`: nobody ever signed in.
    pub async fn status(&self) -> Result<Option<SignIn>, AuthError> {
        Ok(self.inner.kept().await?.as_ref().map(SignIn::of))
    }

    /// A token that is good now, renewed if need be.
    pub async fn token(&self) -> Result<Secret, AuthError> {
        let Some(header) = self.authorize().await? else { return Err(self.inner.needs_login().await) };
        let text = HeaderValue::to_str(&header).ok().and_then(|text| text.strip_prefix("Bearer "));
        text.map(Secret::in_use).ok_or_else(|| AuthError::answer("the token is no text"))
    }

    /// Signs out: the server is told (RFC 7009) where it can be, and what is kept is forgotten in any case.
    pub async fn revoke(&self) -> Result<SignedOut, AuthError> {
        let inner = &self.inner;
        let _one = inner.renewing.lock().await;
        let mut out = SignedOut::default();
        for seen in inner.all_kept().await? {
            let lock = inner.shared.lock(&seen.id()).await?;
            // Whatever it is by now: the person wants to be signed out.
            let Some(entry) = inner.shared.read(&seen.id()).await? else { continue };
            if let Err(reason) = self.tell(&entry).await {
                out.not_told.push(format!("{}: {reason}", entry.issuer));
            }
            if inner.shared.remove(&entry.id(), entry.generation, &lock).await? {
                out.forgotten += 1;
            }
        }
        inner.state_mut().live = Live::Absent;
        Ok(out)
    }

    async fn tell(&self, entry: &Entry) -> Result<(), String> {
        let Some(tokens) = &entry.tokens else { return Ok(()) };
        let Some(endpoint) = &entry.endpoints.revocation else {
            return Err("it has no revocation endpoint".to_owned());
        };
        let http = self.inner.http.near(&self.inner.server.resource).await;
        let granting = Granting::of(&http, entry);
        // With the refresh token the access tokens go where the server can do that (RFC 7009, 2.1), else by themselves.
        if let Some(refresh) = &tokens.refresh {
            granting.revoke(endpoint, refresh, "refresh_token").await.map_err(|error| error.to_string())?;
        }
        granting.revoke(endpoint, &tokens.access, "access_token").await.map_err(|error| error.to_string())
    }
}

impl Auth {
    /// All sign-ins that are kept, with the files that cannot be read.
    pub async fn all(&self) -> Result<Vec<(PathBuf, Result<SignIn, AuthError>)>, AuthError> {
        let all = self.shared.with_store(|store| store.all()).await?;
        Ok(all.into_iter().map(|(path, entry)| (path, entry.map(|entry| SignIn::of(&entry)))).collect())
    }
}
