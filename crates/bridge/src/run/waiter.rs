//! Owns the way of an answer to the request that waits for it: progress, then one end. Bounded; knows no call table.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};

use super::Run;
use super::progress::{Meter, Progress};
use crate::call::{CallId, Rejection};
use crate::json::RawJson;

/// Progress that waits to be sent. Older progress gives way to newer.
const MOST_PROGRESS: usize = 32;
/// The same in bytes; one that is larger goes alone.
const MOST_PROGRESS_BYTES: usize = 256 << 10;

/// What comes to the request that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Update {
    /// The params of a `notifications/progress`.
    Progress(Bytes),
    /// The `CallToolResult`. Nothing follows.
    Result(Bytes),
    /// There is no result. Nothing follows.
    Rejected(Rejection),
    /// The client itself cancelled the request, and is owed nothing. Nothing follows.
    GivenUp,
}

/// Where an answer is put, and taken from.
#[derive(Debug, Default)]
pub(super) struct Slot {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The client's progress token, and what it was told.
    meter: Option<Meter>,
    progress: VecDeque<Bytes>,
    end: Option<Update>,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn new(token: Option<RawJson>) -> Self {
        let state = State { meter: token.map(Meter::new), ..State::default() };
        Self { state: Mutex::new(state) }
    }

    /// The host tells how far it is. Nothing is sent to a client that did not ask for it.
    pub(super) fn progress(&self, progress: Option<&Progress>) {
        let waker = {
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            let Some(params) = state.meter.as_mut().and_then(|meter| meter.params(progress)) else { return };
            state.progress.push_back(params);
            let mut bytes: usize = state.progress.iter().map(Bytes::len).sum();
            while state.progress.len() > MOST_PROGRESS
                || (bytes > MOST_PROGRESS_BYTES && state.progress.len() > 1)
            {
                bytes -= state.progress.pop_front().map_or(0, |oldest| oldest.len());
            }
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The end. The first one counts.
    pub(super) fn end(&self, end: Update) {
        let waker = {
            let mut state = self.lock();
            if state.end.is_some() {
                return;
            }
            state.end = Some(end);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Update> {
        let mut state = self.lock();
        if let Some(params) = state.progress.pop_front() {
            return Poll::Ready(Update::Progress(params));
        }
        if let Some(end) = &state.end {
            return Poll::Ready(end.clone());
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    fn wants_progress(&self) -> bool {
        self.lock().meter.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits for its answer. Dropping it does not cancel the call: [`Waiter::cancel`] does.
pub(crate) struct Waiter {
    run: Run,
    id: CallId,
    slot: Arc<Slot>,
    /// When the client is told that its call lives, if it wants to hear and nothing else was told.
    keep_alive: Option<(Duration, Instant)>,
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiter").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Waiter {
    pub(super) fn new(run: Run, id: CallId, slot: Arc<Slot>, keep_alive: Option<Duration>) -> Self {
        let keep_alive = keep_alive.filter(|_| slot.wants_progress());
        Self { run, id, slot, keep_alive: keep_alive.map(|every| (every, Instant::now() + every)) }
    }

    /// The host tool-call id.
    #[cfg(test)]
    pub(crate) fn id(&self) -> &CallId {
        &self.id
    }

    /// The next thing that the client is to be sent. Loses nothing when it is dropped. After the end it gives the end
    /// again.
    pub(crate) async fn next(&mut self) -> Update {
        loop {
            let next = poll_fn(|context| self.slot.poll(context));
            let Some((every, at)) = self.keep_alive else { return next.await };
            let update = timeout_at(at, next).await;
            self.keep_alive = Some((every, Instant::now() + every));
            match update {
                Ok(update) => return update,
                Err(_) => self.slot.progress(None),
            }
        }
    }

    /// The client gave the call up.
    pub(crate) fn cancel(&self, reason: &str) {
        self.run.cancelled_by_client(&self.id, reason);
    }
}
