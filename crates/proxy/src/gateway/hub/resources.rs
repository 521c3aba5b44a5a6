//! Owns resources: reads and subscriptions are routed by address, and what servers tell about them goes to those that
//! have subscribed.

use std::collections::BTreeSet;

use toolway_transport::Payload;
use toolway_wire::find::{Step, elements, find, is_named, members, string};
use toolway_wire::{INVALID_PARAMS, Kind, UPSTREAM_ERROR, push_string};

use super::call::Flight;
use super::session::Asker;
use super::work::Work;
use super::{Hub, splice};
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::translate::{self, Filter};
use crate::gateway::upstream::UpstreamId;

/// "Resource not found" up to 2025-11-25; from then on it has no code of its own.
const NOT_FOUND: i64 = -32002;
/// What the addresses of saved results begin with.
const SAVED: &str = "toolway://saved/";
/// Resources that one client may subscribe to.
const SUBSCRIPTIONS: usize = 4096;

/// A JSON string.
pub(super) fn quoted(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    push_string(text, &mut out);
    out
}

impl Hub {
    /// The server of `params.uri` and the address that it knows; or the client was told that there is none.
    fn resource_of(&mut self, asker: &Asker, message: &Message) -> Option<(usize, String)> {
        let Some(uri) = message.envelope.uri() else {
            self.fail(asker, INVALID_PARAMS, "invalid params: uri, a string, is required");
            return None;
        };
        let found = self.lists.resource(uri);
        if found.is_none() {
            let code = if asker.modern.is_some() { INVALID_PARAMS } else { NOT_FOUND };
            let text = format!("resource not found: {uri:?}: no server, or more than one, may have it");
            self.fail(asker, code, &text);
        }
        found
    }

    fn deliver_resource(&mut self, server: usize, own: &str, asker: Asker, message: Message) {
        if message.envelope.uri() == Some(own) {
            let target = super::send::Target { server, tool: None, rename: None };
            self.deliver(target, asker, message);
            return;
        }
        let path = [Step::Key("params"), Step::Key("uri")];
        let changed =
            message.content.bytes().and_then(|bytes| splice::with_value(bytes, &path, &quoted(own)));
        self.deliver_changed(server, asker, changed);
    }

    pub(super) fn read(&mut self, asker: Asker, message: Message) {
        if let Some(uri) = message.envelope.uri().filter(|uri| uri.starts_with(SAVED) && self.reads_back()) {
            let uri = uri.to_owned();
            self.work_for(asker, "resources/read", |flight, guard, id, session| Work::ReadSaved {
                flight,
                guard,
                id,
                uri,
                session,
            });
            return;
        }
        if let Some((server, own)) = self.resource_of(&asker, &message) {
            self.deliver_resource(server, &own, asker, message);
        }
    }

    pub(super) fn subscribe(&mut self, asker: Asker, message: Message) {
        let Some((server, own)) = self.resource_of(&asker, &message) else { return };
        let uri = message.envelope.uri().unwrap_or_default().to_owned();
        let instance = match self.instance_for(server, asker.session) {
            Ok(instance) => instance,
            Err(reason) => {
                self.fail(&asker, UPSTREAM_ERROR, &reason);
                return;
            }
        };
        let Some(session) = self.sessions.get_mut(&asker.session) else { return };
        if session.subscriptions.len() >= SUBSCRIPTIONS {
            self.fail(&asker, UPSTREAM_ERROR, &format!("more than {SUBSCRIPTIONS} subscriptions"));
            return;
        }
        session.subscriptions.insert(uri);
        let Some(state) = self.instances.get_mut(&instance) else { return };
        let modern = state.is_modern();
        if modern {
            // It belongs to a stream from now on.
            self.follow(instance);
            self.empty(&asker);
            return;
        }
        if state.negotiated.is_some() {
            state.subscribed.insert(own.clone());
        }
        self.deliver_resource(server, &own, asker, message);
    }

    pub(super) fn unsubscribe(&mut self, asker: &Asker, message: &Message) {
        let uri = message.envelope.uri().unwrap_or_default().to_owned();
        if let Some(session) = self.sessions.get_mut(&asker.session) {
            session.subscriptions.remove(&uri);
        }
        if message.envelope.uri().is_none() {
            self.fail(asker, INVALID_PARAMS, "invalid params: uri, a string, is required");
            return;
        }
        self.unsubscribed(&uri);
        self.empty(asker);
    }

