//! Owns the shapes in which messages travel inside the gateway. Looks into none of them.

use toolway_transport::Payload;
use toolway_wire::{Envelope, Id};

/// One client of the gateway, for as long as it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// One whole message, from a client or a server, with what the scanner found in it. Members of a batch travel alone.
#[derive(Debug)]
pub struct Message {
    /// The bytes, without a line ending. Spans of the envelope are offsets in them.
    pub payload: Payload,
    /// What the scanner found.
    pub envelope: Envelope,
}

/// A message on its way to a client.
#[derive(Debug)]
pub struct ClientMessage {
    /// The client's own request that it belongs to, by the client's id: its answer, its progress, a question that the
    /// server asks because of it. `None`: it belongs to no request (list changes, logging). Over HTTP this chooses the
    /// stream.
    pub about: Option<Id>,
    /// It is the answer to `about`: nothing more will come for it.
    pub is_answer: bool,
    /// The bytes, without a line ending.
    pub payload: Payload,
}
