//! Owns the memory of a run's MCP request ids: which were seen, and which were cancelled before they came. Bounded.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use toolway_wire::Id;

use super::Origin;

/// Requests that are remembered.
const SEEN: usize = 4096;
/// Cancellations that wait for their request.
const EARLY: usize = 64;
/// Requests other than calls that are remembered.
const OTHERS: usize = 64;
/// How long they wait.
const EARLY_FOR: Duration = Duration::from_secs(5);

/// What is remembered of requests.
#[derive(Debug, Default)]
pub(super) struct Seen {
    known: HashSet<Origin>,
    order: VecDeque<Origin>,
    early: VecDeque<(Origin, Instant)>,
    /// Requests that are no calls, and answered already.
    others: VecDeque<Origin>,
}

impl Seen {
    /// A request came. `true`: it had been cancelled before it came.
    pub(super) fn request(&mut self, origin: &Origin, now: Instant) -> bool {
        self.early.retain(|(_, until)| *until > now);
        let cancelled = self.early.iter().position(|(early, _)| early == origin);
        if self.known.insert(origin.clone()) {
            self.order.push_back(origin.clone());
            if self.order.len() > SEEN
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        cancelled.and_then(|at| self.early.remove(at)).is_some()
    }

    /// A request came that is no call: it is answered at once, and cannot be cancelled.
    pub(super) fn other(&mut self, origin: Origin) {
        self.early.retain(|(early, _)| *early != origin);
        self.others.push_back(origin);
        if self.others.len() > OTHERS {
            self.others.pop_front();
        }
    }

    /// A cancellation came for a request that does not wait. If it was never seen, it may be on its way.
    pub(super) fn cancelled(&mut self, origin: Origin, now: Instant) {
        if self.known.contains(&origin) || self.others.contains(&origin) {
            return;
        }
        self.early.push_back((origin, now + EARLY_FOR));
        if self.early.len() > EARLY {
            self.early.pop_front();
        }
    }

    /// A request of that id was seen, whatever its session.
    pub(super) fn knows(&self, id: &Id) -> bool {
        self.order.iter().rev().any(|origin| origin.request == *id)
    }
}
