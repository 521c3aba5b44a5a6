//! Owns the two tools that stand for all others when the client is to see few: `toolway_search` and `toolway_call`.

use bytes::Bytes;

use super::Hub;
use super::session::Asker;
use crate::gateway::message::Message;

/// What clients see of them.
pub(super) fn definitions() -> Vec<Bytes> {
    Vec::new()
}

impl Hub {
    /// A call of one of the two; false: it is none.
    pub(super) fn call_search(&mut self, asker: &Asker, message: &Message) -> bool {
        let _ = (asker, message);
        false
    }
}
