//! Owns what a client still waits for: requests without an answer. Knows no messages beyond that.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use toolway_wire::{Id, IdHasher, Kind};

use crate::gateway::message::Message;

/// Requests without an answer. A batch is answered as one, about its first request.
#[derive(Debug, Default)]
pub(super) struct Owed {
    /// By the id that the answer is about: the ids that it answers.
    open: HashMap<Id, Vec<Id>, BuildHasherDefault<IdHasher>>,
}

impl Owed {
    /// Notes the requests of a message or a batch. What a cancellation names is not awaited.
    pub(super) fn note(&mut self, messages: &[Message]) {
        if let [Message { envelope, .. }] = messages
            && envelope.kind() == Kind::Request
        {
            if let Some(id) = envelope.id() {
                self.open.insert(id.clone(), Vec::new());
            }
            return;
        }
        let mut ids = Vec::new();
        for Message { envelope, .. } in messages {
            match envelope.kind() {
                Kind::Request => ids.extend(envelope.id().cloned()),
                Kind::Notification if envelope.method() == Some("notifications/cancelled") => {
                    if let Some(id) = envelope.request_id() {
                        self.cancelled(id);
                    }
                }
                _ => {}
            }
        }
        if let Some((first, rest)) = ids.split_first() {
            self.open.insert(first.clone(), rest.to_vec());
        }
    }

    fn cancelled(&mut self, id: &Id) {
        match self.open.get_mut(id) {
            // The others of its batch are still owed.
            Some(rest) if !rest.is_empty() => {}
            Some(_) => self.answered(id),
            None => self.open.values_mut().for_each(|rest| rest.retain(|other| other != id)),
        }
    }

    /// The answer about this request has come.
    pub(super) fn answered(&mut self, about: &Id) {
        self.open.remove(about);
    }

    /// Nothing is owed.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// All that is owed; nothing is, afterwards.
    pub(super) fn take(&mut self) -> Vec<Id> {
        self.open.drain().flat_map(|(first, rest)| std::iter::once(first).chain(rest)).collect()
    }
}