    /// One client less wants to hear of a resource: if it was the last one, the server need not tell.
    pub(super) fn unsubscribed(&mut self, uri: &str) {
        if self.sessions.values().any(|session| session.wants(uri)) {
            return;
        }
        let Some((server, own)) = self.lists.resource(uri) else { return };
        for copy in self.copies(server) {
            let Some(instance) = self.instances.get_mut(&copy) else { continue };
            if instance.is_modern() {
                self.follow(copy);
            } else if instance.subscribed.remove(&own) {
                self.ask_own(copy, "resources/unsubscribe", None, |id| translate::unsubscribe(id, &own));
            }
        }
    }

    /// A modern client's stream wants to hear of resources.
    pub(super) fn subscribe_for_stream(&mut self, uris: &[String]) {
        for uri in uris {
            let Some((server, own)) = self.lists.resource(uri) else { continue };
            for copy in self.copies(server) {
                let Some(instance) = self.instances.get_mut(&copy) else { continue };
                if instance.is_modern() {
                    self.follow(copy);
                } else if instance
                    .negotiated
                    .as_ref()
                    .is_some_and(|server| server.offers(&["resources", "subscribe"]))
                    && instance.subscribed.insert(own.clone())
                {
                    self.ask_own(copy, "resources/subscribe", None, |id| translate::subscribe(id, &own));
                }
            }
        }
    }

    /// After a restart a server is told again what clients want to hear of.
    pub(super) fn subscribe_again(&mut self, id: UpstreamId) {
        let Some(number) = self.instances.get(&id).map(|instance| instance.server) else { return };
        let mut all: Vec<String> = Vec::new();
        for session in self.sessions.values() {
            all.extend(session.subscriptions.iter().cloned());
            all.extend(session.listens.iter().flat_map(|(_, filter)| filter.uris.iter().cloned()));
        }
        all.retain(|uri| self.lists.resource(uri).is_some_and(|(server, _)| server == number));
        all.sort_unstable();
        all.dedup();
        if !all.is_empty() {
            self.subscribe_for_stream(&all);
        }
    }

    /// A modern server is told which resources matter now: a new stream takes the place of the one before.
    pub(super) fn follow(&mut self, id: UpstreamId) {
        let Some(instance) = self.instances.get(&id) else { return };
        let (number, before) = (instance.server, instance.listen);
        let mut uris: Vec<String> = Vec::new();
        for session in self.sessions.values() {
            let wanted =
                session.subscriptions.iter().chain(session.listens.iter().flat_map(|(_, f)| &f.uris));
            for uri in wanted {
                if let Some((server, own)) = self.lists.resource(uri)
                    && server == number
                    && !uris.contains(&own)
                {
                    uris.push(own);
                }
            }
        }
        uris.sort_unstable();
        let day = tokio::time::Duration::from_hours(24 * 365);
        let deadline = super::flight::Deadline::new(day, day, self.now);
        let listen = if uris.is_empty() {
            None
        } else {
            let filter = Filter { uris, ..Filter::default() };
            let facts = super::send::hub_facts();
            self.ask_own(id, "subscriptions/listen", Some(deadline), |id| {
                translate::listen_request(id, &facts, &filter)
            })
        };
        if let Some(before) = before {
            self.cancel_flight(before, Some("another stream takes its place"));
        }
        if let Some(instance) = self.instances.get_mut(&id) {
            instance.listen = listen;
        }
    }

    /// An answer to a request of the hub's own.
    pub(super) fn own_answer(
        &mut self,
        instance: UpstreamId,
        id: super::flight::FlightId,
        message: &Message,
    ) {
        let Some(flight) = self.land(id) else { return };
        if let Some(state) = self.instances.get_mut(&instance)
            && state.listen == Some(id)
        {
            state.listen = None;
        }
        if message.envelope.kind() != Kind::Response {
            let name = self.name_of(instance);
            tracing::debug!(server = %name, method = %flight.method, "the server refused a request of the gateway");
        }
    }

    /// A client's request was answered: a subscription that was refused is none.
    pub(super) fn note_answer(&mut self, instance: UpstreamId, flight: &Flight, kind: Kind) {
        if flight.method != "resources/subscribe" {
            return;
        }
        let Some(own) = flight.uri.as_deref() else { return };
        if kind == Kind::Response {
            if let Some(instance) = self.instances.get_mut(&instance) {
                instance.subscribed.insert(own.to_owned());
            }
            return;
        }
        let Some(server) = self.instances.get(&instance).map(|instance| instance.server) else { return };
        let exposed = self.lists.exposed_uri(server, own);
        let Some(asker) = flight.asker() else { return };
        if let Some(session) = self.sessions.get_mut(&asker.session) {
            session.subscriptions.remove(&exposed);
        }
        if let Some(instance) = self.instances.get_mut(&instance)
            && !self.sessions.values().any(|session| session.wants(&exposed))
        {
            instance.subscribed.remove(own);
        }
    }

