//! Owns batches of clients (revision 2025-03-26): their members travel alone, their answers leave together.

use toolway_transport::Payload;
use toolway_wire::Id;

use super::Hub;
use crate::gateway::message::{ClientMessage, SessionId};

/// One batch on its way.
#[derive(Debug)]
pub(super) struct Batch {
    session: SessionId,
    /// The id of its first request.
    first: Id,
    /// Answers that have not come yet.
    open: usize,
    /// `[` and the answers so far.
    bytes: Vec<u8>,
}

impl Batch {
    pub(super) fn new(session: SessionId, first: Id, open: usize) -> Self {
        Self { session, first, open, bytes: vec![b'['] }
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }
}

impl Hub {
    /// One of the answers has come.
    pub(super) fn batch_answer(&mut self, number: u64, answer: &[u8]) {
        if let Some(batch) = self.batches.get_mut(&number) {
            if batch.bytes.len() > 1 {
                batch.bytes.push(b',');
            }
            batch.bytes.extend_from_slice(answer);
        }
        self.batch_less(number);
    }

    /// One answer less is owed.
    pub(super) fn batch_less(&mut self, number: u64) {
        let Some(batch) = self.batches.get_mut(&number) else { return };
        batch.open = batch.open.saturating_sub(1);
        if batch.open > 0 {
            return;
        }
        let Some(mut batch) = self.batches.remove(&number) else { return };
        // All of them were cancelled.
        if batch.bytes.len() == 1 {
            return;
        }
        batch.bytes.push(b']');
        let payload = Payload::Bytes(batch.bytes.into());
        let message = ClientMessage { about: Some(batch.first), is_answer: true, payload };
        self.send_client(batch.session, message);
    }
}
