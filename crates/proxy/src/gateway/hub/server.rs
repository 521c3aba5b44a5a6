//! Owns what is known of one configured server and of its running copies. Sends nothing.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use toolway_guard::Guard;
use toolway_wire::era::Era;

use super::flight::FlightId;
use crate::gateway::catalogue::Pins;
use crate::gateway::config::{ServerConfig, Share};
use crate::gateway::connection::Negotiated;
use crate::gateway::lists::RawLists;
use crate::gateway::message::{Message, SessionId};
use crate::gateway::state::ServerState;
use crate::gateway::upstream::UpstreamId;

/// One configured entry. Its number stays the same as long as the gateway runs.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the server")]
pub(super) struct Server {
    /// As configured.
    pub(super) name: Arc<str>,
    pub(super) source: String,
    /// How to run it, or why not.
    pub(super) plan: Result<Arc<ServerConfig>, ServerState>,
    /// The copy that is shared.
    pub(super) shared: Option<UpstreamId>,
    /// It was found to keep state for each client.
    pub(super) private: bool,
    /// What it offers, as last heard.
    pub(super) lists: Option<Arc<RawLists>>,
    /// A running copy has said so, in this run.
    pub(super) live: bool,
    /// It was looked for what is remembered of it.
    pub(super) recalled: bool,
    /// Its tools as they were approved.
    pub(super) pins: Pins,
    /// Tools whose definition differs from the approved one.
    pub(super) changed: Vec<String>,
    /// The first start has come to an end, good or bad: the wait policy waits no more.
    pub(super) settled: bool,
}

impl Server {
    /// New clients get copies of their own.
    pub(super) fn is_private(&self) -> bool {
        match self.plan.as_ref().map(|config| config.share) {
            Ok(Share::Never) => true,
            Ok(Share::Auto) => self.private,
            _ => false,
        }
    }
}

/// A request that waits for its server to come up.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) flight: FlightId,
    pub(super) message: Message,
    /// What becomes of `params.name`: a JSON string.
    pub(super) rename: Option<Bytes>,
}

/// One running copy of a server.
#[derive(Debug)]
pub(super) struct Instance {
    /// Number of the server.
    pub(super) server: usize,
    pub(super) name: Arc<str>,
    pub(super) config: Arc<ServerConfig>,
    /// Whose it is; `None`: it is shared.
    pub(super) owner: Option<SessionId>,
    /// Replaced or removed by a reload: it ends with the last call in flight.
    pub(super) retired: bool,
    pub(super) state: ServerState,
    /// What was agreed, while it is up.
    pub(super) negotiated: Option<Arc<Negotiated>>,
    /// With the limit of this server.
    pub(super) guard: Arc<Guard>,
    /// An answer of so many characters needs no look at the guard's rules.
    pub(super) plain_limit: u64,
    pub(super) in_flight: usize,
    /// Requests from before it came up.
    pub(super) waiting: VecDeque<Waiting>,
    /// How many bytes these have.
    pub(super) waiting_bytes: u64,
    /// It asked for roots when no client had any.
    pub(super) lacks_roots: bool,
    /// The level of logging that it was told.
    pub(super) level: Option<u8>,
    /// Resources that it was told to tell about.
    pub(super) subscribed: BTreeSet<String>,
    /// The stream on which a modern server tells about them.
    pub(super) listen: Option<FlightId>,
}

impl Instance {
    /// The generation that it speaks, while it is up.
    pub(super) fn era(&self) -> Option<Era> {
        self.negotiated.as_ref().map(|negotiated| negotiated.era)
    }

    pub(super) fn is_modern(&self) -> bool {
        self.era() == Some(Era::Modern)
    }
}
