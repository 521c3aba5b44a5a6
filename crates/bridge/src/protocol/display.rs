//! Owns the display of what the agent's own tools did: what the host feeds in, and what it is to show.

use tokio::time::Instant;

use super::connection::Connection;

/// What is shown, and recorded, in all sessions.
#[derive(Debug, Default)]
pub(super) struct Display {}

impl Display {
    pub(super) fn forget(&mut self, session: &str) {
        let _ = (session, &self);
    }

    pub(super) fn next_time(&self) -> Option<Instant> {
        None
    }
}

impl Connection {
    pub(super) fn display_on_time(&mut self, now: Instant) {
        let _ = (now, &self);
    }
}
