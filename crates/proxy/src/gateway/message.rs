//! Owns the shapes in which messages travel inside the gateway. Looks into none of them.

use bytes::Bytes;
use toolway_guard::Body;
use toolway_transport::Payload;
use toolway_wire::{Envelope, Id};

/// One client of the gateway, for as long as it is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub u64);

/// The bytes of a message that came in, without a line ending. Spans of its envelope are offsets in them.
#[derive(Debug)]
pub enum Content {
    /// All of them, in memory: nearly every message.
    Bytes(Bytes),
    /// What the guard's intake made of a message that was too large for that: a file, or the reason why it is lost.
    Held(Box<Body<'static>>),
}

impl Content {
    /// What an intake has taken in; bytes in memory are copied.
    pub fn of(body: Body<'_>) -> Self {
        match body {
            Body::Memory(bytes) => Self::Bytes(Bytes::copy_from_slice(bytes)),
            Body::File(file) => Self::Held(Box::new(Body::File(file))),
            Body::Lost { head, tail, len, reason } => {
                Self::Held(Box::new(Body::Lost { head, tail, len, reason }))
            }
            Body::TooLarge { len } => Self::Held(Box::new(Body::TooLarge { len })),
        }
    }

    /// The bytes, where they are in memory.
    pub fn bytes(&self) -> Option<&Bytes> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Held(_) => None,
        }
    }

    /// How many bytes the message has.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Held(body) => body.len(),
        }
    }

    /// There is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One whole message, from a client or a server, with what the scanner found in it. Members of a batch travel alone.
#[derive(Debug)]
pub struct Message {
    /// The bytes.
    pub content: Content,
    /// What the scanner found.
    pub envelope: Envelope,
}

/// A message on its way to a client.
#[derive(Debug)]
pub struct ClientMessage {
    /// The client's own request that it belongs to, by the client's id: its answer, its progress, a question that the
    /// server asks because of it. `None`: it belongs to no request (list changes, logging). Over HTTP this chooses the
    /// stream. The answers to a batch are one message, about the first request of it.
    pub about: Option<Id>,
    /// It is the answer to `about`: nothing more will come for it.
    pub is_answer: bool,
    /// The bytes, without a line ending. Raw line breaks in them are white space of the JSON text.
    pub payload: Payload,
}
