//! Owns notifications: each goes to those whose request, level or subscription it belongs to.

use toolway_transport::Payload;
use toolway_wire::find::Step;
use toolway_wire::{Id, Kind};

use super::Hub;
use super::call::Origin;
use super::flight::FlightId;
use super::splice;
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::upstream::UpstreamId;

impl Hub {
    /// A notification of a server.
    pub(super) fn server_notice(&mut self, instance: UpstreamId, message: &Message) {
        match message.envelope.method().unwrap_or_default() {
            "notifications/progress" => self.server_progress(instance, message),
            "notifications/message" => self.log(instance, message),
            "notifications/cancelled" => self.server_cancels(instance, message),
            "notifications/resources/updated" => self.resource_updated(instance, message),
            "notifications/subscriptions/acknowledged"
            | "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {}
            _ => self.server_news(instance, message),
        }
    }

    /// Progress of a call: its idle deadline starts again, and the client hears of it under its own token.
    fn server_progress(&mut self, instance: UpstreamId, message: &Message) {
        let Some(bytes) = message.content.bytes() else { return };
        let path = [Step::Key("params"), Step::Key("progressToken")];
        let Some(token) = toolway_wire::find::find(bytes, &path) else { return };
        let id = bytes.get(token.clone()).and_then(Id::from_json).as_ref().and_then(splice::number);
        let Some(id) = id.map(FlightId) else { return };
        let now = self.now;
        let Some(flight) = self.flights.get_mut(id).filter(|flight| flight.instance == Some(instance)) else {
            return;
        };
        // Never back: a question to the client may have put it into the future.
        flight.deadline.moved = flight.deadline.moved.max(now);
        let (Origin::Client(asker), Some(own)) = (&flight.origin, &flight.token) else { return };
        let mut out = Vec::with_capacity(bytes.len() + own.len());
        out.extend_from_slice(bytes.get(..token.start).unwrap_or_default());
        out.extend_from_slice(own);
        out.extend_from_slice(bytes.get(token.end..).unwrap_or_default());
        let (session, about) = (asker.session, Some(asker.id.clone()));
        self.send_client(
            session,
            ClientMessage { about, is_answer: false, payload: Payload::Bytes(out.into()) },
        );
    }

    /// A notification that is not known here goes to the clients that use the server at the moment: its owner, those
    /// whose calls it has, or the only client.
    fn server_news(&mut self, instance: UpstreamId, message: &Message) {
        let Some(bytes) = message.content.bytes() else { return };
        for (session, about) in self.listeners(instance) {
            let payload = Payload::Bytes(bytes.clone());
            self.send_client(session, ClientMessage { about, is_answer: false, payload });
        }
    }

    /// Legacy clients that a server may mean when it says something of its own accord, each with its most recent call
    /// there.
    pub(super) fn listeners(&self, instance: UpstreamId) -> Vec<(SessionId, Option<Id>)> {
        let mut calls: Vec<(SessionId, u64, &Id)> = Vec::new();
        for (_, flight) in self.flights.iter().filter(|(_, flight)| flight.instance == Some(instance)) {
            if let Some(asker) = flight.asker().filter(|asker| asker.modern.is_none()) {
                calls.push((asker.session, flight.sequence, &asker.id));
            }
        }
        calls.sort_unstable_by(|one, other| (one.0, other.1).cmp(&(other.0, one.1)));
        calls.dedup_by_key(|call| call.0);
        if !calls.is_empty() {
            return calls.into_iter().map(|(session, _, id)| (session, Some(id.clone()))).collect();
        }
        if let Some(owner) = self.instances.get(&instance).and_then(|instance| instance.owner) {
            return vec![(owner, None)];
        }
        let mut legacy = self.sessions.iter().filter(|(_, state)| state.client.is_some());
        match (legacy.next(), legacy.next()) {
            (Some((only, _)), None) => vec![(*only, None)],
            _ => Vec::new(),
        }
    }

    /// A notification of a client.
    pub(super) fn client_notice(&mut self, session: SessionId, message: Message) {
        debug_assert_eq!(message.envelope.kind(), Kind::Notification);
        match message.envelope.method().unwrap_or_default() {
            "notifications/initialized" => {
                if let Some(state) = self.sessions.get_mut(&session) {
                    state.ready = true;
                }
                self.roots_are_there(session);
            }
            "notifications/cancelled" => {
                let Some(request) = message.envelope.request_id() else { return };
                let reason = message
                    .content
                    .bytes()
                    .and_then(|bytes| splice::text(bytes, &[Step::Key("params"), Step::Key("reason")]));
                self.cancel_request(session, request, reason.as_deref());
            }
            "notifications/progress" => self.client_progress(session, &message),
            "notifications/roots/list_changed" => self.roots_changed(session, &message),
            _ => {
                let mut running = self.instances.iter().filter(|(_, one)| !one.retired).map(|(id, _)| *id);
                if let (Some(only), None) = (running.next(), running.next()) {
                    self.forward(only, message);
                }
            }
        }
    }

    /// A client's roots are others now: the servers that get them from clients hear of it.
    fn roots_changed(&mut self, session: SessionId, message: &Message) {
        let Some(bytes) = message.content.bytes() else { return };
        let mut told: Vec<UpstreamId> = self
            .instances
            .iter()
            .filter(|(_, one)| one.owner.is_none_or(|owner| owner == session))
            .filter(|(_, one)| one.config.roots.is_none() && one.negotiated.is_some() && !one.is_modern())
            .map(|(id, _)| *id)
            .collect();
        told.sort_unstable();
        for instance in told {
            self.note(instance, bytes.clone());
        }
    }
}
