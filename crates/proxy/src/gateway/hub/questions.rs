//! Owns what servers ask of clients (elicitation, sampling, roots): each question goes to the one client whose call it
//! belongs to, and its answer back to the server that asked.

use toolway_transport::Payload;
use toolway_wire::find::Step;
use toolway_wire::{Id, Kind, METHOD_NOT_FOUND, UPSTREAM_ERROR, error_response, push_string};

use super::call::{Origin, Question, Replies, method_name};
use super::flight::FlightId;
use super::splice::{self, Digits};
use super::{Hub, requests::rescan};
use crate::gateway::config::Share;
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::translate::{self, capability_for};
use crate::gateway::upstream::UpstreamId;

/// Questions that may be open at the same time.
const OPEN: usize = 4096;
/// Of these, questions of one server.
pub(super) const OPEN_EACH: usize = 256;

/// Who is to answer a question.
enum Answerer {
    /// A client whose call is in flight, in the legacy era.
    Call(SessionId, FlightId),
    /// The same in the modern era.
    Round(FlightId),
    /// A client, for no call.
    Client(SessionId),
    /// Nobody; why.
    Nobody(String),
}

impl Hub {
    /// A request of a server.
    pub(super) fn server_request(&mut self, instance: UpstreamId, message: &Message) {
        let Some(id) = message.envelope.id().cloned() else { return };
        let method = message.envelope.method().unwrap_or_default();
        if method == "ping" {
            self.note(instance, splice::result(id.raw(), b"{}"));
            return;
        }
        if method == "roots/list"
            && let Some(result) = self.configured_roots(instance)
        {
            self.note(instance, splice::result(id.raw(), &result));
            return;
        }
        let answerer = self.answerer(instance, method);
        if matches!(answerer, Answerer::Client(_) | Answerer::Nobody(_)) {
            self.keeps_state(instance, method);
        }
        match answerer {
            Answerer::Nobody(reason) => {
                if method == "roots/list"
                    && let Some(state) = self.instances.get_mut(&instance)
                {
                    state.lacks_roots = true;
                }
                let refusal = error_response(id.raw(), METHOD_NOT_FOUND, &reason, None);
                self.note(instance, refusal);
            }
            Answerer::Round(flight) => self.hold(instance, flight, id, message),
            Answerer::Call(session, flight) => self.question(instance, session, Some(flight), &id, message),
            Answerer::Client(session) => self.question(instance, session, None, &id, message),
        }
    }

    /// The roots that the settings give a server, as a result.
    fn configured_roots(&self, instance: UpstreamId) -> Option<Vec<u8>> {
        let roots = self.instances.get(&instance)?.config.roots.as_ref()?;
        let mut out = b"{\"roots\":[".to_vec();
        for (index, root) in roots.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"uri\":");
            push_string(root, &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        Some(out)
    }

    /// Whom a server's question is for: the client with the most recent call in flight there that can answer it.
    fn answerer(&mut self, instance: UpstreamId, method: &str) -> Answerer {
        let capability = capability_for(method);
        let mut calls: Vec<(u64, FlightId)> = Vec::new();
        for (id, flight) in self.flights.iter().filter(|(_, flight)| flight.instance == Some(instance)) {
            if !matches!(flight.origin, Origin::Hub) {
                calls.push((flight.sequence, id));
            }
        }
        calls.sort_unstable_by(|one, other| other.cmp(one));
        if self.is_crowded(instance, &calls) {
            let text = "calls of several clients are in flight, and it is not known whose question this is";
            return Answerer::Nobody(format!("{method}: {text}"));
        }
        let can = |session: &SessionId| {
            let state = self.sessions.get(session);
            state.is_some_and(|state| capability.is_none_or(|capability| state.declares(capability)))
        };
        for (_, id) in &calls {
            let Some(flight) = self.flights.get(*id) else { continue };
            match &flight.origin {
                Origin::Client(asker) => match &asker.modern {
                    Some(facts) => {
                        let able = capability.is_some_and(|capability| {
                            translate::declares(&facts.client.capabilities, capability)
                        });
                        if able && translate::may_ask(&flight.method) {
                            return Answerer::Round(*id);
                        }
                    }
                    None if can(&asker.session) => return Answerer::Call(asker.session, *id),
                    None => {}
                },
                Origin::Parked(_) => return Answerer::Round(*id),
                Origin::Hub => {}
            }
        }
        let lacks = || match capability {
            Some(capability) => {
                format!("no client that can answer {method}: it needs the capability {capability}")
            }
            None => format!("no client that can answer {method}"),
        };
        if !calls.is_empty() {
            return Answerer::Nobody(lacks());
        }
        if let Some(owner) = self.instances.get(&instance).and_then(|instance| instance.owner) {
            return if can(&owner) { Answerer::Client(owner) } else { Answerer::Nobody(lacks()) };
        }
        let mut sessions =
            self.sessions.iter().filter(|(_, state)| state.client.is_some()).map(|(id, _)| *id);
        match (sessions.next(), sessions.next()) {
            (Some(only), None) if can(&only) => Answerer::Client(only),
            (Some(_), Some(_)) => Answerer::Nobody(format!(
                "{method} outside of a call: several clients use this server, and it is not known whose turn it is"
            )),
            _ => Answerer::Nobody(lacks()),
        }
    }

