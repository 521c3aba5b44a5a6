//! Owns what is kept of one sign-in and how it is written. Pure.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolway_secret::Secret;
use url::Url;
use zeroize::{Zeroize, Zeroizing};

use crate::token::Tokens;

/// One sign-in: a client at an authorization server, and what it was given for a resource.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) issuer: String,
    /// The server's address as it is configured.
    pub(crate) asked: String,
    /// What the server calls itself: `resource` of the requests.
    pub(crate) resource: Url,
    pub(crate) account: String,
    pub(crate) client: ClientRecord,
    pub(crate) endpoints: Endpoints,
    /// `None`: signed out, or signed in to no more.
    pub(crate) tokens: Option<Tokens>,
    /// Scopes that the server asked for when it refused.
    pub(crate) wanted: Vec<String>,
    /// Why there are no tokens any more.
    pub(crate) ended: Option<String>,
    /// Grows by one with each change.
    pub(crate) generation: u64,
    /// Seconds since 1970.
    pub(crate) changed_at: u64,
}

/// Where an authorization server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Endpoints {
    pub(crate) token: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revocation: Option<Url>,
}

/// Where a client comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// From the configuration.
    Static,
    /// Its id is the address of its metadata document.
    Document,
    /// It was registered by this program (RFC 7591).
    Registered,
}

/// Who asks.
#[derive(Clone)]
pub(crate) struct ClientRecord {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
    pub(crate) origin: Origin,
    /// `token_endpoint_auth_method`: the secret is sent in the body, not in a header.
    pub(crate) in_body: bool,
    /// The redirect that it was registered with.
    pub(crate) redirect: Option<String>,
    /// When its secret ends, in seconds since 1970.
    pub(crate) secret_ends: Option<u64>,
}

impl fmt::Debug for ClientRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRecord")
            .field("id", &self.id)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}

/// The name of an entry in the store: made of all that it is keyed by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EntryId(String);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the names of a resource's entries begin.
pub(crate) fn resource_part(resource: &str) -> String {
    digest(&[resource])
}

fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut text = String::with_capacity(24);
    for byte in hash.finalize().iter().take(12) {
        for nibble in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    text
}

impl Entry {
    pub(crate) fn id(&self) -> EntryId {
        Self::id_of(&self.asked, &self.issuer, &self.client.id, &self.account)
    }

    pub(crate) fn id_of(asked: &str, issuer: &str, client: &str, account: &str) -> EntryId {
        EntryId(format!("{}-{}", resource_part(asked), digest(&[issuer, client, account])))
    }

    /// The entry as it is sealed.
    pub(super) fn written(&self) -> Zeroizing<Vec<u8>> {
        let mut raw = RawEntry {
            issuer: self.issuer.clone(),
            asked: self.asked.clone(),
            resource: self.resource.clone(),
            account: self.account.clone(),
            client: RawClient {
                id: self.client.id.clone(),
                secret: self.client.secret.as_ref().map(|secret| secret.expose().to_owned()),
                origin: self.client.origin,
                in_body: self.client.in_body,
                redirect: self.client.redirect.clone(),
                secret_ends: self.client.secret_ends,
            },
            endpoints: self.endpoints.clone(),
            tokens: self.tokens.as_ref().map(|tokens| RawTokens {
                access: tokens.access.expose().to_owned(),
                refresh: tokens.refresh.as_ref().map(|secret| secret.expose().to_owned()),
                obtained_at_ms: tokens.obtained_at_ms,
                expires_in: tokens.expires_in.map(|life| life.as_secs()),
                scopes: tokens.scopes.clone(),
            }),
            wanted: self.wanted.clone(),
            ended: self.ended.clone(),
            generation: self.generation,
            changed_at: self.changed_at,
        };
        // Of plain texts and numbers: it cannot fail.
        let written = Zeroizing::new(serde_json::to_vec(&raw).unwrap_or_default());
        raw.wipe();
        written
    }

    /// The error is a fragment without anything of what was read.
    pub(super) fn read(plain: &[u8]) -> Result<Self, String> {
        let mut raw: RawEntry =
            serde_json::from_slice(plain).map_err(|error| format!("column {}", error.column()))?;
        let entry = Self {
            issuer: raw.issuer.clone(),
            asked: raw.asked.clone(),
            resource: raw.resource.clone(),
            account: raw.account.clone(),
            client: ClientRecord {
                id: raw.client.id.clone(),
                secret: raw.client.secret.as_deref().map(Secret::in_use),
                origin: raw.client.origin,
                in_body: raw.client.in_body,
                redirect: raw.client.redirect.clone(),
                secret_ends: raw.client.secret_ends,
            },
            endpoints: raw.endpoints.clone(),
            tokens: raw.tokens.as_ref().map(|tokens| Tokens {
                access: Secret::in_use(tokens.access.as_str()),
                refresh: tokens.refresh.as_deref().map(Secret::in_use),
                obtained_at_ms: tokens.obtained_at_ms,
                expires_in: tokens.expires_in.map(Duration::from_secs),
                scopes: tokens.scopes.clone(),
            }),
            wanted: raw.wanted.clone(),
            ended: raw.ended.clone(),
            generation: raw.generation,
            changed_at: raw.changed_at,
        };
        raw.wipe();
        Ok(entry)
    }
}

#[derive(Serialize, Deserialize)]
struct RawEntry {
    issuer: String,
    asked: String,
    resource: Url,
    #[serde(default)]
    account: String,
    client: RawClient,
    endpoints: Endpoints,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<RawTokens>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    wanted: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    generation: u64,
    changed_at: u64,
}

#[derive(Serialize, Deserialize)]
struct RawClient {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    origin: Origin,
    #[serde(default)]
    in_body: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    redirect: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret_ends: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct RawTokens {
    access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    obtained_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in: Option<u64>,
    #[serde(default)]
    scopes: Vec<String>,
}

impl RawEntry {
    fn wipe(&mut self) {
        self.client.secret.zeroize();
        if let Some(tokens) = &mut self.tokens {
            tokens.access.zeroize();
            tokens.refresh.zeroize();
        }
    }
}
