//! Owns the way of a request to a server: which copy has it, under which id, and in which era.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use toolway_transport::{Members, Outbound, Payload};
use toolway_wire::era::{Era, ProtocolVersion};
use toolway_wire::{Id, Kind, UPSTREAM_ERROR};

use super::call::{Flight, Origin, Round, method_name};
use super::flight::{Deadline, FlightId};
use super::requests::rescan;
use super::server::Waiting;
use super::session::{Asker, Session};
use super::splice::{self, Digits};
use super::{Effect, Hub};
use crate::gateway::message::Message;
use crate::gateway::translate::{self, ClientFacts};
use crate::gateway::upstream::UpstreamId;

/// Requests that may wait for one server to come up, and their bytes.
const WAITING: usize = 4096;
const WAITING_BYTES: u64 = 64 << 20;

/// What a request is for.
#[derive(Debug)]
pub(super) struct Target {
    /// Number of the server.
    pub(super) server: usize,
    /// The tool's own name, for what the guard notes.
    pub(super) tool: Option<Arc<str>>,
    /// What becomes of `params.name`: a JSON string.
    pub(super) rename: Option<Bytes>,
}

/// Another `params.name`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rename<'a> {
    /// As a JSON string.
    json: &'a [u8],
    /// As text, where it is at hand.
    own: Option<&'a str>,
}

impl Hub {
    /// A client's request goes to a server, or waits until that is up.
    pub(super) fn deliver(&mut self, target: Target, asker: Asker, message: Message) {
        let instance = match self.instance_for(target.server, asker.session) {
            Ok(instance) => instance,
            Err(reason) => {
                self.try_again(target.server);
                self.fail(&asker, UPSTREAM_ERROR, &reason);
                return;
            }
        };
        if asker.modern.is_some() && self.call_again(&asker, &message) {
            return;
        }
        let method = message.envelope.method().unwrap_or_default();
        let uri = if method == "prompts/get" { message.envelope.name() } else { message.envelope.uri() };
        let Some(state) = self.instances.get(&instance) else { return };
        let timeouts = state.config.timeouts;
        self.sequence += 1;
        let flight = Flight {
            origin: Origin::Client(asker),
            instance: Some(instance),
            method: method_name(method),
            tool: target.tool,
            uri: uri.map(Into::into),
            token: None,
            deadline: Deadline::new(timeouts.call_idle, timeouts.call_max, self.now),
            sequence: self.sequence,
            round: None,
            answered: None,
            watched: self.watch(&message),
        };
        let Some(flight) = self.take_off(flight) else { return };
        if self.is_up(instance) {
            self.send(instance, flight, message, target.rename.as_deref());
        } else {
            self.wait_for(instance, Waiting { flight, message, rename: target.rename });
        }
    }

    fn is_up(&self, instance: UpstreamId) -> bool {
        self.instances.get(&instance).is_some_and(|instance| instance.negotiated.is_some())
    }

    /// Counts a request in; `None`: there is no room, and the client was told.
    pub(super) fn take_off(&mut self, flight: Flight) -> Option<FlightId> {
        if self.flights.len() >= 1 << 20 {
            if let Origin::Client(asker) = &flight.origin {
                self.fail(asker, UPSTREAM_ERROR, "too many requests in flight");
            }
            return None;
        }
        if let Some(instance) = flight.instance.and_then(|instance| self.instances.get_mut(&instance)) {
            instance.in_flight += 1;
        }
        self.sweep_by(flight.deadline.end());
        self.flights.insert(flight)
    }

    /// A request may be over by then.
    pub(super) fn sweep_by(&mut self, end: tokio::time::Instant) {
        if self.sweep_at.is_none_or(|at| end < at) {
            self.sweep_at = Some(end);
        }
    }