    /// The calls are those of several clients, and a question may be for any of them. From now on each client has a copy
    /// of its own. (Where the settings say that all share one, the most recent call counts.)
    fn is_crowded(&mut self, instance: UpstreamId, calls: &[(u64, FlightId)]) -> bool {
        let mut clients: Vec<Option<SessionId>> = Vec::new();
        for (_, id) in calls {
            let Some(session) = self.flights.get(*id).and_then(super::answers::session_of) else { continue };
            // Requests that are each a session of their own may well be one client's.
            let known = self.sessions.get(&session).filter(|state| !state.options.passing).map(|_| session);
            if !clients.contains(&known) {
                clients.push(known);
            }
        }
        let Some(state) = self.instances.get(&instance) else { return false };
        let shared = state.config.share == Share::Auto && state.owner.is_none();
        if let (true, Some(server)) = (shared && clients.len() > 1, self.servers.get_mut(state.server)) {
            server.private = true;
            return true;
        }
        false
    }

    /// A server that asks outside of a call keeps state for each client: from now on it is not shared further.
    fn keeps_state(&mut self, instance: UpstreamId, method: &str) {
        if !matches!(method, "roots/list" | "sampling/createMessage" | "elicitation/create") {
            return;
        }
        let in_call = self
            .flights
            .iter()
            .any(|(_, flight)| flight.instance == Some(instance) && !matches!(flight.origin, Origin::Hub));
        let Some(state) = self.instances.get(&instance) else { return };
        let number = state.server;
        let Some(server) = self.servers.get_mut(number) else { return };
        if in_call || state.config.share != Share::Auto || state.owner.is_some() || server.private {
            return;
        }
        server.private = true;
        // Those who are there go on with it.
        let mut users = Vec::new();
        for (id, session) in &mut self.sessions {
            if session.client.is_some() && !session.options.passing {
                session.own.entry(number).or_insert(instance);
                users.push(*id);
            }
        }
        if let ([only], Some(state)) = (users.as_slice(), self.instances.get_mut(&instance)) {
            state.owner = Some(*only);
            if let Some(server) = self.servers.get_mut(number) {
                server.shared = None;
            }
        }
    }

    /// A client that has roots is there: servers that asked for them before are told to ask again.
    pub(super) fn roots_are_there(&mut self, session: SessionId) {
        if !self.sessions.get(&session).is_some_and(|state| state.declares("roots")) {
            return;
        }
        let mut lacking: Vec<UpstreamId> = Vec::new();
        for (id, instance) in &mut self.instances {
            let its = instance.owner.is_none_or(|owner| owner == session);
            if its && instance.negotiated.is_some() && std::mem::take(&mut instance.lacks_roots) {
                lacking.push(*id);
            }
        }
        lacking.sort_unstable();
        for instance in lacking {
            self.note(
                instance,
                br#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#.as_slice(),
            );
        }
    }

    /// Passes a question on to a legacy client.
    fn question(
        &mut self,
        instance: UpstreamId,
        session: SessionId,
        about: Option<FlightId>,
        id: &Id,
        message: &Message,
    ) {
        let refuse = |hub: &mut Self, text: &str| {
            let bytes = error_response(id.raw(), UPSTREAM_ERROR, text, None);
            hub.note(instance, bytes);
        };
        let Some(bytes) = message.content.bytes().cloned() else {
            refuse(self, "the request is too large for a client");
            return;
        };
        let same = |question: &Question| matches!(&question.replies, Replies::Server { instance: asker, .. } if *asker == instance);
        if self.questions.len() >= OPEN || self.questions.ids(same).len() >= OPEN_EACH {
            refuse(self, "too many open requests to clients");
            return;
        }
        if self.sessions.get(&session).is_none_or(|state| state.sink.is_full()) {
            refuse(self, "the client does not read its messages");
            return;
        }
        let token = [Step::Key("params"), Step::Key("_meta"), Step::Key("progressToken")];
        let token: Option<Box<[u8]>> = splice::value(&bytes, &token).map(Into::into);
        let has_token = token.is_some();
        let method = method_name(message.envelope.method().unwrap_or_default());
        let replies = Replies::Server { instance, id: id.clone(), token };
        let Some(ours) = self.questions.insert(Question { session, method, replies, about }) else { return };
        let digits = Digits::of(ours.0);
        let sent = if has_token {
            splice::readdress(&bytes, &message.envelope, digits.as_bytes(), None, true).map(|made| made.bytes)
        } else {
            splice::with_id(&bytes, &message.envelope, digits.as_bytes())
        };
        let Some(sent) = sent else {
            self.questions.remove(ours);
            refuse(self, "the request has no place for an id");
            return;
        };
        let about = about.and_then(|flight| self.client_id(flight));
        let payload = Payload::Bytes(sent.into());
        self.ask_client(session, ClientMessage { about, is_answer: false, payload });
        if let Some(flight) = self.questions.get(ours).and_then(|question| question.about) {
            self.pause(flight);
        }
    }

