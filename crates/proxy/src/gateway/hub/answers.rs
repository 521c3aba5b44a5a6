//! Owns the way of a server's answer to the client that waits: what passes, what the guard replaces, what another era
//! needs said otherwise.

use bytes::Bytes;
use toolway_guard::Action;
use toolway_transport::Payload;
use toolway_wire::{Envelope, Kind, UPSTREAM_ERROR, error_response};

use super::call::{Flight, Origin};
use super::flight::FlightId;
use super::requests::rescan;
use super::work::Work;
use super::{Effect, Hub, clients::AnswerBytes, splice};
use crate::gateway::message::{Content, Message, SessionId};
use crate::gateway::translate;
use crate::gateway::upstream::UpstreamId;

impl Hub {
    /// An answer of a server.
    pub(super) fn server_answer(&mut self, instance: UpstreamId, message: Message) {
        let id = message.envelope.id().and_then(splice::number).map(FlightId);
        let Some(id) = id else { return };
        // An answer to what was cancelled, or answered before, or asked of another server.
        let Some(flight) = self.flights.get(id).filter(|flight| flight.instance == Some(instance)) else {
            return;
        };
        if matches!(flight.origin, Origin::Hub) {
            self.own_answer(instance, id, &message);
            return;
        }
        if message.envelope.kind() == Kind::Fault {
            let why = if message.envelope.has_version() {
                "its answer has neither or both of result and error"
            } else {
                "its answer lacks \"jsonrpc\":\"2.0\""
            };
            let name = self.name_of(instance);
            let text = format!("server {name:?} broke the protocol: {why}");
            self.fail_flight(id, UPSTREAM_ERROR, &text);
            self.end_if_idle(instance);
            return;
        }
        self.watch_answer(id, &message);
        let message = self.with_exposed_uri(instance, id, message);
        let limit = self.instances.get(&instance).map_or(0, |instance| instance.plain_limit);
        let small = matches!(message.content, Content::Bytes(_)) && message.envelope.size().chars <= limit;
        if small {
            self.pass(instance, id, message);
        } else {
            self.guard(instance, id, message);
        }
    }

    /// A large answer, or one that a rule may be for.
    fn guard(&mut self, instance: UpstreamId, id: FlightId, message: Message) {
        let (Some(state), Some(flight)) = (self.instances.get(&instance), self.flights.get(id)) else {
            return;
        };
        let session = session_of(flight).and_then(|session| self.sessions.get(&session));
        let saved_as = session.map(|session| session.options.saved_as.as_str()).unwrap_or_default();
        let call = flight.call_info(&state.name, saved_as);
        let action = state.guard.action(&message.envelope, Some(&call));
        let work = match (action, message.content) {
            (Action::Pass, Content::Bytes(bytes)) => {
                let message = Message { content: Content::Bytes(bytes), envelope: message.envelope };
                self.pass(instance, id, message);
                return;
            }
            (Action::Pass, Content::Held(body)) => Work::Load { flight: id, body },
            (Action::Replace { shape, limit }, content) => {
                self.lists.saved = true;
                let guard = state.guard.clone();
                Work::Replace {
                    flight: id,
                    guard,
                    envelope: Box::new(message.envelope),
                    call,
                    shape,
                    limit,
                    content,
                }
            }
        };
        // The answer is there; what it takes now is not the server's time, and does not need the server any more.
        let modern = state.is_modern();
        if let Some(flight) = self.flights.get_mut(id) {
            flight.answered = Some(modern);
            flight.deadline.moved = self.now + flight.deadline.max;
            flight.deadline.began = flight.deadline.moved;
        }
        self.effects.push(Effect::Work(work));
    }

    /// An answer that the guard has seen.
    pub(super) fn pass(&mut self, instance: UpstreamId, id: FlightId, message: Message) {
        let Some(flight) = self.flights.get(id) else { return };
        let modern_server = flight
            .answered
            .unwrap_or_else(|| self.instances.get(&instance).is_some_and(super::server::Instance::is_modern));
        if flight.round.is_none() && flight.is_modern() == modern_server {
            self.reply(instance, id, &message);
            return;
        }
        if matches!(flight.origin, Origin::Parked(_)) {
            self.keep_answer(id, message);
            return;
        }
        if modern_server == flight.is_modern() {
            self.reply(instance, id, &message);
        } else if modern_server {
            if message.envelope.result_type() == Some("input_required") {
                self.ask_again(instance, id, &message);
                return;
            }
            self.reply_translated(instance, id, &message, |bytes, method, kind| match kind {
                Kind::ErrorResponse => translate::error_to_legacy(bytes, method),
                _ => translate::result_to_legacy(bytes, method),
            });
        } else {
            if message.envelope.kind() == Kind::ErrorResponse && self.url_round(id, &message) {
                return;
            }
            self.reply_translated(instance, id, &message, |bytes, method, kind| match kind {
                Kind::ErrorResponse => translate::error_to_modern(bytes),
                _ => translate::result_to_modern(bytes, method),
            });
        }
    }

