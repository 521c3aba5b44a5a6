//! Owns the life of one upstream: waits until it is wanted, starts it, serves it until it is lost, and starts it again.
//! Knows no messages.

use std::pin::pin;
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
    /// Counts the tokens that the server refused.
    logins: Backoff,
    refused: Option<Instant>,
}

impl Task {
    pub(super) fn new(config: Arc<ServerConfig>, shared: Shared, outlet: Outlet, queue: Arc<Queue>) -> Self {
        let (backoff, logins) = (Backoff::default(), Backoff::default());
        Self { config, shared, outlet, queue, state: None, backoff, logins, refused: None }
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
                let state = lost?;
                let retried = !matches!(state, ServerState::NeedsAuth { .. });
                (state, retried, since.elapsed())
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
                let reason = match &state {
                    ServerState::NeedsAuth { hint } => format!("{}: {hint}", error.reason),
                    _ => error.reason.clone(),
                };
                self.fail_waiting(&reason).await?;
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
        let failed = |stage, reason| ServerState::Failed { stage, reason, hint: None };
        let (state, reason) = match end {
            End::Stopping => return Err(Stopping),
            End::Unlisted(reason) => (failed(Stage::List, reason.clone()), reason),
            End::Lost(reason) => (failed(Stage::Run, reason.clone()), reason),
            End::NeedsLogin(hint) => {
                (ServerState::NeedsAuth { hint: hint.clone() }, format!("it wants a login: {hint}"))
            }
        };
        self.queue.drain();
        self.outlet.emit(UpstreamEvent::Down { reason }).await?;
        self.set(state.clone()).await?;
        Ok(state)
    }

    /// Waits until it may be started again.
    async fn pause(&mut self, state: ServerState, retried: bool, lived: Duration) -> Result<(), Stopping> {
        let until = match retried.then(|| self.backoff.failed(lived)) {
            Some(Next::After(pause)) => Some(Instant::now() + pause),
            Some(Next::GiveUp(starts)) => {
                self.set(given_up(state.clone(), starts)).await?;
                None
            }
            None => None,
        };
        if until.is_some() || !retried {
            self.set(state.clone()).await?;
        }
        let reason = state.to_string();
        let began = Instant::now();
        let login_pause = self.login_pause(&state, began);
        let mut signed_in = pin!(signed_in(Arc::clone(&self.config), &state));
        let mut came = None;
        let (mut woken, mut waits) = (false, true);
        loop {
            let wake = woken.then_some(began + WAKE_PAUSE);
            let at = [until, wake, came].into_iter().flatten().min();
            tokio::select! {
                biased;
                () = self.outlet.stop.cancelled() => return Err(Stopping),
                () = sleep_until(at.unwrap_or_else(Instant::now)), if at.is_some() => break,
                () = signed_in.as_mut(), if waits => {
                    waits = false;
                    came = Some(Instant::now() + login_pause);
                }
                () = self.queue.changed() => {
                    woken |= self.queue.take_wishes().woken;
                    self.fail_waiting(&reason).await?;
                }
            }
        }
        self.fail_waiting(&reason).await
    }

    /// Whoever signs in is not kept waiting for long; a server that refuses one token after the other is not asked all the
    /// time.
    fn login_pause(&mut self, state: &ServerState, now: Instant) -> Duration {
        if !matches!(state, ServerState::NeedsAuth { .. }) {
            return Duration::ZERO;
        }
        let since = self.refused.replace(now).map_or(Duration::MAX, |at| now.duration_since(at));
        self.logins.pause(since)
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

/// Ends when there is another token than the one that was refused, where that is what the server lacks.
fn signed_in(config: Arc<ServerConfig>, state: &ServerState) -> impl Future<Output = ()> + use<> {
    let waits = matches!(state, ServerState::NeedsAuth { .. });
    async move {
        match config.target.signer().filter(|_| waits) {
            Some(signer) => signer.changed().await,
            None => std::future::pending().await,
        }
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
