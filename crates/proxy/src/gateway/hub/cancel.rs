//! Owns the ends of requests that come before their answers: a client that gives up, a deadline.

use toolway_wire::Id;

use super::Hub;
use super::call::Origin;
use super::flight::FlightId;
use super::splice::Digits;
use crate::gateway::message::SessionId;
use crate::gateway::observe::Outcome;
use crate::gateway::translate;

impl Hub {
    /// A client gives a request up: the server hears of it at once, and nothing is owed any more.
    pub(super) fn cancel_request(&mut self, session: SessionId, request: &Id, reason: Option<&str>) {
        let is_it = |flight: &super::call::Flight| {
            flight.asker().is_some_and(|asker| asker.session == session && asker.id == *request)
        };
        let found = self.flights.iter().filter(|(_, flight)| is_it(flight));
        if let Some(id) = found.min_by_key(|(_, flight)| flight.sequence).map(|(id, _)| id) {
            self.cancel_flight(id, reason);
            return;
        }
        if !self.end_stream(session, request) {
            self.lists_cancel(session, request);
        }
    }

    pub(super) fn cancel_flight(&mut self, id: FlightId, reason: Option<&str>) {
        let waited = self.forget_waiting(id);
        let Some(flight) = self.flights.get(id) else { return };
        let (instance, sent) = (flight.instance, !waited);
        if let (Some(instance), true) = (instance, sent) {
            self.tell_cancelled(instance, id, reason);
        }
        self.withdraw_about(id);
        self.watch_end(id, Outcome::CANCELLED);
        if let Some(flight) = self.land(id)
            && let Origin::Client(asker) = &flight.origin
        {
            self.forget(asker);
        }
    }

    /// The server hears that nobody waits any more.
    pub(super) fn tell_cancelled(
        &mut self,
        instance: crate::gateway::upstream::UpstreamId,
        id: FlightId,
        reason: Option<&str>,
    ) {
        if self.era(instance).is_some() {
            self.note(instance, translate::cancelled(Digits::of(id.0).as_bytes(), reason));
        }
    }

    /// A request that waits for its server waits no more; true: it did.
    fn forget_waiting(&mut self, id: FlightId) -> bool {
        let instance = self.flights.get(id).and_then(|flight| flight.instance);
        let Some(instance) = instance.and_then(|instance| self.instances.get_mut(&instance)) else {
            return false;
        };
        let before = instance.waiting.len();
        let mut bytes = 0;
        instance.waiting.retain(|waiting| {
            let stays = waiting.flight != id;
            bytes += if stays { waiting.message.content.len() } else { 0 };
            stays
        });
        instance.waiting_bytes = bytes;
        instance.waiting.len() < before
    }

    /// A deadline is over: the client gets an error that names it, the server hears of it.
    pub(super) fn expire(&mut self, id: FlightId, reason: &str) {
        let waited = self.forget_waiting(id);
        let Some(flight) = self.flights.get(id) else { return };
        let (instance, hub) = (flight.instance, matches!(flight.origin, Origin::Hub));
        let name = instance.map(|instance| self.name_of(instance)).unwrap_or_default();
        if let Some(instance) = instance
            && !waited
        {
            self.tell_cancelled(instance, id, Some(reason));
        }
        if hub {
            self.land(id);
            return;
        }
        self.watch_end(id, Outcome::TIMEOUT);
        let text = format!("server {name:?} timed out: {reason}");
        self.fail_flight(id, toolway_wire::UPSTREAM_ERROR, &text);
    }
}
