//! Owns a host's end of a session: asks for turns, answers hooks, tells of the host. The state is the task's.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::gate::Gate;
use super::turn::{OpenTurn, Turn, open};
use crate::call::CallId;
use crate::host_port::{HostEvent, TurnRequest};
use crate::replay::{Records, Replayed};
use crate::run::{Progress, Run};

/// What a session's task is asked.
#[derive(Debug)]
pub(super) enum Command {
    /// A turn.
    Turn(Box<OpenTurn>),
    /// Something happened in the host. Answered when it is done.
    Tell(HostEvent, oneshot::Sender<()>),
    /// The end, for that reason. It is over when its task is.
    Shutdown(String),
}

/// Commands that wait for the task.
pub(super) const COMMANDS: usize = 64;

/// A session: one conversation of a host with an agent. Cheap to clone; it ends by [`Session::shutdown`], by its
/// coordinator's, or when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Session {
    commands: mpsc::Sender<Command>,
    /// Nothing of it is left.
    over: CancellationToken,
    gate: Arc<Gate>,
    scope: Arc<str>,
    records: Arc<Mutex<Records>>,
}

impl Session {
    pub(super) fn new(
        scope: Arc<str>,
        commands: mpsc::Sender<Command>,
        over: CancellationToken,
        gate: Arc<Gate>,
        records: Arc<Mutex<Records>>,
    ) -> Self {
        Self { commands, over, gate, scope, records }
    }

    /// Whose conversation it is.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    /// Asks for a turn. Turns of a session are served one after the other.
    pub async fn turn(&self, request: TurnRequest) -> Turn {
        let (open, turn) = open(request, Arc::clone(&self.gate));
        // A session that is over drops the other end, and the turn says so.
        self.commands.send(Command::Turn(Box::new(open))).await.ok();
        turn
    }

    /// Asks for a turn without waiting: it comes after everything that was asked before. `None`: more is asked than the
    /// session has taken so far.
    pub(crate) fn try_turn(&self, request: TurnRequest) -> Option<Turn> {
        let place = match self.commands.try_reserve() {
            Ok(place) => Some(place),
            Err(mpsc::error::TrySendError::Closed(())) => None,
            Err(mpsc::error::TrySendError::Full(())) => return None,
        };
        let (open, turn) = open(request, Arc::clone(&self.gate));
        if let Some(place) = place {
            place.send(Command::Turn(Box::new(open)));
        }
        Some(turn)
    }

    /// Tells what happened in the host without waiting. What is returned ends with its consequences. `None`: see
    /// [`Self::try_turn`].
    pub(crate) fn try_tell(&self, event: HostEvent) -> Option<impl Future<Output = ()> + Send + use<>> {
        let (done, wait) = oneshot::channel();
        if let Err(mpsc::error::TrySendError::Full(_)) = self.commands.try_send(Command::Tell(event, done)) {
            return None;
        }
        Some(async move { drop(wait.await) })
    }

    /// For the host's hook before it runs a tool, whatever tool: an error is the reason to block it. Calls that are not
    /// the bridge's pass, and every call does once the session is over.
    pub fn admit(&self, id: &CallId) -> Result<(), String> {
        self.gate.admit(id)
    }

    /// How far a call is that the host runs.
    pub fn progress(&self, id: &CallId, progress: &Progress) {
        self.gate.progress(id, progress);
    }

    /// For the wrappers that show what the agent did: what was recorded for this id. It runs nothing, ever.
    pub fn replayed(&self, tool: &str, id: &str) -> Replayed {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).take(&self.scope, tool, id)
    }

    /// It has ended; nothing of it is used any more.
    pub fn is_over(&self) -> bool {
        self.commands.is_closed()
    }

    /// A turn was asked for and has not ended: nothing may summarise the conversation now.
    pub fn is_busy(&self) -> bool {
        self.gate.turns() > 0
    }

    /// The run of the agent that is there: what it exposes, what is known of its use.
    pub fn run(&self) -> Option<Run> {
        self.gate.run()
    }

    /// Tells what happened in the host, and waits until its consequences for calls and agents have begun.
    pub async fn tell(&self, event: HostEvent) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(Command::Tell(event, done)).await.is_ok() {
            wait.await.ok();
        }
    }

    /// Rejects every call, stops every tool that the host runs for it, lets the agent go, closes the server. Waits until
    /// that is done; each step has its deadline.
    pub async fn shutdown(&self, reason: &str) {
        shut_down(&self.commands, &self.over, reason.to_owned()).await;
    }

    /// An end that does not keep the session open.
    pub(super) fn downgrade(&self) -> WeakSession {
        WeakSession(self.commands.downgrade(), self.over.clone())
    }
}

/// An end of a session that does not keep it open.
#[derive(Debug)]
pub(super) struct WeakSession(mpsc::WeakSender<Command>, CancellationToken);

impl WeakSession {
    pub(super) fn is_open(&self) -> bool {
        self.0.upgrade().is_some_and(|commands| !commands.is_closed())
    }

    /// See [`Session::shutdown`]. One that is over already is left alone.
    pub(super) async fn shutdown(self, reason: String) {
        if let Some(commands) = self.0.upgrade() {
            shut_down(&commands, &self.1, reason).await;
        }
    }
}

async fn shut_down(commands: &mpsc::Sender<Command>, over: &CancellationToken, reason: String) {
    // A second one, asked during the first, ends when the first does.
    commands.send(Command::Shutdown(reason)).await.ok();
    over.cancelled().await;
}