    /// The server is not up yet: it is woken, and the request waits.
    fn wait_for(&mut self, instance: UpstreamId, waiting: Waiting) {
        if let Some(flight) = self.flights.get_mut(waiting.flight) {
            let timeouts = self.instances.get(&instance).map(|instance| instance.config.timeouts);
            // The start has its own bound, and says more when it fails.
            let startup = timeouts.map(|timeouts| timeouts.startup + timeouts.list).unwrap_or_default();
            flight.deadline.moved = self.now + startup;
        }
        let Some(state) = self.instances.get_mut(&instance) else { return };
        let bytes = waiting.message.content.len();
        if state.waiting.len() >= WAITING || state.waiting_bytes + bytes > WAITING_BYTES {
            let text = format!("too many calls wait for server {:?}, which is starting", state.name);
            self.fail_flight(waiting.flight, UPSTREAM_ERROR, &text);
            return;
        }
        state.waiting_bytes += bytes;
        state.waiting.push_back(waiting);
        self.effects.push(Effect::Wake(instance));
    }

    /// Takes what waits for a server.
    pub(super) fn take_waiting(&mut self, instance: UpstreamId) -> VecDeque<Waiting> {
        let Some(state) = self.instances.get_mut(&instance) else { return VecDeque::new() };
        state.waiting_bytes = 0;
        std::mem::take(&mut state.waiting)
    }

    /// The server is up: what waited for it goes.
    pub(super) fn send_waiting(&mut self, instance: UpstreamId) {
        for Waiting { flight, message, rename } in self.take_waiting(instance) {
            let Some(state) = self.flights.get_mut(flight) else { continue };
            state.deadline.moved = self.now;
            let end = state.deadline.end();
            self.sweep_by(end);
            self.send(instance, flight, message, rename.as_deref());
        }
    }

    /// Sends a request that is counted in, in the era of the server.
    pub(super) fn send(
        &mut self,
        instance: UpstreamId,
        id: FlightId,
        message: Message,
        rename: Option<&[u8]>,
    ) {
        let Some(modern_server) = self.instances.get(&instance).map(super::server::Instance::is_modern)
        else {
            return;
        };
        let Some(flight) = self.flights.get(id) else { return };
        if modern_server && flight.method == "resources/subscribe" {
            // It waited for the server to come up; there it belongs to a stream.
            self.follow(instance);
            if let Some(Flight { origin: Origin::Client(asker), .. }) = self.land(id) {
                self.empty(&asker);
            }
            return;
        }
        let message = match (flight.is_modern(), modern_server) {
            (true, true) | (false, false) => Some(message),
            (true, false) => {
                message.content.bytes().and_then(|bytes| rescan(translate::request_to_legacy(bytes).into()))
            }
            (false, true) => {
                let (client, level) = self.facts_for(flight);
                let level = level.and_then(super::logging::level_name);
                message
                    .content
                    .bytes()
                    .and_then(|bytes| rescan(translate::request_to_modern(bytes, &client, level).into()))
            }
        };
        let token = matches!(&*flight.method, "tools/call" | "prompts/get" | "resources/read");
        let keeps = modern_server && !flight.is_modern() && translate::may_ask(&flight.method);
        let rename = rename.map(|json| Rename { json, own: flight.tool.as_deref() });
        let sent = message.and_then(|message| outbound(message, id, rename, token));
        let Some((outbound, own_token)) = sent else {
            self.fail_flight(
                id,
                toolway_wire::INVALID_PARAMS,
                "invalid params: the request has no params object",
            );
            return;
        };
        if let Some(flight) = self.flights.get_mut(id) {
            if own_token.is_some() {
                flight.token = own_token;
            }
            if keeps
                && flight.round.is_none()
                && let Payload::Bytes(bytes) = &outbound.payload
            {
                let (request, state) = (bytes.clone(), None);
                let round = Round::Again { request, times: 0, state, open: 0, responses: Vec::new() };
                flight.round = Some(Box::new(round));
            }
        }
        self.effects.push(Effect::ToServer(instance, outbound));
    }

