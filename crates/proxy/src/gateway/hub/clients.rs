//! Owns the coming and going of clients, and the first look at what they send.

use toolway_transport::Payload;
use toolway_wire::{
    Envelope, INVALID_REQUEST, Id, IdField, Kind, PARSE_ERROR, UPSTREAM_ERROR, error_response,
};

use super::batches::Batch;
use super::event::ClientEvent;
use super::session::{Asker, Session};
use super::{Hub, call::Origin};
use crate::gateway::message::{ClientMessage, Message, SessionId};

/// The longest id of a request, in characters: an answer must have room beside it.
const ID_CHARS: usize = 500;
/// Requests of one client that may be in flight at the same time.
const IN_FLIGHT: usize = 16_384;

impl Hub {
    pub(super) fn client(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Opened { session, sink, options } => {
                // A front that is gone again already was swept before it was known.
                if !self.ending && !sink.is_closed() {
                    self.sessions.insert(session, Session::new(sink, options));
                    self.observer.session_opened();
                }
            }
            ClientEvent::Message { session, message } => self.client_message(session, message, None),
            ClientEvent::Batch { session, messages } => self.client_batch(session, messages),
            ClientEvent::Dropped { session, request } => {
                self.cancel_request(
                    session,
                    &request,
                    Some("the client has closed the stream of this request"),
                );
            }
            ClientEvent::Closed { session } => self.close_session(session),
        }
    }

    fn client_batch(&mut self, session: SessionId, messages: Vec<Message>) {
        let first = messages.iter().find(|message| message.envelope.kind() == Kind::Request);
        let Some(first) = first.and_then(|message| message.envelope.id().cloned()) else {
            for message in messages {
                self.client_message(session, message, None);
            }
            return;
        };
        self.batches_so_far += 1;
        let number = self.batches_so_far;
        let requests = messages.iter().filter(|message| message.envelope.kind() == Kind::Request).count();
        self.batches.insert(number, Batch::new(session, first, requests));
        for message in messages {
            self.client_message(session, message, Some(number));
        }
    }

    /// One message of a client.
    pub(super) fn client_message(&mut self, session: SessionId, message: Message, batch: Option<u64>) {
        let Some(state) = self.sessions.get_mut(&session) else { return };
        let kind = message.envelope.kind();
        if message.envelope.is_lax() {
            let text = "parse error: NaN, Infinity and raw control characters in strings are not JSON";
            self.refuse(session, &message.envelope, batch, PARSE_ERROR, text);
            return;
        }
        match kind {
            Kind::Request => {
                let id = match admitted(&message.envelope) {
                    Ok(id) => id.clone(),
                    Err(reason) => {
                        self.refuse(session, &message.envelope, batch, INVALID_REQUEST, reason);
                        return;
                    }
                };
                if state.in_flight >= IN_FLIGHT {
                    let text = format!("more than {IN_FLIGHT} requests at the same time");
                    self.refuse(session, &message.envelope, batch, UPSTREAM_ERROR, &text);
                    return;
                }
                state.in_flight += 1;
                self.request(Asker { session, id, batch, modern: None }, message);
            }
            Kind::Notification => self.client_notice(session, message),
            Kind::Response | Kind::ErrorResponse => self.client_answer(session, &message),
            Kind::Fault if message.envelope.id().is_some() => self.client_answer(session, &message),
            Kind::Fault | Kind::Stranger => {
                let text = "invalid request: neither a request nor an answer of JSON-RPC 2.0";
                self.refuse(session, &message.envelope, None, INVALID_REQUEST, text);
            }
        }
    }

    /// An error for a message that goes no further.
    fn refuse(&mut self, session: SessionId, envelope: &Envelope, batch: Option<u64>, code: i64, text: &str) {
        let id = envelope.id().filter(|id| id.raw().len() <= ID_CHARS && code != PARSE_ERROR);
        let bytes = error_response(id.map_or(b"null".as_slice(), Id::raw), code, text, None);
        let request = envelope.kind() == Kind::Request;
        if let Some(batch) = batch.filter(|_| request) {
            self.batch_answer(batch, &bytes);
            return;
        }
        let about = envelope.id().cloned();
        let is_answer = about.is_some() && request;
        let payload = Payload::Bytes(bytes.into());
        self.send_client(session, ClientMessage { about, is_answer, payload });
    }

    /// The answer to a client's request: nothing more comes for it.
    pub(super) fn answer(&mut self, asker: &Asker, payload: impl Into<AnswerBytes>) {
        if let Some(session) = self.sessions.get_mut(&asker.session) {
            session.in_flight = session.in_flight.saturating_sub(1);
        }
        let AnswerBytes(payload) = payload.into();
        match (asker.batch, payload) {
            (Some(batch), Payload::Bytes(bytes)) => self.batch_answer(batch, &bytes),
            (_, payload) => {
                let about = Some(asker.id.clone());
                self.send_client(asker.session, ClientMessage { about, is_answer: true, payload });
            }
        }
    }

    /// An error in answer to a client's request.
    pub(super) fn fail(&mut self, asker: &Asker, code: i64, text: &str) {
        let bytes = error_response(asker.id.raw(), code, text, None);
        self.answer(asker, bytes);
    }

    /// Nothing is owed any more for a client's request.
    pub(super) fn forget(&mut self, asker: &Asker) {
        if let Some(session) = self.sessions.get_mut(&asker.session) {
            session.in_flight = session.in_flight.saturating_sub(1);
        }
        if let Some(batch) = asker.batch {
            self.batch_less(batch);
        }
    }

    pub(super) fn sweep_sessions(&mut self) {
        let closed: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.sink.is_closed())
            .map(|(session, _)| *session)
            .collect();
        for session in closed {
            self.close_session(session);
        }
    }

    fn close_session(&mut self, session: SessionId) {
        let Some(state) = self.sessions.remove(&session) else { return };
        self.observer.session_closed();
        let flights = self.flights.ids(|flight| match &flight.origin {
            Origin::Client(asker) => asker.session == session,
            Origin::Parked(_) | Origin::Hub => false,
        });
        for flight in flights {
            self.cancel_flight(flight, Some("the client is gone"));
        }
        if !state.options.passing {
            let flights = &self.flights;
            let held = self.held.take_if(|id| {
                let origin = flights.get(*id).map(|flight| &flight.origin);
                matches!(origin, Some(Origin::Parked(parked)) if *parked == session)
            });
            for flight in held {
                self.give_up_held(flight);
            }
        }
        self.batches.retain(|_, batch| batch.session() != session);
        self.lists.forget(session);
        self.withdraw_questions(session);
        let mut own: Vec<_> = state.own.values().copied().collect();
        own.sort_unstable();
        for instance in own {
            // A copy that was shared before it proved to keep state has other users, or will have.
            if self.instances.get(&instance).is_some_and(|instance| instance.owner == Some(session)) {
                self.stop_instance(instance);
            }
        }
        for uri in &state.subscriptions {
            self.unsubscribed(uri);
        }
        for (_, filter) in &state.listens {
            for uri in &filter.uris {
                self.unsubscribed(uri);
            }
        }
        self.levels_changed();
    }
}

/// The bytes of an answer.
pub(super) struct AnswerBytes(pub(super) Payload);

impl From<Vec<u8>> for AnswerBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Payload::Bytes(bytes.into()))
    }
}

impl From<bytes::Bytes> for AnswerBytes {
    fn from(bytes: bytes::Bytes) -> Self {
        Self(Payload::Bytes(bytes))
    }
}

/// The id of a request, if it is one that a client may use.
fn admitted(request: &Envelope) -> Result<&Id, &'static str> {
    match request.id_field() {
        IdField::Value(id) if id.is_null() => Err("invalid request: the id of a request is not null"),
        IdField::Value(id) if id.raw().len() > ID_CHARS && id.chars() > ID_CHARS => {
            Err("invalid request: the id has more than 500 characters")
        }
        IdField::Value(id) => Ok(id),
        IdField::TooLong => Err("invalid request: the id has more than 500 characters"),
        IdField::WrongType | IdField::Absent => Err("invalid request: the id is a string or a number"),
    }
}