    fn reply_translated(
        &mut self,
        instance: UpstreamId,
        id: FlightId,
        message: &Message,
        change: impl FnOnce(&[u8], &str, Kind) -> Vec<u8>,
    ) {
        let Some(flight) = self.flights.get(id) else { return };
        let Some(bytes) = message.content.bytes() else { return };
        let changed = change(bytes, &flight.method, message.envelope.kind());
        match rescan(changed.into()) {
            Some(message) => self.reply(instance, id, &message),
            None => self.fail_flight(id, UPSTREAM_ERROR, "the answer could not be translated"),
        }
    }

    /// The last step: the client's own id.
    fn reply(&mut self, instance: UpstreamId, id: FlightId, message: &Message) {
        let Some(flight) = self.land(id) else { return };
        let Origin::Client(asker) = &flight.origin else { return };
        if let Some(bytes) = message.content.bytes() {
            let bytes = match bytes_for_client(bytes, &message.envelope, asker.id.raw()) {
                Some(bytes) => bytes,
                None => {
                    error_response(asker.id.raw(), UPSTREAM_ERROR, "the answer has no place for an id", None)
                }
            };
            self.answer(asker, AnswerBytes(Payload::Bytes(bytes.into())));
        }
        self.note_answer(instance, &flight, message.envelope.kind());
    }

    /// Takes a request out that is over.
    pub(super) fn land(&mut self, id: FlightId) -> Option<Flight> {
        let flight = self.flights.remove(id)?;
        self.tell_observer(&flight);
        if let Some(instance) = flight.instance
            && let Some(state) = self.instances.get_mut(&instance)
        {
            state.in_flight = state.in_flight.saturating_sub(1);
            if state.retired && state.in_flight == 0 {
                self.end_if_idle(instance);
            }
        }
        Some(flight)
    }

    /// A request ends with an error of ours.
    pub(super) fn fail_flight(&mut self, id: FlightId, code: i64, text: &str) {
        self.fail_flight_with(id, code, text, None);
    }

    pub(super) fn fail_flight_with(&mut self, id: FlightId, code: i64, text: &str, data: Option<&str>) {
        if let Some(flight) = self.flights.get(id)
            && matches!(flight.origin, Origin::Parked(_))
        {
            let bytes = error_response(b"null", code, text, data);
            if let Some(message) = rescan(Bytes::from(bytes)) {
                self.keep_answer(id, message);
            }
            return;
        }
        self.watch_failure(id, code);
        let Some(flight) = self.land(id) else { return };
        self.withdraw_about(id);
        if let Origin::Client(asker) = &flight.origin {
            let bytes = error_response(asker.id.raw(), code, text, data);
            self.answer(asker, bytes);
        }
    }

    pub(super) fn name_of(&self, instance: UpstreamId) -> std::sync::Arc<str> {
        self.instances.get(&instance).map(|instance| instance.name.clone()).unwrap_or_default()
    }
}

/// The client behind a request, also where it does not wait at the moment.
pub(super) fn session_of(flight: &Flight) -> Option<SessionId> {
    match &flight.origin {
        Origin::Client(asker) => Some(asker.session),
        Origin::Parked(session) => Some(*session),
        Origin::Hub => None,
    }
}

/// MCP messages are UTF-8, and a client may break off at bytes that are not: they become U+FFFD.
fn bytes_for_client(bytes: &[u8], envelope: &Envelope, id: &[u8]) -> Option<Vec<u8>> {
    let changed = splice::with_id(bytes, envelope, id)?;
    if envelope.is_ascii() {
        return Some(changed);
    }
    Some(match String::from_utf8(changed) {
        Ok(text) => text.into_bytes(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes(),
    })
}
