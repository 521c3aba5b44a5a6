//! Owns the deadlines of a run's calls: one sleeping task, which wakes for the first of them. A call that is answered in
//! time costs it nothing.

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::Run;
use crate::calls::failed;

impl Run {
    /// Starts it. It ends with the run, whether that is disposed of or only dropped.
    pub(super) fn start_clock(&self) {
        let run = Arc::downgrade(&self.0);
        let (disposed, called) = (self.0.disposed.clone(), Arc::clone(&self.0.clock));
        let clock = async move {
            loop {
                let Some(inner) = run.upgrade() else { return };
                let alarm = Self(inner).expire(Instant::now());
                let rest = async {
                    match alarm {
                        Some(alarm) => sleep_until(alarm).await,
                        None => called.notified().await,
                    }
                };
                tokio::select! {
                    () = rest => {}
                    () = disposed.cancelled() => return,
                }
            }
        };
        self.0.tasks.spawn_on(clock, &self.0.runtime);
    }

    /// Rejects what has expired, and gives the time at which to look again; without one there are no calls.
    fn expire(&self, now: Instant) -> Option<Instant> {
        let (ended, reason, alarm) = {
            let mut state = self.lock();
            let ended = state.calls.expire(now);
            state.alarm = state.calls.next_deadline();
            let reason = if ended.is_empty() { String::new() } else { state.calls.deadline_reason() };
            (ended, reason, state.alarm)
        };
        for ended in &ended {
            self.end_with(ended, failed(reason.clone()));
        }
        self.pump();
        alarm
    }
}
