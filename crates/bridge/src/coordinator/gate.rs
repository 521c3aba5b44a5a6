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
    /// The bridge was shut down, and knows by itself which calls were its own.
    over: AtomicBool,
    turns: AtomicUsize,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    run: Option<Run>,
    abort: Option<CancellationToken>,
    /// The run that was there when the session ended, while the bridge is not shut down.
    ended: Option<Run>,
}

impl Gate {
    pub(super) fn new(bridge: Bridge) -> Self {
        let (open, over) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { bridge, open, over, turns: AtomicUsize::new(0), now: Mutex::default() }
    }

    /// The run whose calls the host may be handed from now on, none after its agent is let go.
    pub(super) fn set_run(&self, run: Option<Run>) {
        self.lock().run = run;
    }

    /// The signal by which the host gives up the turn and its calls.
    pub(super) fn set_abort(&self, abort: CancellationToken) {
        self.lock().abort = Some(abort);
    }

    /// The session ends: its hooks block its own calls and nothing else from now on, so that they are not in the way of
    /// those of another.
    pub(super) fn close(&self) {
        self.open.store(false, Ordering::SeqCst);
        let mut now = self.lock();
        *now = Now { run: None, abort: None, ended: now.run.take() };
    }

    /// The bridge is shut down.
    pub(super) fn over(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.lock().ended = None;
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
        if !id.is_of_bridge() {
            return Ok(());
        }
        if !self.open.load(Ordering::SeqCst) && !self.over.load(Ordering::SeqCst) {
            let ended = self.lock().ended.clone().filter(|run| run.owns(id));
            return ended.or_else(|| self.bridge.run_of(id)).map_or(Ok(()), |run| run.admit(id));
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