    /// A resource has changed, or one below it: those who have subscribed to it hear of that.
    pub(super) fn resource_updated(&mut self, instance: UpstreamId, message: &Message) {
        let Some(own) = message.envelope.uri() else { return };
        let Some(state) = self.instances.get(&instance) else { return };
        let mut subscribed = vec![own.to_owned()];
        subscribed.extend(state.subscribed.iter().filter(|whole| is_below(own, whole)).cloned());
        let mut told = BTreeSet::new();
        for subscribed in subscribed {
            self.tell_update(instance, message, own, &subscribed, &mut told);
        }
    }

    /// Tells those who have subscribed to this resource that `own` has changed, if nobody has told them.
    fn tell_update(
        &mut self,
        instance: UpstreamId,
        message: &Message,
        own: &str,
        subscribed: &str,
        told: &mut BTreeSet<(SessionId, Option<Vec<u8>>)>,
    ) {
        let Some(bytes) = message.content.bytes() else { return };
        let Some(state) = self.instances.get(&instance) else { return };
        let (owner, server) = (state.owner, state.server);
        let wanted = self.lists.exposed_uri(server, subscribed);
        let below = own.strip_prefix(subscribed).unwrap_or_default();
        let exposed = format!("{wanted}{below}");
        let mut plain =
            if state.is_modern() { translate::without_subscription_id(bytes).into() } else { bytes.clone() };
        if exposed != own {
            let path = [Step::Key("params"), Step::Key("uri")];
            if let Some(changed) = splice::with_value(&plain, &path, &quoted(&exposed)) {
                plain = changed.into();
            }
        }
        let mut out = Vec::new();
        for (session, state) in &self.sessions {
            if owner.is_some_and(|owner| owner != *session) {
                continue;
            }
            if state.subscriptions.contains(&wanted) && told.insert((*session, None)) {
                out.push((*session, None, plain.clone()));
            }
            for (id, filter) in &state.listens {
                let admitted = filter.admits("notifications/resources/updated", Some(&wanted));
                if admitted && told.insert((*session, Some(id.raw().to_vec()))) {
                    let message = translate::with_subscription_id(&plain, id.raw());
                    out.push((*session, Some(id.clone()), message.into()));
                }
            }
        }
        out.sort_by_key(|(session, _, _)| *session);
        for (session, about, bytes) in out {
            self.tell_client(
                session,
                ClientMessage { about, is_answer: false, payload: Payload::Bytes(bytes) },
            );
        }
    }

    /// What a resource's own server says of its address, as clients know it: they come back with it.
    pub(super) fn with_exposed_uri(
        &mut self,
        instance: UpstreamId,
        id: super::flight::FlightId,
        message: Message,
    ) -> Message {
        let Some(flight) = self.flights.get(id).filter(|flight| flight.method == "resources/read") else {
            return message;
        };
        let (Some(own), Some(state)) = (flight.uri.clone(), self.instances.get(&instance)) else {
            return message;
        };
        let exposed = self.lists.exposed_uri(state.server, &own);
        if exposed == *own {
            return message;
        }
        let Some(bytes) = message.content.bytes() else { return message };
        let Some(changed) = readdressed(bytes, &own, &exposed) else { return message };
        super::requests::rescan(changed.into()).unwrap_or(message)
    }
}

/// The answer to a read with another address in its contents, where that is the one that was read.
fn readdressed(bytes: &[u8], own: &str, exposed: &str) -> Option<Vec<u8>> {
    let contents = find(bytes, &[Step::Key("result"), Step::Key("contents")])?;
    let mut out = Vec::with_capacity(bytes.len() + exposed.len());
    let mut from = 0;
    for content in elements(bytes, contents) {
        let uri = members(bytes, content).filter(|member| is_named(bytes, member, "uri")).last();
        if let Some(at) = uri.map(|member| member.value)
            && string(bytes, at.clone()).as_deref() == Some(own)
        {
            out.extend_from_slice(bytes.get(from..at.start)?);
            push_string(exposed, &mut out);
            from = at.end;
        }
    }
    out.extend_from_slice(bytes.get(from..)?);
    (from > 0).then_some(out)
}

/// The address is one below that of another resource.
fn is_below(uri: &str, whole: &str) -> bool {
    let rest = uri.strip_prefix(whole).filter(|rest| !rest.is_empty());
    rest.is_some_and(|rest| whole.ends_with('/') || rest.starts_with(['/', '?', '#']))
}
