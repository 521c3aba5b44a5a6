//! Owns log messages: which client gets which, and which level servers are told.

use std::collections::BTreeMap;

use toolway_guard::{Action, Body};
use toolway_transport::Payload;
use toolway_wire::find::Step;
use toolway_wire::{INVALID_PARAMS, Id};

use super::session::Asker;
use super::{Hub, splice};
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::translate::{self, log_rank};
use crate::gateway::upstream::UpstreamId;

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The name of a level, by its rank.
pub(super) fn level_name(rank: u8) -> Option<&'static str> {
    LEVELS.get(usize::from(rank)).copied()
}

impl Hub {
    /// `logging/setLevel`: for this client only; servers are told the lowest level that anybody wants.
    pub(super) fn set_level(&mut self, asker: &Asker, message: &Message) {
        let path = [Step::Key("params"), Step::Key("level")];
        let level = message.content.bytes().and_then(|bytes| splice::text(bytes, &path));
        let Some(rank) = level.as_deref().and_then(log_rank) else {
            self.fail(asker, INVALID_PARAMS, "invalid params: level is one of debug, info, notice, warning, error, critical, alert, emergency");
            return;
        };
        if let Some(session) = self.sessions.get_mut(&asker.session) {
            session.level = Some(rank);
        }
        self.levels_changed();
        self.empty(asker);
    }

    /// Somebody wants another level, or wants nothing any more.
    pub(super) fn levels_changed(&mut self) {
        let mut all: Vec<UpstreamId> = self.instances.keys().copied().collect();
        all.sort_unstable();
        for instance in all {
            self.tell_level(instance);
        }
    }

    /// Tells a legacy server the lowest level that is wanted of it, where that is another one.
    pub(super) fn tell_level(&mut self, id: UpstreamId) {
        let Some(instance) = self.instances.get(&id) else { return };
        let Some(negotiated) = instance.negotiated.as_ref().filter(|_| !instance.is_modern()) else { return };
        if !negotiated.offers(&["logging"]) {
            return;
        }
        let wanted = match instance.owner {
            Some(owner) => self.sessions.get(&owner).and_then(|session| session.level),
            None => self.sessions.values().filter_map(|session| session.level).min(),
        };
        self.tell_level_of(id, wanted);
    }

    fn tell_level_of(&mut self, id: UpstreamId, wanted: Option<u8>) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let Some(name) = wanted.filter(|_| wanted != instance.level).and_then(level_name) else { return };
        instance.level = wanted;
        self.ask_own(id, "logging/setLevel", None, |id| translate::set_level(id, name));
    }

    /// A log message of a server.
    pub(super) fn log(&mut self, instance: UpstreamId, message: &Message) {
        let Some(bytes) = message.content.bytes() else { return };
        let level = splice::text(bytes, &[Step::Key("params"), Step::Key("level")]);
        let rank = level.as_deref().and_then(log_rank).unwrap_or(7);
        let mut to: Vec<(SessionId, Option<Id>)> = Vec::new();
        // The most recent call of each legacy client there.
        let mut recent: BTreeMap<SessionId, (u64, &Id)> = BTreeMap::new();
        for (_, flight) in self.flights.iter().filter(|(_, flight)| flight.instance == Some(instance)) {
            let Some(asker) = flight.asker() else { continue };
            match &asker.modern {
                Some(facts) if facts.level.is_some_and(|level| level <= rank) => {
                    to.push((asker.session, Some(asker.id.clone())));
                }
                Some(_) => {}
                None => {
                    let last = recent.entry(asker.session).or_insert((flight.sequence, &asker.id));
                    if flight.sequence > last.0 {
                        *last = (flight.sequence, &asker.id);
                    }
                }
            }
        }
        let owner = self.instances.get(&instance).and_then(|instance| instance.owner);
        for (session, state) in &self.sessions {
            let hears = state.client.is_some()
                && owner.is_none_or(|owner| owner == *session)
                && state.level.is_none_or(|level| level <= rank);
            if hears {
                to.push((*session, recent.get(session).map(|(_, id)| (*id).clone())));
            }
        }
        to.sort_by_key(|(session, _)| *session);
        if to.is_empty() {
            return;
        }
        let payload = self.cut_log(instance, message).map_or_else(|| bytes.clone(), Into::into);
        for (session, about) in to {
            let payload = Payload::Bytes(payload.clone());
            self.send_client(session, ClientMessage { about, is_answer: false, payload });
        }
    }

    /// A log message that is too large for clients, as it goes on. It is rare, and its size is bounded by what a
    /// message in memory may have.
    fn cut_log(&self, instance: UpstreamId, message: &Message) -> Option<Vec<u8>> {
        let guard = &self.instances.get(&instance)?.guard;
        let Action::Replace { shape, limit } = guard.action(&message.envelope, None) else { return None };
        let mut body = Body::Memory(message.content.bytes()?);
        guard.replace(&message.envelope, None, shape, limit, &mut body)
    }
}
