//! Owns when an agent that nobody uses is let go. Pure.
//!
//! The window starts when the last turn let go of the agent and the last of its calls is settled, whichever is later,
//! and it starts whole. It is not a time limit for answers.

use std::time::Duration;

use tokio::time::Instant;

/// The idle clock of one agent.
#[derive(Debug)]
pub(super) struct Idle {
    window: Duration,
    leased: bool,
    pending: bool,
    since: Instant,
}

impl Idle {
    /// A clock that starts now.
    pub(super) fn new(window: Duration, now: Instant) -> Self {
        Self { window, leased: false, pending: false, since: now }
    }

    /// A turn holds the agent.
    pub(super) fn lease(&mut self) {
        self.leased = true;
    }

    /// The turn let go of it.
    pub(super) fn release(&mut self, now: Instant) {
        if std::mem::take(&mut self.leased) {
            self.since = now;
        }
    }

    /// How many of the agent's calls wait for the host. Only calls of this agent count.
    pub(super) fn pending(&mut self, calls: usize, now: Instant) {
        let was = std::mem::replace(&mut self.pending, calls > 0);
        if was && !self.pending {
            self.since = now;
        }
    }

    /// When the agent is to be let go, `None` while something holds it.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.leased && !self.pending).then(|| self.since + self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_mins(5);

    #[test]
    fn lesson_08_a_clean_up_that_was_due_during_a_lease_waits_a_whole_window_after_it() {
        let start = Instant::now();
        let mut idle = Idle::new(WINDOW, start);
        assert_eq!(idle.deadline(), Some(start + WINDOW));
        idle.lease();
        assert_eq!(idle.deadline(), None, "due or not: nothing happens during a lease");
        let end = start + WINDOW * 3;
        idle.release(end);
        assert_eq!(idle.deadline(), Some(end + WINDOW), "neither lost nor at once");
    }

    #[test]
    fn lesson_07_a_pending_call_holds_the_agent_and_its_settlement_starts_a_whole_window() {
        let start = Instant::now();
        let mut idle = Idle::new(WINDOW, start);
        idle.lease();
        idle.pending(1, start);
        idle.release(start);
        assert_eq!(idle.deadline(), None);
        let settled = start + WINDOW * 2;
        idle.pending(0, settled);
        assert_eq!(idle.deadline(), Some(settled + WINDOW));
    }

    #[test]
    fn the_later_of_settlement_and_lease_end_counts() {
        let start = Instant::now();
        let mut idle = Idle::new(WINDOW, start);
        idle.lease();
        idle.pending(2, start);
        idle.pending(0, start + WINDOW);
        assert_eq!(idle.deadline(), None, "the lease goes on");
        idle.release(start + WINDOW * 2);
        assert_eq!(idle.deadline(), Some(start + WINDOW * 3));
        idle.release(start + WINDOW * 9);
        idle.pending(0, start + WINDOW * 9);
        assert_eq!(idle.deadline(), Some(start + WINDOW * 3), "what is free already is not freed again");
    }
}
