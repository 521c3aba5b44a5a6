//! Owns time: requests whose deadline is over, changes that were gathered, calls that were held open too long.

use super::Hub;
use super::flight::FlightId;

impl Hub {
    /// The time that was named has come.
    pub(super) fn tick(&mut self) {
        if self.sweep_at.is_some_and(|at| at <= self.now) {
            self.sweep_flights();
        }
        if self.lists.wake_at().is_some_and(|at| at <= self.now) {
            self.lists_tick();
        }
        while let Some(flight) = self.held.expired(self.now) {
            self.give_up_held(flight);
        }
    }

    /// All requests are looked at, which happens about once in the shortest deadline.
    fn sweep_flights(&mut self) {
        let mut over: Vec<(u64, FlightId, String)> = Vec::new();
        let mut next = None;
        for (id, flight) in self.flights.iter() {
            if let Some(reason) = flight.deadline.over(self.now) {
                over.push((flight.sequence, id, reason));
                continue;
            }
            let end = flight.deadline.end();
            next = Some(next.map_or(end, |at: tokio::time::Instant| at.min(end)));
        }
        self.sweep_at = next;
        over.sort_unstable_by_key(|(sequence, _, _)| *sequence);
        for (_, id, reason) in over {
            self.expire(id, &reason);
        }
    }
}
