//! Owns what observers hear of requests and servers: when a request began, how it ended, in which state servers are.
//! Decides nothing.

use tokio::time::Instant;
use toolway_wire::find::{Step, find, string};
use toolway_wire::{Kind, UPSTREAM_ERROR};

use super::Hub;
use super::call::Flight;
use super::flight::FlightId;
use super::session::Asker;
use crate::gateway::message::{Message, SessionId};
use crate::gateway::observe::{CallRecord, Observer, Outcome};

/// What is remembered of a request that somebody will hear of.
#[derive(Debug)]
pub(super) struct Watched {
    began: Instant,
    request_bytes: u64,
    response_bytes: u64,
    traceparent: Option<String>,
    outcome: Outcome,
    code: Option<i64>,
}

impl Hub {
    /// From now on this one hears what happens.
    pub(in crate::gateway) fn observed_by(mut self, observer: Observer) -> Self {
        self.observer = observer;
        self
    }

    /// A request of a client goes to a server.
    pub(super) fn watch(&self, message: &Message) -> Option<Box<Watched>> {
        if !self.observer.is_on() {
            return None;
        }
        let path = [Step::Key("params"), Step::Key("_meta"), Step::Key("traceparent")];
        let bytes = message.content.bytes().filter(|_| self.observer.follows_traces());
        let traceparent = bytes.and_then(|bytes| string(bytes, find(bytes, &path)?));
        Some(Box::new(Watched {
            began: self.now,
            request_bytes: message.content.len(),
            response_bytes: 0,
            traceparent,
            outcome: Outcome::LOST,
            code: None,
        }))
    }

    /// Its server has answered.
    pub(super) fn watch_answer(&mut self, id: FlightId, message: &Message) {
        let Some(watched) = self.flights.get_mut(id).and_then(|flight| flight.watched.as_deref_mut()) else {
            return;
        };
        watched.response_bytes += message.content.len();
        watched.code = None;
        watched.outcome = match message.envelope.kind() {
            Kind::ErrorResponse => {
                let code = message
                    .content
                    .bytes()
                    .and_then(|bytes| bytes.get(find(bytes, &[Step::Key("error"), Step::Key("code")])?));
                watched.code = code.and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
                Outcome::ERROR
            }
            _ if message.envelope.is_error() == Some(true) => Outcome::TOOL_ERROR,
            _ => Outcome::OK,
        };
    }

    /// It ends otherwise than by its server's answer.
    pub(super) fn watch_end(&mut self, id: FlightId, outcome: Outcome) {
        if let Some(watched) = self.flights.get_mut(id).and_then(|flight| flight.watched.as_deref_mut()) {
            watched.outcome = outcome;
        }
    }

    /// It ends with an error of ours; a deadline has said so before.
    pub(super) fn watch_failure(&mut self, id: FlightId, code: i64) {
        if let Some(watched) = self.flights.get_mut(id).and_then(|flight| flight.watched.as_deref_mut()) {
            watched.code = Some(code);
            if watched.outcome != Outcome::TIMEOUT {
                watched.outcome = if code == UPSTREAM_ERROR { Outcome::LOST } else { Outcome::ERROR };
            }
        }
    }

    /// It is over.
    pub(super) fn tell_observer(&self, flight: &Flight) {
        let Some(watched) = &flight.watched else { return };
        let Some(session) = super::answers::session_of(flight) else { return };
        let server = flight.instance.and_then(|instance| self.instances.get(&instance));
        let client = self.client_of(flight.asker(), session);
        let target =
            if flight.method == "prompts/get" { flight.uri.as_deref() } else { flight.tool.as_deref() };
        self.observer.call_finished(&CallRecord {
            session: session.0,
            client: &client,
            server: server.map_or("", |server| &server.name),
            method: &flight.method,
            target: target.unwrap_or_default(),
            request_bytes: watched.request_bytes,
            response_bytes: watched.response_bytes,
            duration: self.now.saturating_duration_since(watched.began),
            outcome: watched.outcome,
            code: watched.code,
            traceparent: watched.traceparent.as_deref(),
        });
    }

    /// Name and version that a client gave itself.
    fn client_of(&self, asker: Option<&Asker>, session: SessionId) -> String {
        let modern = asker.and_then(|asker| asker.modern.as_ref()).map(|modern| &modern.client);
        let said = || self.sessions.get(&session).and_then(|session| session.client.as_ref());
        let info = modern.or_else(said).and_then(|facts| facts.client_info.as_deref());
        info.map(client_name).unwrap_or_default()
    }

    /// States of servers may be others now.
    pub(in crate::gateway) fn tell_states(&self) {
        let named = self.servers.iter().enumerate().filter(|(_, server)| !server.name.is_empty());
        let states: Vec<(&str, &'static str)> =
            named.map(|(number, server)| (&*server.name, self.state_of(number).name())).collect();
        self.observer.server_states(&states);
    }
}

/// `claude-code 2.1` of an `Implementation`.
fn client_name(info: &[u8]) -> String {
    let text = |name| find(info, &[Step::Key(name)]).and_then(|at| string(info, at)).unwrap_or_default();
    format!("{} {}", text("name"), text("version")).trim().to_owned()
}
