//! Owns one run: snapshot, endpoint, calls, and its end. It knows neither the server that carries the requests nor the
//! other runs.
//!
//! The call table is behind one short mutex, not in a task of its own: a call costs no hop between tasks, and what the
//! host is handed it gets on the thread on which the request came. The sink is never called under the mutex: whoever
//! finds it free takes it along and tells it all that is to be told, in order; others leave their orders to them.

mod clock;
mod deliver;
mod progress;
mod pump;
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
use crate::call::{CallId, HostCall, HostResult, Rejection, RejectionKind};
use crate::calls::{Calls, Ids, MOST_CALLS, NewCall, Origin, cancelled};
use crate::deadline::Deadlines;
use crate::diagnostics::{Diagnostics, EventKind};
use crate::json::RawJson;
use crate::own_activity::OwnActivity;
use crate::profile::Profile;
use crate::result;
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

    /// The names that it uses.
    pub(crate) fn profile(&self) -> &Profile {
        &self.0.profile
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

    /// A client introduced itself.
    pub(crate) fn connected(&self) {
        self.0.connected.fetch_add(1, Ordering::Relaxed);
        self.0.diagnostics.emit(|| self.event(EventKind::McpInitialized));
    }

    /// A client was given the list of tools.
    pub(crate) fn listed(&self) {
        self.0.listed.fetch_add(1, Ordering::Relaxed);
        let tool_count = self.0.snapshot.exposed().len();
        self.0.diagnostics.emit(|| self.event(EventKind::McpToolsList { tool_count }));
    }

    /// A client calls a tool. `token`: it wants to hear of progress, under that token.
    pub(crate) fn begin(
        &self,
        origin: Origin,
        name: &str,
        arguments: Option<RawJson>,
        token: Option<RawJson>,
    ) -> Began {
        if self.is_disposed() {
            return Began::Rejected(cancelled("the run is over"));
        }
        let exposed = self.0.snapshot.exposed();
        let found = exposed.binary_search_by(|tool| tool.mcp_name.as_str().cmp(name));
        let Some((tool, offered)) = found.ok().and_then(|tool| Some((tool, exposed.get(tool)?))) else {
            return Began::Answer(result::unknown_tool(name, self.0.snapshot.suggestion(name)));
        };
        self.0.called.fetch_add(1, Ordering::Relaxed);
        let arguments = arguments.filter(RawJson::is_object).unwrap_or_else(RawJson::empty_object);
        // The id is the table's to give.
        let call = HostCall {
            id: CallId::new(""),
            tool: offered.tool.name.clone(),
            mcp_name: offered.mcp_name.clone(),
            arguments,
        };
        let slot = Arc::new(Slot::new(token));
        let request = self.0.diagnostics.is_on().then(|| origin.request.clone());
        let (id, event) = {
            let mut state = self.lock();
            if state.withdrawn.contains(&tool) {
                return Began::Answer(result::withdrawn_tool(&offered.tool.name));
            }
            let now = Instant::now();
            let new = NewCall { origin, tool, call, reply: Arc::clone(&slot) };
            let (n, id) = match state.calls.begin(now, new) {
                Ok(begun) => begun,
                Err(rejection) => return Began::Rejected(rejection),
            };
            if state.alarm.is_none() {
                state.alarm = state.calls.next_deadline();
                self.0.clock.notify_one();
            }
            let event = request.map(|request| {
                let call = self.call_fields(&state, n, &id, tool, &request);
                self.event_of(EventKind::RequestQueued(call), state.calls.len())
            });
            (id, event)
        };
        if let Some(event) = event {
            self.0.diagnostics.emit(|| event);
        }
        self.pump();
        Began::Waiting(Waiter::new(self.clone(), id, slot, self.0.keep_alive))
    }

    /// The client cancels its request. One that it never made is of no consequence.
    pub(crate) fn cancel_request(&self, origin: Origin) {
        let reason = crate::calls::CLIENT_CANCELLED;
        let ended = self.lock().calls.cancel_request(Instant::now(), origin, reason);
        self.give_up(ended);
    }

    /// As [`Run::cancel_request`], by the host's id.
    fn cancelled_by_client(&self, id: &CallId, reason: &str) {
        let ended = self.lock().calls.cancel(id, reason);
        self.give_up(ended);
    }

    /// The client ended its session: nobody is left whom its calls could be answered to.
    pub(crate) fn cancel_session(&self, session: u64, reason: &str) {
        let ended = self.lock().calls.cancel_session(session, reason);
        self.reject_all(ended, reason);
    }

    /// The host tells how far a call is. It moves no deadline.
    pub fn progress(&self, id: &CallId, progress: &Progress) {
        let slot = self.lock().calls.reply(id).map(Arc::clone);
        if let Some(slot) = slot {
            slot.progress(Some(progress));
        }
    }

    /// The host gives the result of a call. The first one counts, if anybody waits for it.
    pub fn settle(&self, id: &CallId, result: HostResult) -> Settlement {
        self.settle_with(id, result)
    }

    /// The host ends a call without a result. It is not told to stop it.
    pub fn fail(&self, id: &CallId, rejection: Rejection) -> Settlement {
        let ended = self.lock().calls.end(id);
        let found = if ended.is_some() { Settlement::Delivered } else { Settlement::Unknown };
        self.reject(ended, rejection.kind, &rejection.reason);
        found
    }

    /// The host's own abort signal ended a call: the agent is told so, and the sink is told to stop it.
    pub fn abort(&self, id: &CallId, reason: &str) -> Settlement {
        let ended = self.lock().calls.cancel(id, reason);
        let found = if ended.is_some() { Settlement::Delivered } else { Settlement::Unknown };
        self.reject(ended, RejectionKind::Cancelled, reason);
        found
    }

    /// The host asks before it executes a tool call. Refused are ids of bridge calls that nobody waits for (any more);
    /// other ids are none of the bridge's business.
    pub fn admit(&self, id: &CallId) -> Result<(), String> {
        if !id.is_of_bridge(&self.0.profile) || self.lock().calls.is_pending(id) {
            return Ok(());
        }
        Err(NO_LONGER_PENDING.to_owned())
    }

    /// The id is, or could be, of one of this run's calls.
    pub(crate) fn owns(&self, id: &CallId) -> bool {
        self.lock().calls.ids().owns(id)
    }

    /// Every call is given up, with that reason. The run goes on.
    pub fn cancel_all(&self, reason: &str) {
        let ended = self.lock().calls.cancel_all(reason);
        self.reject_all(ended, reason);
    }

    /// The host removed a tool, by its real name: calls of it, also those on their way, are told so at once.
    pub fn withdraw(&self, real_name: &str) {
        let Some(tool) = self.place_of(real_name) else { return };
        let ended = {
            let mut state = self.lock();
            state.withdrawn.insert(tool);
            state.calls.cancel_tool(tool, "the host removed the tool")
        };
        for ended in ended {
            self.answer(ended, result::withdrawn_tool(real_name), true);
        }
        self.pump();
    }

    /// The host has a tool again that it had removed.
    pub fn restore(&self, real_name: &str) {
        if let Some(tool) = self.place_of(real_name) {
            self.lock().withdrawn.remove(&tool);
        }
    }

    fn place_of(&self, real_name: &str) -> Option<usize> {
        self.0.snapshot.exposed().iter().position(|tool| tool.tool.name == real_name)
    }

    /// The agent's report of one of its own tools is about a bridge call, which the host shows already.
    pub fn is_own_activity(&self, report: &RawJson) -> bool {
        let known = |name: &str| self.0.snapshot.find(name).is_some();
        let requested = |id: &toolway_wire::Id| self.lock().calls.knows_request(id);
        let mut own = self.0.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.recognise(report, self.0.profile.server_key, &known, &requested)
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
