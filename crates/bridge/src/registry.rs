//! Owns the runs of one host session and the listener that they share: opened with the first run, closed with the last.
//! It knows neither requests nor calls.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use toolway_guard::Guard;

use crate::call::CallId;
use crate::calls::{Ids, random_uuid};
use crate::deadline::Deadlines;
use crate::diagnostics::{Diagnostics, Event, EventKind, SkipReason};
use crate::error::BridgeError;
use crate::profile::Profile;
use crate::run::{NO_LONGER_PENDING, Run, RunParts};
use crate::server::{Endpoint, Listener, ServerOptions};
use crate::snapshot::Snapshot;

/// Large results that are worked on at once.
const LARGE_AT_ONCE: usize = 2;
/// How often a client that asked for progress hears that its call lives.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Runs whose ids are remembered.
const REMEMBERED: usize = 1024;

/// The settings of a bridge. Plain values.
#[derive(Debug, Clone)]
pub struct BridgeConfig {
    /// Names.
    pub profile: Profile,
    /// Times.
    pub deadlines: Deadlines,
    /// Saves results that are too large for the agent. Without it, results of up to 16 MiB pass whole.
    pub guard: Option<Arc<Guard>>,
    /// Where events go.
    pub diagnostics: Diagnostics,
    /// A client that asked for progress is told this often that its call lives, whatever the host tells; `None`: it is
    /// told what the host tells, nothing else.
    pub keep_alive: Option<Duration>,
    /// Whose results the guard saves; by itself a random name.
    pub saved_as: Option<String>,
}

impl BridgeConfig {
    /// The defaults of that profile: no guard, no diagnostics.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            deadlines: Deadlines::default(),
            guard: None,
            diagnostics: Diagnostics::default(),
            keep_alive: Some(KEEP_ALIVE),
            saved_as: None,
        }
    }
}

/// The bridge of one host session. A session within a session has one of its own. Cheap to clone; all clones are the same
/// bridge, and with the last one its runs and its listener go, if it was not shut down before.
#[derive(Clone)]
pub struct Bridge(Arc<Inner>);

struct Inner {
    config: BridgeConfig,
    saved_as: String,
    /// Opening and closing are done one after the other, so that no run loses its listener to another's end.
    listener: tokio::sync::Mutex<Option<Listener>>,
    state: Mutex<State>,
    tasks: TaskTracker,
    large: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    runs: BTreeMap<String, Run>,
    /// What the ids of runs that are gone began with.
    gone: VecDeque<Ids>,
    /// It opens no runs any more.
    closed: bool,
}

impl fmt::Debug for Bridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bridge").field("runs", &self.lock().runs.len()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    /// Nobody can shut it down any more: whoever waits for a call is told so, and hosts are told to stop.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for run in state.runs.values() {
            run.close("the bridge is gone");
        }
    }
}

impl Bridge {
    /// No run yet, and no listener. Does no I/O.
    pub fn new(config: BridgeConfig) -> Self {
        let saved_as = config.saved_as.clone().or_else(|| random_uuid().ok()).unwrap_or_default();
        Self(Arc::new(Inner {
            config,
            saved_as,
            listener: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            tasks: TaskTracker::new(),
            large: Arc::new(Semaphore::new(LARGE_AT_ONCE)),
        }))
    }

    /// The settings.
    pub fn config(&self) -> &BridgeConfig {
        &self.0.config
    }

    /// Opens a run on that snapshot; the first one opens the listener. `None` where the snapshot exposes nothing: there is
    /// no listener then, and nothing to hand to an agent. A listener that could not be opened can be tried again.
    pub async fn open(&self, snapshot: Arc<Snapshot>) -> Result<Option<Run>, BridgeError> {
        if !snapshot.is_served() {
            self.0.config.diagnostics.emit(|| skipped(&snapshot));
            return Ok(None);
        }
        let mut listener = self.0.listener.lock().await;
        if self.lock().closed {
            return Err(BridgeError::Closed);
        }
        let ids = Ids::random(&self.0.config.profile)?;
        if listener.is_none() {
            *listener = Some(Listener::start(&self.0.config.profile, ServerOptions::default())?);
        }
        let Some(listening) = &*listener else { return Ok(None) };
        let endpoint = match listening.endpoint() {
            Ok(endpoint) => endpoint,
            Err(error) => {
                // No run, no listener.
                if let Some(unused) = listener.take_if(|_| self.lock().runs.is_empty()) {
                    unused.stop().await;
                }
                return Err(error);
            }
        };
        let run = self.run(ids, Arc::clone(&snapshot), &endpoint);
        listening.open(&endpoint, run.clone());
        self.lock().runs.insert(run.id().to_owned(), run.clone());
        run.announce();
        Ok(Some(run))
    }

