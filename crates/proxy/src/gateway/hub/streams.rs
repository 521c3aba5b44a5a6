//! Owns the streams of notifications that modern clients open with `subscriptions/listen`. Specification 2026-07-28,
//! "Subscriptions".

use toolway_transport::Payload;
use toolway_wire::{INVALID_PARAMS, Id, UPSTREAM_ERROR};

use super::Hub;
use super::session::Asker;
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::translate::{self, Filter};

/// Streams that one client may have.
const STREAMS: usize = 256;
/// Resources that one stream may follow.
const FOLLOWED: usize = 4096;

impl Hub {
    /// `subscriptions/listen`: acknowledged at once, answered at its end.
    pub(super) fn listen(&mut self, asker: &Asker, message: &Message) {
        let Some(mut filter) = message.content.bytes().and_then(|bytes| translate::listen_filter(bytes))
        else {
            self.fail(asker, INVALID_PARAMS, "invalid params: notifications, an object, is required");
            return;
        };
        filter.uris.truncate(FOLLOWED);
        filter.uris.retain(|uri| self.lists.resource(uri).is_some());
        let Some(session) = self.sessions.get_mut(&asker.session) else { return };
        if session.listens.len() >= STREAMS {
            self.fail(asker, UPSTREAM_ERROR, &format!("more than {STREAMS} streams"));
            return;
        }
        session.listens.push((asker.id.clone(), filter.clone()));
        let bytes = translate::acknowledged(asker.id.raw(), &filter);
        self.put_on_stream(asker.session, &asker.id, bytes);
        self.subscribe_for_stream(&filter.uris);
    }

    fn put_on_stream(&mut self, session: SessionId, id: &Id, bytes: Vec<u8>) {
        let about = Some(id.clone());
        let payload = Payload::Bytes(bytes.into());
        self.tell_client(session, ClientMessage { about, is_answer: false, payload });
    }

    /// A client ends a stream; true: it was one.
    pub(super) fn end_stream(&mut self, session: SessionId, id: &Id) -> bool {
        let Some(state) = self.sessions.get_mut(&session) else { return false };
        let Some(at) = state.listens.iter().position(|(listen, _)| listen == id) else { return false };
        let (_, filter) = state.listens.remove(at);
        state.in_flight = state.in_flight.saturating_sub(1);
        for uri in &filter.uris {
            self.unsubscribed(uri);
        }
        true
    }

    /// Something that clients listen for has happened: `make` gives the notification.
    pub(super) fn tell_streams(&mut self, method: &str, notification: &[u8]) {
        let mut out = Vec::new();
        for (session, state) in &self.sessions {
            for (id, filter) in &state.listens {
                if Filter::admits(filter, method, None) {
                    out.push((*session, id.clone()));
                }
            }
        }
        out.sort_by_key(|(session, _)| *session);
        for (session, id) in out {
            let bytes = translate::with_subscription_id(notification, id.raw());
            self.put_on_stream(session, &id, bytes);
        }
    }

    /// The gateway ends: so do all streams, in good order.
    pub(super) fn end_streams(&mut self) {
        let mut out = Vec::new();
        for (session, state) in &mut self.sessions {
            for (id, _) in state.listens.drain(..) {
                out.push(Asker { session: *session, id, batch: None, modern: None });
            }
        }
        out.sort_by_key(|asker| asker.session);
        for asker in out {
            let bytes = translate::listen_result(asker.id.raw());
            self.answer(&asker, bytes);
        }
    }
}
