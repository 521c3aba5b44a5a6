//! Owns one run: snapshot, endpoint, calls, and its end. It knows neither the server that carries the requests nor the
//! other runs.
//!
//! The call table is behind one short mutex, not in a task of its own: a call costs no hop between tasks, and what the
//! host is handed it gets on the thread on which the request came. The sink is never called under the mutex: whoever
//! finds it free takes it along and tells it all that is to be told, in order; others leave their orders to them.

mod clock;
mod deliver;
mod host;
mod progress;
mod pump;
mod requests;
mod settle;
mod waiter;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_guard::Guard;
use toolway_secret::Secret;

use crate::agent_port::InlineServer;
use crate::call::{CallId, HostCall, Rejection};
use crate::calls::{Calls, Ids, MOST_CALLS};
use crate::deadline::Deadlines;
use crate::diagnostics::{Diagnostics, EventKind};
use crate::own_activity::OwnActivity;
use crate::profile::Profile;
use crate::snapshot::Snapshot;
pub use progress::Progress;
pub use pump::Binding;
use waiter::Slot;
pub(crate) use waiter::{Update, Waiter};

/// Who is handed the calls of a run. Implemented by hosts, and by the coordinator for them; called by the run, one call
/// after the other, on whatever thread the reason for it came. It must not wait: what takes time is started, not done.
pub trait CallSink: Send + 'static {
    /// The host is to run this call, once. Where it cannot even begin, the agent is told so.
    fn started(&mut self, call: HostCall) -> Result<(), String>;

    /// Nobody waits for that call any more: whatever it does is to be stopped. Exactly once for a call that was started
    /// and to which the host gave no end of its own.
    fn cancelled(&mut self, id: &CallId, reason: &str);
}

/// What became of a host's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// It goes to the agent.
    Delivered,
    /// Nobody waits for that id: it is not of this run, or has its end already.
    Unknown,
}

/// What is known of a run's use. Each is a fact of its own: exposed is not connected, listed is not seen by a model, and
/// only a call proves use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Tools that the run offers.
    pub exposed: usize,
    /// Times that a client introduced itself.
    pub connected: u64,
    /// Times that the tools were listed.
    pub listed: u64,
    /// Calls that came for a tool of the run.
    pub called: u64,
}

/// What became of a request to call a tool.
#[derive(Debug)]
pub(crate) enum Began {
    /// It is answered already, with this `CallToolResult`.
    Answer(Bytes),
    /// It is refused.
    Rejected(Rejection),
    /// It waits.
    Waiting(Waiter),
}

/// Gives the run's place at the server back.
pub(crate) type Closing = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// What a run is made of.
pub(crate) struct RunParts {
    pub(crate) profile: Profile,
    pub(crate) ids: Ids,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) url: Secret,
    pub(crate) deadlines: Deadlines,
    pub(crate) guard: Option<Arc<Guard>>,
    /// Whose results the guard saves.
    pub(crate) saved_as: String,
    /// How often a client that asked for progress hears that its call lives.
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) diagnostics: Diagnostics,
    /// Where tasks of the run are kept; those of all runs together.
    pub(crate) tasks: TaskTracker,
    /// Bounds the large results that are worked on at once, of all runs together.
    pub(crate) large: Arc<Semaphore>,
    /// For the end.
    pub(crate) closing: Closing,
}

/// One run: what an agent can call while it lives, and the calls on their way. Cheap to clone; all clones are the same
/// run. It lives until it is disposed of, or its bridge is shut down or dropped.
#[derive(Clone)]
pub struct Run(Arc<Inner>);

struct Inner {
    profile: Profile,
    id: String,
    snapshot: Arc<Snapshot>,
    url: Secret,
    deadlines: Deadlines,
    guard: Option<Arc<Guard>>,
    saved_as: String,
    keep_alive: Option<Duration>,
    diagnostics: Diagnostics,
    runtime: tokio::runtime::Handle,
    tasks: TaskTracker,
    large: Arc<Semaphore>,
    state: Mutex<State>,
    own: Mutex<OwnActivity>,
    /// The table has calls again, or is closed: the clock looks at it.
    clock: Arc<Notify>,
    /// The last call got its answer.
    idle: Notify,
    connected: AtomicU64,
    listed: AtomicU64,
    called: AtomicU64,
    /// No request is taken any more.
    disposed: CancellationToken,
    /// Nothing of it is left.
    gone: CancellationToken,
}