    fn run(&self, ids: Ids, snapshot: Arc<Snapshot>, endpoint: &Endpoint) -> Run {
        let Inner { config, saved_as, tasks, large, .. } = &*self.0;
        let (bridge, endpoint, at) = (Arc::downgrade(&self.0), endpoint.clone(), ids.clone());
        Run::new(RunParts {
            profile: config.profile,
            ids,
            snapshot,
            url: endpoint.url().clone(),
            deadlines: config.deadlines,
            guard: config.guard.clone(),
            saved_as: saved_as.clone(),
            keep_alive: config.keep_alive,
            diagnostics: config.diagnostics.clone(),
            tasks: tasks.clone(),
            large: Arc::clone(large),
            closing: Box::new(move || Box::pin(close(bridge, at, endpoint))),
        })
    }

    /// The host asks before it executes a tool call: see [`Run::admit`], over all runs. A bridge that was shut down answers
    /// for its own runs alone, so that it does not stand in the way of the one that replaced it.
    pub fn admit(&self, id: &CallId) -> Result<(), String> {
        if !id.is_of_bridge() {
            return Ok(());
        }
        let (run, strange) = {
            let state = self.lock();
            let run = state.runs.values().find(|run| run.owns(id)).cloned();
            let strange = state.closed && !state.gone.iter().any(|ids| ids.owns(id));
            (run, strange)
        };
        match run {
            Some(run) => run.admit(id),
            None if strange => Ok(()),
            None => Err(NO_LONGER_PENDING.to_owned()),
        }
    }

    /// The run that gave out that id, while it is open.
    pub fn run_of(&self, id: &CallId) -> Option<Run> {
        self.lock().runs.values().find(|run| run.owns(id)).cloned()
    }

    /// The runs that are open, in no order of meaning.
    pub fn runs(&self) -> Vec<Run> {
        self.lock().runs.values().cloned().collect()
    }

    /// Calls of all runs that have no answer yet.
    pub fn pending(&self) -> usize {
        self.runs().iter().map(Run::pending).sum()
    }

    /// The end of the session, of the adapter, of the process: every call of every run is rejected with that reason, and
    /// only then the server closes. No run is opened any more.
    pub async fn shutdown(&self, reason: &str) {
        self.lock().closed = true;
        // A run that is being opened is there now, or is not opened.
        drop(self.0.listener.lock().await);
        let runs = self.runs();
        for run in &runs {
            run.close(reason);
        }
        for run in &runs {
            run.dispose(reason).await;
        }
        self.0.tasks.close();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a run's place at the listener back; with the last run the listener closes.
async fn close(bridge: Weak<Inner>, ids: Ids, endpoint: Endpoint) {
    let Some(bridge) = bridge.upgrade().map(Bridge) else { return };
    let mut listener = bridge.0.listener.lock().await;
    let last = {
        let mut state = bridge.lock();
        state.runs.remove(ids.run());
        state.gone.push_back(ids);
        if state.gone.len() > REMEMBERED {
            state.gone.pop_front();
        }
        state.runs.is_empty()
    };
    if let Some(listening) = &*listener {
        listening.close(&endpoint);
    }
    if let Some(listening) = listener.take_if(|_| last) {
        listening.stop().await;
    }
}

fn skipped(snapshot: &Snapshot) -> Event {
    let reason = if snapshot.is_enabled() { SkipReason::NoExposedTools } else { SkipReason::Disabled };
    Event {
        run_id: None,
        enabled: snapshot.is_enabled(),
        exposed_tool_count: 0,
        pending_count: 0,
        kind: EventKind::RunSkipped(reason),
    }
}
