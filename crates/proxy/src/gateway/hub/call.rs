//! Owns what is known of a request in flight, and of a question that a server asks meanwhile. Sends nothing.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use toolway_guard::CallInfo;
use toolway_wire::Id;

use super::flight::{Deadline, FlightId};
use super::observing::Watched;
use super::session::Asker;
use crate::gateway::message::{Message, SessionId};
use crate::gateway::translate::Asked;
use crate::gateway::upstream::UpstreamId;

/// Methods whose names need not be copied.
const KNOWN: &[&str] = &[
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "resources/subscribe",
    "resources/unsubscribe",
    "resources/list",
];

/// A method's name.
pub(super) fn method_name(method: &str) -> Cow<'static, str> {
    KNOWN
        .iter()
        .find(|known| **known == method)
        .map_or_else(|| Cow::Owned(method.to_owned()), |known| Cow::Borrowed(*known))
}

/// Whose request it is.
#[derive(Debug)]
pub(super) enum Origin {
    /// A client's, which waits.
    Client(Asker),
    /// A modern client's, which was asked something and has to call again. The session is the last one known.
    Parked(SessionId),
    /// The hub's own: nobody waits for the answer.
    Hub,
}

/// A request in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) origin: Origin,
    /// The server's copy that has it; `None`: work of ours.
    pub(super) instance: Option<UpstreamId>,
    pub(super) method: Cow<'static, str>,
    /// The tool's own name.
    pub(super) tool: Option<Arc<str>>,
    /// A resource, or a prompt's name.
    pub(super) uri: Option<Box<str>>,
    /// The client's own progress token, raw.
    pub(super) token: Option<Box<[u8]>>,
    pub(super) deadline: Deadline,
    /// Later requests have higher numbers.
    pub(super) sequence: u64,
    /// Questions in the middle of it, where the two sides are of different eras.
    pub(super) round: Option<Box<Round>>,
    /// The answer has come and is being saved: whether it is one of the modern era.
    pub(super) answered: Option<bool>,
    /// What an observer will hear of it.
    pub(super) watched: Option<Box<Watched>>,
}

impl Flight {
    /// The client that waits.
    pub(super) fn asker(&self) -> Option<&Asker> {
        match &self.origin {
            Origin::Client(asker) => Some(asker),
            Origin::Parked(_) | Origin::Hub => None,
        }
    }

    /// The client waits for an answer in the modern era.
    pub(super) fn is_modern(&self) -> bool {
        self.asker().is_some_and(|asker| asker.modern.is_some())
    }

    /// In the form that the guard wants.
    pub(super) fn call_info(&self, server: &str, session: &str) -> CallInfo {
        CallInfo {
            method: self.method.clone().into_owned(),
            tool: self.tool.as_deref().map(str::to_owned),
            uri: self.uri.as_deref().map(str::to_owned),
            server: server.to_owned(),
            session: session.to_owned(),
        }
    }
}

/// What a call between two eras remembers.
#[derive(Debug)]
pub(super) enum Round {
    /// A legacy client's call of a modern server: the request as it can be sent again.
    Again {
        request: Bytes,
        /// How often it was sent again.
        times: u8,
        /// Raw, never looked into.
        state: Option<Vec<u8>>,
        /// Questions that the client has not answered yet.
        open: usize,
        responses: Vec<(String, Vec<u8>)>,
    },
    /// A modern client's call of a legacy server: it is held open until the client calls again.
    Held {
        /// Keys of the client's questions and the server's own ids of them.
        asked: Vec<(String, Id)>,
        /// The server's questions that came after that.
        more: Vec<(Id, Asked)>,
        /// The server's answer, which came meanwhile.
        answer: Option<Message>,
        rounds: u8,
    },
}

/// Where the client's answer to a question goes.
#[derive(Debug)]
pub(super) enum Replies {
    /// To the server, under its own id.
    Server {
        instance: UpstreamId,
        id: Id,
        /// The server's own progress token, raw.
        token: Option<Box<[u8]>>,
    },
    /// Into the second call of a round, under this key.
    Round { flight: FlightId, key: String },
}

/// A question to a client.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) session: SessionId,
    pub(super) method: Cow<'static, str>,
    pub(super) replies: Replies,
    /// The call that it was asked because of.
    pub(super) about: Option<FlightId>,
}