struct State {
    calls: Calls<Arc<Slot>>,
    hands: pump::Hands,
    /// Tools that the host removed meanwhile, by their place in the snapshot.
    withdrawn: BTreeSet<usize>,
    /// What the clock waits for.
    alarm: Option<Instant>,
    closing: Option<Closing>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", &self.0.id).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.disposed.cancel();
    }
}

impl Run {
    /// A run that takes requests. Must be called within a runtime.
    pub(crate) fn new(parts: RunParts) -> Self {
        let RunParts { profile, ids, snapshot, url, deadlines, guard, saved_as, keep_alive, .. } = parts;
        let RunParts { diagnostics, tasks, large, closing, .. } = parts;
        let run = Self(Arc::new(Inner {
            profile,
            id: ids.run().to_owned(),
            snapshot,
            url,
            deadlines,
            guard,
            saved_as,
            keep_alive,
            diagnostics,
            runtime: tokio::runtime::Handle::current(),
            tasks,
            large,
            state: Mutex::new(State {
                calls: Calls::new(ids, deadlines.bridge, MOST_CALLS),
                hands: pump::Hands::default(),
                withdrawn: BTreeSet::new(),
                alarm: None,
                closing: Some(closing),
            }),
            own: Mutex::default(),
            clock: Arc::new(Notify::new()),
            idle: Notify::new(),
            connected: AtomicU64::new(0),
            listed: AtomicU64::new(0),
            called: AtomicU64::new(0),
            disposed: CancellationToken::new(),
            gone: CancellationToken::new(),
        }));
        run.start_clock();
        run
    }

    /// Its id: random, and no part of the endpoint.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// What the agent is given to reach it.
    pub fn server(&self) -> InlineServer {
        InlineServer { key: self.0.profile.server_key, url: self.0.url.clone() }
    }

    /// What it exposes.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.0.snapshot
    }

    /// How long its calls may take.
    pub fn deadlines(&self) -> Deadlines {
        self.0.deadlines
    }

    /// It takes no requests any more.
    pub fn is_disposed(&self) -> bool {
        self.0.disposed.is_cancelled()
    }

    /// Ends when it takes no requests any more.
    pub(crate) async fn disposed(&self) {
        self.0.disposed.cancelled().await;
    }

    /// Calls that have no answer yet.
    pub fn pending(&self) -> usize {
        self.lock().calls.len()
    }

    /// Ends when no call waits for its answer, at once if none does.
    pub async fn idle(&self) {
        loop {
            let idle = self.0.idle.notified();
            tokio::pin!(idle);
            // Registered before the look, so that nothing is missed between.
            idle.as_mut().enable();
            if self.pending() == 0 {
                return;
            }
            idle.await;
        }
    }

    /// What is known of its use.
    pub fn facts(&self) -> Facts {
        let Inner { connected, listed, called, snapshot, .. } = &*self.0;
        let [connected, listed, called] =
            [connected, listed, called].map(|count| count.load(Ordering::Relaxed));
        Facts { exposed: snapshot.exposed().len(), connected, listed, called }
    }

    /// Tells diagnostics that it is there.
    pub(crate) fn announce(&self) {
        self.0.diagnostics.emit(|| self.event(EventKind::RunCreated));
        self.0.diagnostics.emit(|| {
            let tools = self.0.snapshot.exposed().iter();
            let pairs = tools.map(|tool| (tool.tool.name.clone(), tool.mcp_name.clone())).collect();
            self.event(EventKind::ToolsExposed { pairs })
        });
    }

    /// Takes no more requests and gives up every call, with that reason. What follows is [`Run::dispose`].
    pub(crate) fn close(&self, reason: &str) {
        let ended = {
            let mut state = self.lock();
            self.0.disposed.cancel();
            self.0.clock.notify_one();
            state.calls.close(reason)
        };
        self.reject_all(ended, reason);
    }

    /// The end: no more requests, every call given up with that reason, the place at the server given back, and with the
    /// last run the port closed. Ends when that is done; it is done too when nobody waits for it.
    pub async fn dispose(&self, reason: &str) {
        self.close(reason);
        let closing = self.lock().closing.take();
        if let Some(closing) = closing {
            let run = self.clone();
            let end = async move {
                // One tick, in which the rejections go out.
                tokio::task::yield_now().await;
                closing().await;
                run.0.diagnostics.emit(|| run.event(EventKind::RunDisposed));
                run.0.gone.cancel();
            };
            self.0.tasks.spawn_on(end, &self.0.runtime);
        }
        self.0.gone.cancelled().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the host is told of a call that it must not execute.
pub(crate) const NO_LONGER_PENDING: &str = "this call is no longer pending: the agent does not wait for it";

#[cfg(test)]
mod tests;
