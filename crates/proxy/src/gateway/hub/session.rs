//! Owns what is known of one client. Sends nothing.

use std::collections::{BTreeSet, HashMap};

use toolway_wire::Id;

use super::event::SessionOptions;
use crate::gateway::outlet::Sink;
use crate::gateway::translate::{ClientFacts, Filter, declares};
use crate::gateway::upstream::UpstreamId;

/// One client.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) sink: Sink,
    pub(super) options: SessionOptions,
    /// What it said in `initialize`. Requests of the modern era carry the same each for itself.
    pub(super) client: Option<ClientFacts>,
    /// The client is ready for messages that it did not ask for.
    pub(super) ready: bool,
    /// The lowest level of log messages that it wants, where it has said so.
    pub(super) level: Option<u8>,
    /// Resources that it wants to hear of, by `resources/subscribe`.
    pub(super) subscriptions: BTreeSet<String>,
    /// Its streams of notifications, by `subscriptions/listen`.
    pub(super) listens: Vec<(Id, Filter)>,
    /// Copies of servers that are its own, by the server's number.
    pub(super) own: HashMap<usize, UpstreamId>,
    /// Requests of it that are not answered yet.
    pub(super) in_flight: usize,
}

impl Session {
    pub(super) fn new(sink: Sink, options: SessionOptions) -> Self {
        Self {
            sink,
            options,
            client: None,
            ready: false,
            level: None,
            subscriptions: BTreeSet::new(),
            listens: Vec::new(),
            own: HashMap::new(),
            in_flight: 0,
        }
    }

    /// Its `initialize` said that it can do this.
    pub(super) fn declares(&self, capability: &str) -> bool {
        self.client.as_ref().is_some_and(|client| declares(&client.capabilities, capability))
    }

    /// It wants to hear of this resource.
    pub(super) fn wants(&self, uri: &str) -> bool {
        self.subscriptions.contains(uri)
            || self.listens.iter().any(|(_, filter)| filter.uris.iter().any(|wanted| wanted == uri))
    }
}

/// Who waits for an answer, and in which era.
#[derive(Debug, Clone)]
pub(in crate::gateway) struct Asker {
    pub(super) session: crate::gateway::message::SessionId,
    /// The client's id.
    pub(super) id: Id,
    /// The batch that the request came in.
    pub(super) batch: Option<u64>,
    /// What a modern request said of its client; `None`: the request is a legacy one.
    pub(super) modern: Option<Box<ModernFacts>>,
}

/// What a modern request says besides.
#[derive(Debug, Clone)]
pub(super) struct ModernFacts {
    pub(super) client: ClientFacts,
    /// The lowest level of log messages that it wants; `None`: none at all.
    pub(super) level: Option<u8>,
}
