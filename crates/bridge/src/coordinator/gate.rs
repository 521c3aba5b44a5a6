//! Owns what a host's hooks need at once, on any thread: whether a call may start, and how far it is.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::call::CallId;
use crate::registry::Bridge;
use crate::run::{Progress, Run};

/// The view of a session that its hooks have.
#[derive(Debug)]
pub(super) struct Gate {
    bridge: Bridge,
    open: AtomicBool,
    turns: AtomicUsize,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    run: Option<Run>,
    abort: Option<CancellationToken>,
}

impl Gate {
    pub(super) fn new(bridge: Bridge) -> Self {
        Self { bridge, open: AtomicBool::new(true), turns: AtomicUsize::new(0), now: Mutex::default() }
    }

    /// The run whose calls the host may be handed from now on, none after its agent is let go.
    pub(super) fn set_run(&self, run: Option<Run>) {
        self.lock().run = run;
    }

    /// The signal by which the host gives up the turn and its calls.
    pub(super) fn set_abort(&self, abort: CancellationToken) {
        self.lock().abort = Some(abort);
    }

    /// The session is over: its hooks do nothing from now on, so that they are not in the way of those of another.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
        *self.lock() = Now::default();
    }

    /// A turn was asked for, before anybody looked at it.
    pub(super) fn turn_asked(&self) {
        self.turns.fetch_add(1, Ordering::SeqCst);
    }

    /// A turn that was asked for has ended.
    pub(super) fn turn_ended(&self) {
        self.turns.fetch_sub(1, Ordering::SeqCst);
    }

    /// Turns that were asked for and have not ended.
    pub(super) fn turns(&self) -> usize {
        self.turns.load(Ordering::SeqCst)
    }

    /// What the pre-execution hook asks. An error is a reason to block.
    pub(super) fn admit(&self, id: &CallId) -> Result<(), String> {
        let is_ours = id.is_of_bridge();
        if !is_ours || !self.open.load(Ordering::SeqCst) {
            return Ok(());
        }
        if self.lock().abort.as_ref().is_some_and(CancellationToken::is_cancelled) {
            return Err("the host gave the turn up before the call began".to_owned());
        }
        self.bridge.admit(id)
    }

    /// How far a call is.
    pub(super) fn progress(&self, id: &CallId, progress: &Progress) {
        let run = self.lock().run.clone();
        if let Some(run) = run {
            run.progress(id, progress);
        }
    }

    /// The run of the agent that is there.
    pub(super) fn run(&self) -> Option<Run> {
        self.lock().run.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