    /// A person who is asked takes time, and it is not the server's: only the absolute deadline counts meanwhile.
    pub(super) fn pause(&mut self, flight: FlightId) {
        if let Some(flight) = self.flights.get_mut(flight) {
            flight.deadline.moved = flight.deadline.began + flight.deadline.max;
        }
    }

    /// The answer is there: it is the server's time again.
    pub(super) fn resume(&mut self, flight: FlightId) {
        let now = self.now;
        if let Some(flight) = self.flights.get_mut(flight) {
            flight.deadline.moved = now;
            let end = flight.deadline.end();
            self.sweep_by(end);
        }
    }

    /// The client's own id of a request.
    pub(super) fn client_id(&self, flight: FlightId) -> Option<Id> {
        Some(self.flights.get(flight)?.asker()?.id.clone())
    }

    /// A client has answered a question.
    pub(super) fn client_answer(&mut self, session: SessionId, message: &Message) {
        let Some(id) = message.envelope.id().and_then(splice::number).map(FlightId) else { return };
        if self.questions.get(id).is_none_or(|question| question.session != session) {
            return;
        }
        let Some(question) = self.questions.remove(id) else { return };
        if let Some(flight) = question.about {
            self.resume(flight);
        }
        let fault = message.envelope.kind() == Kind::Fault;
        match question.replies {
            Replies::Server { instance, id, .. } => {
                let bytes = match message.content.bytes() {
                    Some(bytes) if !fault => splice::with_id(bytes, &message.envelope, id.raw()),
                    _ => None,
                };
                let text = "the client's answer broke the protocol or was too large";
                let bytes = bytes.unwrap_or_else(|| error_response(id.raw(), UPSTREAM_ERROR, text, None));
                self.note(instance, bytes);
            }
            Replies::Round { flight, key } => self.round_answer(flight, &key, &question.method, message),
        }
    }

    /// The questions of a request that is over: the client need not answer them any more.
    pub(super) fn withdraw_about(&mut self, flight: FlightId) {
        let ids = self.questions.ids(|question| question.about == Some(flight));
        self.withdraw(ids);
    }

    /// A client is gone: the servers hear that their questions have no answer.
    pub(super) fn withdraw_questions(&mut self, session: SessionId) {
        for id in self.questions.ids(|question| question.session == session) {
            let Some(question) = self.questions.remove(id) else { continue };
            if let Replies::Server { instance, id, .. } = question.replies {
                let bytes = error_response(id.raw(), UPSTREAM_ERROR, "the client is gone", None);
                self.note(instance, bytes);
            }
        }
    }

    /// A server is gone: its questions are withdrawn.
    pub(super) fn withdraw_server_questions(&mut self, instance: UpstreamId) {
        let ids = self.questions.ids(
            |question| matches!(&question.replies, Replies::Server { instance: asker, .. } if *asker == instance),
        );
        self.withdraw(ids);
    }

    /// A server takes a question back.
    pub(super) fn server_cancels(&mut self, instance: UpstreamId, message: &Message) {
        let Some(request) = message.envelope.request_id() else { return };
        let ids = self.questions.ids(|question| {
            matches!(&question.replies, Replies::Server { instance: asker, id, .. } if *asker == instance && id == request)
        });
        self.withdraw(ids);
    }

    fn withdraw(&mut self, ids: Vec<FlightId>) {
        for id in ids {
            let Some(question) = self.questions.remove(id) else { continue };
            let bytes =
                translate::cancelled(Digits::of(id.0).as_bytes(), Some("the server does not wait any more"));
            let about = question.about.and_then(|flight| self.client_id(flight));
            let payload = Payload::Bytes(bytes.into());
            self.send_client(question.session, ClientMessage { about, is_answer: false, payload });
        }
    }

    /// Progress of a client on a question goes back under the server's own token.
    pub(super) fn client_progress(&mut self, session: SessionId, message: &Message) {
        let path = [Step::Key("params"), Step::Key("progressToken")];
        let Some(bytes) = message.content.bytes() else { return };
        let id = splice::value(bytes, &path).and_then(Id::from_json).as_ref().and_then(splice::number);
        let Some(question) = id.and_then(|id| self.questions.get(FlightId(id))) else { return };
        if question.session != session {
            return;
        }
        if let Replies::Server { instance, token: Some(token), .. } = &question.replies
            && let Some(changed) = splice::with_value(bytes, &path, token)
            && let Some(message) = rescan(changed.into())
        {
            let instance = *instance;
            self.forward(instance, message);
        }
    }
}
