//! What an issuer has given: clients, codes, tokens and the families of these.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

use super::journal::ClientAuth;
use super::options::{LOOPBACK, StaticClient};

/// A client, however it became known.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) redirect_uris: Vec<String>,
    pub(super) auth: Option<ClientAuth>,
}

impl From<StaticClient> for Client {
    fn from(StaticClient { id, secret, mut redirect_uris, auth }: StaticClient) -> Self {
        if redirect_uris.is_empty() {
            redirect_uris.push(LOOPBACK.to_owned());
        }
        Self { id, secret, redirect_uris, auth }
    }
}

/// What stands behind a code or a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) client: String,
    pub(super) scope: String,
    pub(super) resource: String,
    /// Place of the family; none for a client's own tokens.
    pub(super) family: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Code {
    pub(super) text: String,
    pub(super) given: Given,
    pub(super) challenge: String,
    pub(super) redirect: String,
    pub(super) used: bool,
}

#[derive(Debug)]
pub(super) struct AccessToken {
    pub(super) text: String,
    pub(super) given: Given,
    pub(super) until: Duration,
    pub(super) revoked: bool,
}

#[derive(Debug)]
pub(super) struct RefreshToken {
    pub(super) text: String,
    pub(super) given: Given,
    pub(super) used: Option<Duration>,
    pub(super) revoked: bool,
}

/// Everything that was given, in order: a label is a kind and a place.
#[derive(Debug)]
pub(super) struct Vault {
    pub(super) clients: BTreeMap<String, Client>,
    pub(super) codes: Vec<Code>,
    pub(super) access: Vec<AccessToken>,
    pub(super) refresh: Vec<RefreshToken>,
    secrets: Vec<String>,
    families: usize,
    random: RandomState,
    made: u64,
    started: Instant,
    ahead: Duration,
}

/// Why a token does not open the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bad {
    Unknown,
    Expired,
    Revoked,
    Audience,
}

impl Vault {
    pub(super) fn new(clients: &[StaticClient]) -> Self {
        let mut vault = Self {
            clients: BTreeMap::new(),
            codes: Vec::new(),
            access: Vec::new(),
            refresh: Vec::new(),
            secrets: Vec::new(),
            families: 0,
            random: RandomState::new(),
            made: 0,
            started: Instant::now(),
            ahead: Duration::ZERO,
        };
        for client in clients {
            vault.add_client(client.clone().into());
        }
        vault
    }

    pub(super) fn add_client(&mut self, client: Client) {
        if let Some(secret) = &client.secret {
            self.secrets.push(secret.clone());
        }
        self.clients.insert(client.id.clone(), client);
    }

    /// Time since the start, as the issuer sees it.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed() + self.ahead
    }

    pub(super) fn advance(&mut self, by: Duration) {
        self.ahead += by;
    }

    /// 32 hexadecimal digits that nobody guesses.
    pub(super) fn random(&mut self) -> String {
        self.made += 2;
        format!("{:016x}{:016x}", self.random.hash_one(self.made), self.random.hash_one(self.made + 1))
    }

    pub(super) fn new_family(&mut self) -> usize {
        self.families += 1;
        self.families
    }

    pub(super) fn new_code(&mut self, given: Given, challenge: &str, redirect: &str) -> String {
        let text = format!("code-{}", self.random());
        let (challenge, redirect) = (challenge.to_owned(), redirect.to_owned());
        self.codes.push(Code { text: text.clone(), given, challenge, redirect, used: false });
        text
    }

    /// The token and its label. It has characters that must be written otherwise in a form or a URL.
    pub(super) fn new_access(&mut self, given: Given, life: Duration) -> (String, String) {
        let text = format!("at.~{}+/{}==", self.random(), self.random());
        let until = self.now() + life;
        self.access.push(AccessToken { text: text.clone(), given, until, revoked: false });
        (text, format!("AT{}", self.access.len()))
    }

    /// The same for a refresh token.
    pub(super) fn new_refresh(&mut self, given: Given) -> (String, String) {
        let text = format!("rt.&{}+/%{}=", self.random(), self.random());
        self.refresh.push(RefreshToken { text: text.clone(), given, used: None, revoked: false });
        (text, format!("RT{}", self.refresh.len()))
    }

    /// The short label of a secret.
    pub(super) fn label(&self, text: &str) -> Option<String> {
        let access = self.access.iter().position(|token| token.text == text).map(|at| ("AT", at));
        let refresh = self.refresh.iter().position(|token| token.text == text).map(|at| ("RT", at));
        let code = self.codes.iter().position(|code| code.text == text).map(|at| ("C", at));
        let secret = self.secrets.iter().position(|secret| secret == text).map(|at| ("S", at));
        access.or(refresh).or(code).or(secret).map(|(kind, place)| format!("{kind}{}", place + 1))
    }

    /// The access token that a request of the resource came with.
    pub(super) fn open(&self, text: &str, resource: &str) -> Result<&AccessToken, Bad> {
        let token = self.access.iter().find(|token| token.text == text).ok_or(Bad::Unknown)?;
        if token.revoked {
            return Err(Bad::Revoked);
        }
        if self.now() >= token.until {
            return Err(Bad::Expired);
        }
        if token.given.resource != resource {
            return Err(Bad::Audience);
        }
        Ok(token)
    }

    /// Revokes all tokens that one login gave.
    pub(super) fn revoke_family(&mut self, family: usize) {
        for token in self.access.iter_mut().filter(|token| token.given.family == Some(family)) {
            token.revoked = true;
        }
        for token in self.refresh.iter_mut().filter(|token| token.given.family == Some(family)) {
            token.revoked = true;
        }
    }

    pub(super) fn revoke_all(&mut self) {
        self.access.iter_mut().for_each(|token| token.revoked = true);
        self.refresh.iter_mut().for_each(|token| token.revoked = true);
    }

    pub(super) fn expire_access(&mut self) {
        let now = self.now();
        self.access.iter_mut().for_each(|token| token.until = token.until.min(now));
    }
}
