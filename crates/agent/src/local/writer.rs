//! Owns the way of a run's events to the store: in order, in batches, with a bound on what waits.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::id::RunId;
use crate::store::{Keeper, Kept, Writes};

/// Events that may wait before the run waits, too.
const WAITING: usize = 1024;
/// How long events that nobody waits for may gather.
const GATHER: Duration = Duration::from_millis(5);

/// Where a run's events wait for the store.
#[derive(Debug)]
pub(super) struct Writer {
    pending: Mutex<Pending>,
    came: Notify,
    urgent: Notify,
    /// How much was kept.
    done: watch::Sender<Done>,
    /// The run is over in the store, or the store is lost.
    pub(super) stopped: CancellationToken,
}

#[derive(Debug, Default)]
struct Pending {
    writes: Writes,
    /// How many writes were asked for.
    asked: u64,
}

/// What became of writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// So many writes were kept.
    kept: u64,
    /// The last event that was kept.
    pub(super) offset: u64,
    /// None will be any more.
    pub(super) stop: Option<Stop>,
}

/// Why nothing more is kept.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    /// The run is over: it was given up, or its agent is gone.
    Over,
    /// The store cannot be used.
    Lost(AgentError),
}

impl Writer {
    pub(super) fn new() -> Self {
        Self {
            pending: Mutex::default(),
            came: Notify::new(),
            urgent: Notify::new(),
            done: watch::Sender::new(Done::default()),
            stopped: CancellationToken::new(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was kept so far, and every change of it.
    pub(super) fn done(&self) -> watch::Receiver<Done> {
        self.done.subscribe()
    }

    /// Adds writes. Gives their number, to be waited for.
    pub(super) fn add(&self, add: impl FnOnce(&mut Writes)) -> u64 {
        let mut pending = self.pending();
        add(&mut pending.writes);
        pending.asked += 1;
        let number = pending.asked;
        drop(pending);
        self.came.notify_one();
        number
    }

    /// Waits until these writes are kept.
    pub(super) async fn kept(&self, number: u64) -> Result<(), Stop> {
        self.urgent.notify_one();
        let mut done = self.done.subscribe();
        let Ok(done) = done.wait_for(|done| done.kept >= number || done.stop.is_some()).await else {
            return Err(Stop::Over);
        };
        match &done.stop {
            Some(stop) if done.kept < number => Err(stop.clone()),
            _ => Ok(()),
        }
    }

    /// Waits while too much waits.
    pub(super) async fn room(&self) -> Result<(), Stop> {
        let asked = {
            let pending = self.pending();
            (pending.writes.events.len() >= WAITING).then_some(pending.asked)
        };
        match asked {
            Some(asked) => self.kept(asked).await,
            None => self.done.borrow().stop.clone().map_or(Ok(()), Err),
        }
    }

    /// Writes until the run is over.
    pub(super) async fn run(self: Arc<Self>, keeper: Keeper, run: RunId) {
        loop {
            self.came.notified().await;
            tokio::select! {
                () = self.urgent.notified() => {}
                () = sleep(GATHER) => {}
            }
            let (writes, asked) = {
                let mut pending = self.pending();
                (std::mem::take(&mut pending.writes), pending.asked)
            };
            if writes == Writes::default() {
                continue;
            }
            let offset = writes.events.last().map(|event| event.offset);
            let is_end = writes.change.as_ref().is_some_and(|change| change.status.is_terminal());
            let id = run.clone();
            let stop = match keeper.call(move |store| store.append(&id, &writes)).await {
                Ok(Kept::Yes) => None,
                Ok(Kept::Over) => Some(Stop::Over),
                Err(error) => Some(Stop::Lost(error)),
            };
            let is_stopped = stop.is_some();
            self.done.send_modify(|done| match stop {
                None => {
                    done.kept = asked;
                    done.offset = offset.unwrap_or(done.offset);
                }
                Some(stop) => done.stop = Some(stop),
            });
            if is_stopped {
                self.stopped.cancel();
            }
            if is_stopped || is_end {
                return;
            }
        }
    }
}