    /// What a modern server is told of a legacy client, and the level of log messages that it wants.
    fn facts_for(&self, flight: &Flight) -> (ClientFacts, Option<u8>) {
        let session = flight.asker().and_then(|asker| self.sessions.get(&asker.session));
        let facts = session.and_then(|session| session.client.clone()).unwrap_or_else(hub_facts);
        let facts = ClientFacts { version: ProtocolVersion::V2026_07_28, ..facts };
        (facts, session.and_then(|session: &Session| session.level))
    }

    /// A message of the hub's own for a server.
    pub(super) fn note(&mut self, instance: UpstreamId, bytes: impl Into<Bytes>) {
        if let Some(message) = rescan(bytes.into()) {
            self.forward(instance, message);
        }
    }

    /// A message for a server, as it is.
    pub(super) fn forward(&mut self, instance: UpstreamId, message: Message) {
        if let Some(bytes) = message.content.bytes() {
            let payload = Payload::Bytes(bytes.clone());
            let outbound = Outbound { payload, members: Members::One(message.envelope) };
            self.effects.push(Effect::ToServer(instance, outbound));
        }
    }

    /// Sends a request of the hub's own; its answer is only looked at. `make` is given the id.
    pub(super) fn ask_own(
        &mut self,
        instance: UpstreamId,
        method: &'static str,
        deadline: Option<Deadline>,
        make: impl FnOnce(&[u8]) -> Vec<u8>,
    ) -> Option<FlightId> {
        let timeouts = self.instances.get(&instance)?.config.timeouts;
        self.sequence += 1;
        let deadline = deadline.unwrap_or_else(|| Deadline::new(timeouts.list, timeouts.list, self.now));
        let flight = Flight {
            origin: Origin::Hub,
            instance: Some(instance),
            method: method.into(),
            tool: None,
            uri: None,
            token: None,
            deadline,
            sequence: self.sequence,
            round: None,
            answered: None,
            watched: None,
        };
        let id = self.take_off(flight)?;
        let bytes = make(Digits::of(id.0).as_bytes());
        self.note(instance, bytes);
        Some(id)
    }

    /// Which era the server speaks, while it is up.
    pub(super) fn era(&self, instance: UpstreamId) -> Option<Era> {
        self.instances.get(&instance)?.era()
    }
}

/// What the gateway says of itself where no client is behind a request.
pub(super) fn hub_facts() -> ClientFacts {
    let info = format!("{{\"name\":\"toolway\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"));
    ClientFacts {
        version: ProtocolVersion::V2026_07_28,
        capabilities: b"{}".to_vec(),
        client_info: Some(info.into_bytes()),
    }
}

/// The request as the server gets it, and the client's own progress token.
pub(super) fn outbound(
    message: Message,
    id: FlightId,
    rename: Option<Rename<'_>>,
    token: bool,
) -> Option<(Outbound, Option<Box<[u8]>>)> {
    let bytes = message.content.bytes()?;
    let own_id = Id::from_number(id.0);
    let id = own_id.raw();
    if rename.is_none() && !token {
        let changed = splice::with_id(bytes, &message.envelope, id)?;
        let message = rescan(changed.into())?;
        let payload = Payload::Bytes(message.content.bytes()?.clone());
        return Some((Outbound { payload, members: Members::One(message.envelope) }, None));
    }
    let json = rename.map(|rename| rename.json);
    let made = splice::readdress(bytes, &message.envelope, id, json, token)?;
    debug_assert_eq!(message.envelope.kind(), Kind::Request);
    let decoded;
    let name = match rename {
        Some(Rename { json, own: None }) => {
            decoded = toolway_wire::find::string(json, 0..json.len());
            decoded.as_deref()
        }
        Some(Rename { own, .. }) => own,
        None => None,
    };
    let envelope = message.envelope.readdressed(own_id, name, made.params);
    Some((
        Outbound { payload: Payload::Bytes(made.bytes.into()), members: Members::One(envelope) },
        made.token,
    ))
}
