//! Owns the task between the two ports: one event enum, one select, for each session. It knows no kind of host and no
//! kind of agent.

mod driver;
mod gate;
mod idle;
mod inbox;
mod pool;
mod session;
mod state;
mod tail;
mod task;
#[cfg(test)]
mod tests;
mod turn;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolway_guard::Guard;

use crate::agent_port::{AgentFailure, AgentModel, AgentPort};
use crate::diagnostics::Diagnostics;
use crate::error::BridgeError;
use crate::host_port::HostPort;
use crate::live::Pace;
use crate::profile::Profile;
use crate::registry::{Bridge, BridgeConfig};
use crate::replay::Records;
use crate::settings::{HostMode, Settings};
use driver::{Driver, Patience};
use gate::Gate;
use inbox::Inbox;
use session::{COMMANDS, WeakSession};
use state::{Making, State};
use task::Task;

pub use session::Session;
pub use turn::Turn;

/// How long an agent that nobody uses is kept.
const IDLE: Duration = Duration::from_mins(5);
/// How long an agent may take to be made, and to accept a prompt.
const PATIENCE: Duration = Duration::from_mins(1);
/// What agents tell before their session takes it.
const TOLD: usize = 64;

/// The settings of a session. Plain values.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Whose conversation it is: no two sessions that are open have the same. A session within a session has its own,
    /// and with it its own bridge, agent and skills.
    pub scope: String,
    /// The names of the host.
    pub profile: Profile,
    /// The user file.
    pub settings: Arc<Settings>,
    /// How the host takes calls.
    pub pace: Pace,
    /// How the host runs, if it says so: it decides whether the agent's own tools are shown as cards.
    pub host_mode: Option<HostMode>,
    /// The host writes to a terminal; counts where it does not say how it runs.
    pub is_terminal: bool,
    /// The adapter itself registered the tool that only shows what the agent did.
    pub own_display_tool: bool,
    /// Saves results that are too large for the agent.
    pub guard: Option<Arc<Guard>>,
    /// Where events go.
    pub diagnostics: Diagnostics,
    /// How long an agent that nobody uses is kept.
    pub idle: Duration,
    /// How long an agent may take to be made.
    pub create: Duration,
    /// How long an agent may take to accept a prompt.
    pub send: Duration,
}

impl SessionOptions {
    /// The defaults of that profile: batches, no guard, no diagnostics, 300 s idle.
    pub fn new(scope: &str, profile: Profile) -> Self {
        Self {
            scope: scope.to_owned(),
            profile,
            settings: Arc::default(),
            pace: Pace::Batches,
            host_mode: None,
            is_terminal: false,
            own_display_tool: false,
            guard: None,
            diagnostics: Diagnostics::default(),
            idle: IDLE,
            create: PATIENCE,
            send: PATIENCE,
        }
    }
}

/// The sessions of a process with one kind of agent.
pub struct Coordinator<P> {
    port: Arc<P>,
    /// Without keeping them open: a session ends when its host drops it.
    sessions: Mutex<HashMap<String, WeakSession>>,
    tasks: TaskTracker,
}

impl<P> fmt::Debug for Coordinator<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coordinator").field("sessions", &self.lock().len()).finish_non_exhaustive()
    }
}

impl<P> Coordinator<P> {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, WeakSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The end of the process, as far as sessions go: every call of every session is rejected with that reason, every
    /// tool that a host runs for one is stopped, every agent let go. Ends when that is done.
    pub async fn shutdown(&self, reason: &str) {
        let sessions: Vec<WeakSession> = self.lock().drain().map(|(_, session)| session).collect();
        let ends = TaskTracker::new();
        for session in sessions {
            let reason = reason.to_owned();
            ends.spawn(async move { session.shutdown(reason).await });
        }
        ends.close();
        ends.wait().await;
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl<P: AgentPort> Coordinator<P> {
    /// No session yet.
    pub fn new(port: P) -> Self {
        Self { port: Arc::new(port), sessions: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// The models that agents can be made with now.
    pub async fn models(&self) -> Result<Vec<AgentModel>, AgentFailure> {
        self.port.models().await
    }

    /// Opens a session. It starts neither a listener nor an agent before its first turn. A scope that has an open session
    /// is refused: nobody's session is replaced by another one's.
    pub fn open(&self, host: Arc<dyn HostPort>, options: SessionOptions) -> Result<Session, BridgeError> {
        let mut sessions = self.lock();
        sessions.retain(|_, session| session.is_open());
        if sessions.contains_key(&options.scope) {
            return Err(BridgeError::SessionOpen(options.scope));
        }
        let session = self.start(host, &options);
        sessions.insert(options.scope, session.downgrade());
        Ok(session)
    }

    fn start(&self, host: Arc<dyn HostPort>, options: &SessionOptions) -> Session {
        let bridge = Bridge::new(BridgeConfig {
            deadlines: state::deadlines(&options.settings),
            guard: options.guard.clone(),
            diagnostics: options.diagnostics.clone(),
            ..BridgeConfig::new(options.profile)
        });
        let (sender, commands) = mpsc::channel(COMMANDS);
        let (telling, told) = mpsc::channel(TOLD);
        let (gate, inbox) = (Arc::new(Gate::new(bridge.clone())), Arc::new(Inbox::default()));
        let records = Arc::new(Mutex::new(Records::new(&options.profile)));
        let agents = TaskTracker::new();
        let making = Making {
            scope: options.scope.as_str().into(),
            profile: options.profile,
            settings: Arc::clone(&options.settings),
            host,
            pace: options.pace,
            host_mode: options.host_mode,
            is_terminal: options.is_terminal,
            own_display_tool: options.own_display_tool,
            idle: options.idle,
            gate: Arc::clone(&gate),
            inbox: Arc::clone(&inbox),
            records: Arc::clone(&records),
        };
        let over = CancellationToken::new();
        let scope = Arc::clone(&making.scope);
        let session = Session::new(scope, sender, over.clone(), Arc::clone(&gate), records);
        let (port, patience) =
            (Arc::clone(&self.port), Patience { create: options.create, send: options.send });
        let (drivers, of) = (agents.clone(), bridge.clone());
        let start = move |number, snapshot, options| {
            let (driver, reins) =
                Driver::new(number, Arc::clone(&port), of.clone(), patience, telling.clone());
            drivers.spawn(driver.run(snapshot, options));
            reins
        };
        let (port, keys) = (Arc::clone(&self.port), Arc::clone(&self.port));
        let identity = Box::new(move || port.identity());
        let state = State::new(making, Box::new(start), identity, Box::new(move || keys.secrets()));
        self.tasks.spawn(
            Task { state, commands, told, inbox, agents, bridge, gate, over: over.drop_guard() }.run(),
        );
        session
    }
}
