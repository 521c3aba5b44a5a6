//! Owns the life of one upstream: waits until it is wanted, starts it, serves it until it is lost, and starts it again.
//! Knows no messages.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolway_transport::{Failure, Members, Transport as _};
use toolway_wire::{Id, Kind, UPSTREAM_ERROR};

use super::backoff::{Backoff, Next};
use super::queue::Queue;
use super::session::{End, Session};
use super::{UpstreamEvent, UpstreamId};
use crate::gateway::config::ServerConfig;
use crate::gateway::connection::{Connection, Shared};
use crate::gateway::state::{ServerState, Stage};

/// Somebody who needs a failed server starts it again, but not more often than this.
const WAKE_PAUSE: Duration = Duration::from_secs(3);

/// The way to the hub.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) id: UpstreamId,
    pub(super) events: mpsc::Sender<(UpstreamId, UpstreamEvent)>,
    pub(super) stop: CancellationToken,
}

/// The upstream is to stop, or nobody listens to it any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stopping;

impl Outlet {
    /// Tells the hub; waits while the hub has enough to do.
    pub(super) async fn emit(&self, event: UpstreamEvent) -> Result<(), Stopping> {
        let event = match self.events.try_send((self.id, event)) {
            Ok(()) => return Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return Err(Stopping),
            Err(mpsc::error::TrySendError::Full(event)) => event,
        };
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(Stopping),
            sent = self.events.send(event) => sent.map_err(|_| Stopping),
        }
    }
}

/// One upstream's task.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) config: Arc<ServerConfig>,
    shared: Shared,
    pub(super) outlet: Outlet,
    pub(super) queue: Arc<Queue>,
    state: Option<ServerState>,
    backoff: Backoff,
}

impl Task {
    pub(super) fn new(config: Arc<ServerConfig>, shared: Shared, outlet: Outlet, queue: Arc<Queue>) -> Self {
        Self { config, shared, outlet, queue, state: None, backoff: Backoff::default() }
    }

    pub(super) async fn run(mut self) {
        // It ends by being stopped, whatever it was doing.
        let Stopping = self.live().await;
        // The hub may be waiting for this task and read no more.
        if self.outlet.events.try_send((self.outlet.id, UpstreamEvent::Stopped)).is_err() {
            tracing::trace!("nobody hears that an upstream has ended");
        }
    }

    async fn live(&mut self) -> Stopping {
        loop {
            if let Err(stopping) = self.life().await {
                return stopping;
            }
        }
    }

    /// One start, what comes of it, and the pause after it.
    async fn life(&mut self) -> Result<(), Stopping> {
        if self.state.is_none() {
            self.set(ServerState::Starting).await?;
            if self.config.lazy {
                self.wanted().await?;
            }
        }
        let attempt = Connection::attempt(&self.config, &self.shared, &self.outlet.stop).await;
        let (state, retried, lived) = match attempt {
            Ok(connection) => {
                let since = Instant::now();
                let (end, connection) = Session::new(self, connection).run().await;
                let lost = self.lost(end).await;
                connection.close().await;
                (lost?, true, since.elapsed())
            }
            Err((error, remains)) => {
                if self.outlet.stop.is_cancelled() {
                    if let Some(mut link) = remains {
                        link.close().await;
                    }
                    return Err(Stopping);
                }
                let state = error.state();
                tracing::debug!(server = self.config.name, %error, "the server could not be started");
                self.tell(state.clone()).await?;
                self.fail_waiting(&error.reason).await?;
                if let Some(mut link) = remains {
                    link.close().await;
                }
                (state, !error.detail.needs_auth && error.stage != Stage::Configure, Duration::ZERO)
            }
        };
        self.pause(state, retried, lived).await
    }

    /// Tells that the connection is lost; gives what the server is now.
    async fn lost(&mut self, end: End) -> Result<ServerState, Stopping> {
        let (stage, reason) = match end {
            End::Stopping => return Err(Stopping),
            End::Unlisted(reason) => (Stage::List, reason),
            End::Lost(reason) => (Stage::Run, reason),
        };
        self.queue.drain();
        self.outlet.emit(UpstreamEvent::Down { reason: reason.clone() }).await?;
        let state = ServerState::Failed { stage, reason, hint: None };
        self.set(state.clone()).await?;
        Ok(state)
    }

    /// Waits until it may be started again.
    async fn pause(&mut self, state: ServerState, retried: bool, lived: Duration) -> Result<(), Stopping> {
        let until = match self.backoff.failed(lived) {
            Next::After(pause) if retried => Some(Instant::now() + pause),
            Next::GiveUp(starts) if retried => {
                self.set(given_up(state.clone(), starts)).await?;
                None
            }
            _ => None,
        };
        if until.is_some() || !retried {
            self.set(state.clone()).await?;
        }
        let reason = state.to_string();
        let wakes_at = Instant::now() + WAKE_PAUSE;
        let mut woken = false;
        loop {
            let at = match (woken, until) {
                (true, Some(until)) => Some(until.min(wakes_at)),
                (true, None) => Some(wakes_at),
                (false, until) => until,
            };
            tokio::select! {
                biased;
                () = self.outlet.stop.cancelled() => return Err(Stopping),
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => break,
                () = self.queue.changed() => {
                    woken |= self.queue.take_wishes().woken;
                    self.fail_waiting(&reason).await?;
                }
            }
        }
        self.fail_waiting(&reason).await
    }

    /// A lazy server waits for its first call.
    async fn wanted(&self) -> Result<(), Stopping> {
        while !self.queue.take_wishes().woken && self.queue.is_empty() {
            tokio::select! {
                biased;
                () = self.outlet.stop.cancelled() => return Err(Stopping),
                () = self.queue.changed() => {}
            }
        }
        Ok(())
    }

    /// Says what it is now, if that is new.
    pub(super) async fn set(&mut self, state: ServerState) -> Result<(), Stopping> {
        if self.state.as_ref() == Some(&state) {
            return Ok(());
        }
        self.tell(state).await
    }

    async fn tell(&mut self, state: ServerState) -> Result<(), Stopping> {
        self.state = Some(state.clone());
        self.outlet.emit(UpstreamEvent::State(state)).await
    }

    /// What waits for a server that is not there will not be sent.
    async fn fail_waiting(&self, reason: &str) -> Result<(), Stopping> {
        let ids: Vec<Id> =
            self.queue.drain().into_iter().flat_map(|message| requests(&message.members)).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let message = format!("the server {} is not available: {reason}", self.config.name);
        let failure = Failure { code: UPSTREAM_ERROR, message, data: None };
        self.outlet.emit(UpstreamEvent::Failed { ids, failure }).await
    }
}

/// The state, with the note that it will not be tried again by itself.
fn given_up(state: ServerState, starts: u32) -> ServerState {
    match state {
        ServerState::Failed { stage, reason, hint } => {
            let reason = format!("{reason}; given up after {starts} starts, tried again at its next call");
            ServerState::Failed { stage, reason, hint }
        }
        other => other,
    }
}

/// The ids of the requests among them.
pub(super) fn requests(members: &Members) -> Vec<Id> {
    let requests = members.as_slice().iter().filter(|message| message.kind() == Kind::Request);
    requests.filter_map(|message| message.id().cloned()).collect()
}
