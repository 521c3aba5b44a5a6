//! An authorizer of the tests: tokens are handed out by a script, in single flight, and behind a gate.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio::sync::watch;
use toolway_transport::{
    Authorizer, BoxFuture, Challenge, HttpConfig, HttpTransport, Retry, SignInError, Signer, SseTransport,
};

use crate::client::{Client, TOKEN, config};
use crate::server::Server;

pub(crate) const HINT: &str = "run: toolway login server";

/// What a challenge leads to.
pub(crate) type Answer = Result<Retry, SignInError>;

#[derive(Debug)]
pub(crate) struct Script {
    state: Mutex<State>,
    /// The number of the token; 0: there is none.
    token: watch::Sender<u32>,
    /// Whoever refreshes, or asks for a token that is not ready, waits until it is open.
    gate: watch::Sender<bool>,
    refreshing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The token is in memory.
    ready: bool,
    /// What the next challenges lead to; `Again` comes with a new token.
    next: VecDeque<Answer>,
    authorized: Option<SignInError>,
    challenges: Vec<Challenge>,
    refreshes: usize,
    authorizes: usize,
}

impl Script {
    /// Token 1 is there, and each of `next` answers one challenge.
    pub(crate) fn new(next: impl IntoIterator<Item = Answer>) -> Arc<Self> {
        let state = State { ready: true, next: next.into_iter().collect(), ..State::default() };
        Arc::new(Self {
            state: Mutex::new(state),
            token: watch::Sender::new(1),
            gate: watch::Sender::new(true),
            refreshing: tokio::sync::Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_ready(&self, ready: bool) {
        self.state().ready = ready;
    }

    pub(crate) fn set_gate(&self, open: bool) {
        self.gate.send_replace(open);
    }

    /// Somebody signs in elsewhere; 0: there is no token.
    pub(crate) fn set_token(&self, number: u32) {
        self.token.send_replace(number);
    }

    pub(crate) fn fail_to_authorize(&self, error: SignInError) {
        self.state().authorized = Some(error);
    }

    /// Status, number of the refused token, and whether somebody waited, of each challenge.
    pub(crate) fn challenges(&self) -> Vec<(u16, Option<String>, bool)> {
        let number = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).replace(&prefix(), "");
        let state = self.state();
        let seen = state.challenges.iter();
        seen.map(|c| (c.status, c.refused.as_ref().map(number), c.waited)).collect()
    }

    pub(crate) fn last_challenge(&self) -> Option<Challenge> {
        self.state().challenges.last().cloned()
    }

    pub(crate) fn refreshes(&self) -> usize {
        self.state().refreshes
    }

    pub(crate) fn authorizes(&self) -> usize {
        self.state().authorizes
    }

    fn value(&self) -> Option<HeaderValue> {
        let number = *self.token.borrow();
        HeaderValue::try_from(bearer(number)).ok().filter(|_| number > 0)
    }

    async fn opened(&self) {
        self.gate.subscribe().wait_for(|open| *open).await.ok();
    }
}

fn prefix() -> String {
    format!("Bearer {TOKEN}-")
}

/// The value of `Authorization` with the token of this number.
pub(crate) fn bearer(number: u32) -> String {
    format!("{}{number}", prefix())
}

pub(crate) fn dead(message: &str) -> SignInError {
    SignInError { message: message.to_owned(), hint: None, needs_login: true }
}

impl Authorizer for Script {
    fn ready(&self) -> Option<HeaderValue> {
        let ready = self.state().ready;
        self.value().filter(|_| ready)
    }

    fn authorize(&self) -> BoxFuture<'_, Result<Option<HeaderValue>, SignInError>> {
        Box::pin(async {
            self.state().authorizes += 1;
            self.opened().await;
            let failed = self.state().authorized.clone();
            failed.map_or_else(|| Ok(self.value()), Err)
        })
    }

    fn challenged(&self, challenge: Challenge) -> BoxFuture<'_, Answer> {
        self.state().challenges.push(challenge.clone());
        Box::pin(async move {
            let _one = self.refreshing.lock().await;
            if self.value() != challenge.refused {
                return Ok(Retry::Again);
            }
            self.opened().await;
            let next = self.state().next.pop_front().unwrap_or(Ok(Retry::No));
            if next == Ok(Retry::Again) {
                self.state().refreshes += 1;
                self.token.send_modify(|number| *number += 1);
            }
            next
        })
    }

    fn changed(&self, refused: Option<HeaderValue>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut token = self.token.subscribe();
            while self.value().is_none() || self.value() == refused {
                if token.changed().await.is_err() {
                    return;
                }
            }
        })
    }

    fn hint(&self) -> String {
        HINT.to_owned()
    }
}

/// A configuration that signs by the script and has no `Authorization` of its own.
pub(crate) fn signed(server: &Server, script: &Arc<Script>) -> io::Result<HttpConfig> {
    let mut config = config(server)?;
    config.headers.retain(|(name, _)| name != "Authorization");
    config.authorizer = Some(Signer::new(Arc::<Script>::clone(script)));
    Ok(config)
}

/// A client that has shaken hands, with token 1.
pub(crate) async fn started(server: &mut Server, script: &Arc<Script>) -> io::Result<Client<HttpTransport>> {
    let mut client = Client::with(&signed(server, script)?)?;
    client.start(server, "S1").await?;
    Ok(client)
}

pub(crate) fn sse(server: &Server, script: &Arc<Script>) -> io::Result<Client<SseTransport>> {
    let mut config = signed(server, script)?;
    config.url.set_path("/sse");
    Client::sse(&config)
}
