//! Owns what observers are told of: requests that have ended, states, clients that come and go. Only where somebody
//! listens is anything made for it.

use toolway_wire::find::Step;

use super::call::{Flight, Origin};
use super::{Hub, splice};
use crate::gateway::message::{Message, SessionId};
use crate::gateway::observe::{CallRecord, Outcome};
use crate::gateway::translate::ClientFacts;

/// What is noted of a request for its record.
#[derive(Debug)]
pub(super) struct Noted {
    began: tokio::time::Instant,
    request_bytes: u64,
    /// As the server gave it.
    pub(super) response_bytes: u64,
    traceparent: Option<String>,
}

impl Hub {
    /// Notes what the record of a request needs; `None`: nobody listens.
    pub(super) fn noted(&self, message: &Message) -> Option<Box<Noted>> {
        if !self.observer.is_on() {
            return None;
        }
        let path = [Step::Key("params"), Step::Key("_meta"), Step::Key("traceparent")];
        let traceparent = message.content.bytes().and_then(|bytes| splice::text(bytes, &path));
        let request_bytes = message.content.len();
        Some(Box::new(Noted { began: self.now, request_bytes, response_bytes: 0, traceparent }))
    }

    /// A request has ended.
    pub(super) fn observe(&self, flight: &Flight, outcome: Outcome, code: Option<i64>) {
        let Some(noted) = &flight.noted else { return };
        let (session, facts) = match &flight.origin {
            Origin::Client(asker) => (asker.session, asker.modern.as_ref().map(|facts| &facts.client)),
            Origin::Parked(session) => (*session, None),
            Origin::Hub => return,
        };
        let client = self.client_name(session, facts);
        let server = flight.instance.map(|instance| self.name_of(instance)).unwrap_or_default();
        self.observer.call_finished(&CallRecord {
            session: session.0,
            client: &client,
            server: &server,
            method: &flight.method,
            target: flight.tool.as_deref().or(flight.uri.as_deref()).unwrap_or_default(),
            request_bytes: noted.request_bytes,
            response_bytes: noted.response_bytes,
            duration: self.now.saturating_duration_since(noted.began),
            outcome,
            code,
            traceparent: noted.traceparent.as_deref(),
        });
    }

    /// Name and version that a client gave.
    fn client_name(&self, session: SessionId, facts: Option<&ClientFacts>) -> String {
        let facts = facts.or_else(|| self.sessions.get(&session).and_then(|session| session.client.as_ref()));
        let Some(info) = facts.and_then(|facts| facts.client_info.as_deref()) else { return String::new() };
        let text = |name| splice::text(info, &[Step::Key(name)]).unwrap_or_default();
        format!("{} {}", text("name"), text("version")).trim().chars().take(200).collect()
    }

    /// What a server is now, as numbers show it.
    pub(super) fn observe_state(&self, number: usize) {
        if !self.observer.is_on() {
            return;
        }
        if let Some(server) = self.servers.get(number) {
            self.observer.server_state(&server.name, Some(self.state_of(number).name()));
        }
    }
}
