//! Owns an authorizer together with what it signed with lately and what was refused last. It must not send anything.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use tokio::time::timeout;

use super::{Authorizer, Challenge, Retry, SignInError};
use crate::limits::SIGN_IN_TIME;

/// Values that are kept, so that a server that repeats one does not make it visible: requests that were signed before a
/// refresh or two may still be on their way.
const KEPT: usize = 4;

/// Signs requests, and remembers with what. Clones share their memory: those of one server's configuration should be
/// clones of one signer.
#[derive(Clone)]
pub struct Signer {
    authorizer: Arc<dyn Authorizer>,
    memory: Arc<Mutex<Memory>>,
    turns: Arc<Turns>,
}

/// Requests that wait for a token wait one behind the other, so that they leave in the order in which they came.
#[derive(Default)]
struct Turns {
    waiting: AtomicUsize,
    ended: AtomicU64,
    last: tokio::sync::Mutex<Option<Result<Option<HeaderValue>, SignInError>>>,
}

#[derive(Default)]
struct Memory {
    /// Newest first.
    used: VecDeque<HeaderValue>,
    refused: Option<HeaderValue>,
}

impl fmt::Debug for Signer {
    /// Without any value that was signed with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("authorizer", &self.authorizer).finish_non_exhaustive()
    }
}

impl Signer {
    /// A signer that has signed nothing yet.
    pub fn new(authorizer: Arc<dyn Authorizer>) -> Self {
        Self { authorizer, memory: Arc::default(), turns: Arc::default() }
    }

    /// See [`Authorizer::hint`].
    pub fn hint(&self) -> String {
        self.authorizer.hint()
    }

    /// Some request was signed.
    pub fn has_signed(&self) -> bool {
        !self.memory().used.is_empty()
    }

    /// Requests wait for a token at this moment, or for what becomes of a refusal.
    pub fn is_waiting(&self) -> bool {
        self.turns.waiting.load(Ordering::Acquire) > 0
    }

    /// Waits until there is another token than the one that was refused last, or any, where none was refused.
    pub async fn changed(&self) {
        let refused = self.memory().refused.clone();
        self.authorizer.changed(refused).await;
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in memory.
    pub(crate) fn ready(&self) -> Option<HeaderValue> {
        self.authorizer.ready().map(|value| self.keep(value))
    }

    /// What there is after a wait. Whoever begins to wait while others do gets what they get.
    pub(crate) async fn authorize(&self) -> Result<Option<HeaderValue>, SignInError> {
        let ended = self.turns.ended.load(Ordering::Acquire);
        let turn = async {
            let mut last = self.turns.last.lock().await;
            if self.turns.ended.load(Ordering::Acquire) != ended
                && let Some(outcome) = &*last
            {
                return outcome.clone();
            }
            let outcome = self.authorizer.authorize().await;
            *last = Some(outcome.clone());
            self.turns.ended.fetch_add(1, Ordering::AcqRel);
            outcome
        };
        let _waits = Waits::new(&self.turns.waiting);
        Ok(bounded(turn).await?.map(|value| self.keep(value)))
    }

    pub(crate) async fn challenged(&self, challenge: Challenge) -> Result<Retry, SignInError> {
        let _waits = Waits::new(&self.turns.waiting);
        bounded(self.authorizer.challenged(challenge)).await
    }

    /// The server does not accept it.
    pub(crate) fn refused(&self, value: Option<&HeaderValue>) {
        self.memory().refused = value.cloned();
    }

    fn keep(&self, mut value: HeaderValue) -> HeaderValue {
        value.set_sensitive(true);
        let mut memory = self.memory();
        if memory.used.front() != Some(&value) {
            memory.used.retain(|used| *used != value);
            memory.used.truncate(KEPT - 1);
            memory.used.push_front(value.clone());
        }
        value
    }

    /// `text` without what was signed with.
    pub(crate) fn redact(&self, text: &mut String) {
        let used: Vec<HeaderValue> = self.memory().used.iter().cloned().collect();
        for value in used.iter().filter_map(|value| value.to_str().ok()) {
            // The whole first, then the token without its scheme.
            let token = value.split_ascii_whitespace().last().filter(|token| token.len() >= 4);
            for secret in [Some(value), token].into_iter().flatten() {
                if text.contains(secret) {
                    *text = text.replace(secret, toolway_secret::REDACTED);
                }
            }
        }
    }
}

/// One that waits, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, Ordering::AcqRel);
        Self(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An authorizer has bounds of its own; one that forgot them holds nobody up for ever.
async fn bounded<T>(work: impl Future<Output = Result<T, SignInError>>) -> Result<T, SignInError> {
    timeout(SIGN_IN_TIME, work).await.unwrap_or_else(|_elapsed| {
        Err(SignInError {
            message: format!("nobody signed in within {} minutes", SIGN_IN_TIME.as_secs() / 60),
            hint: None,
            needs_login: true,
        })
    })
}
