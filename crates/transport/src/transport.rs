//! What every message transport is: messages go out whole, come in as they arrive, and failures name the
//! requests that they leave without an answer. It must not know any wire protocol below it.

use std::fs::File;
use std::future::Future;

use bytes::Bytes;
use toolway_wire::{Envelope, Id};

/// Tells the messages that arrive at the same time apart. Pieces of one message share it, in their order.
///
/// After [`Inbound::End`] or [`Inbound::Abort`] nothing is held under it; the next message of the same stream
/// of events may use it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u64);

/// One whole message without its line ending.
#[derive(Debug)]
pub enum Payload {
    /// In memory.
    Bytes(Bytes),
    /// In a file from its beginning, `len` bytes long; the cursor of the handle is moved.
    File {
        /// Open for reading.
        file: File,
        /// Length of the message in bytes.
        len: u64,
    },
}

impl Payload {
    /// Length of the message in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// There is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What the payload holds.
#[derive(Debug)]
pub enum Members {
    /// One message.
    One(Envelope),
    /// A JSON array of messages.
    Batch(Vec<Envelope>),
}

impl Members {
    /// The messages in their order.
    pub fn as_slice(&self) -> &[Envelope] {
        match self {
            Self::One(envelope) => std::slice::from_ref(envelope),
            Self::Batch(envelopes) => envelopes,
        }
    }
}

/// A message on its way to the peer.
#[derive(Debug)]
pub struct Outbound {
    /// The bytes, which are sent as they are.
    pub payload: Payload,
    /// What the scanner found in them.
    pub members: Members,
}

/// What comes from the peer.
#[derive(Debug)]
pub enum Inbound {
    /// Bytes of a message, as they arrive.
    Data {
        /// The message they belong to.
        stream: StreamId,
        /// Never empty.
        bytes: Bytes,
    },
    /// The message is complete. Raw line feeds in it are insignificant white space of the JSON text.
    End {
        /// The message.
        stream: StreamId,
    },
    /// The message will never be complete: its bytes are to be forgotten.
    Abort {
        /// The message.
        stream: StreamId,
    },
    /// These requests get no answer from the peer: each is to be answered with this error.
    Failed {
        /// As they were sent.
        ids: Vec<Id>,
        /// The error.
        failure: Failure,
    },
    /// There is room again, after [`Transport::ready`] said no.
    Ready,
    /// Nothing more will come.
    Closed {
        /// Why.
        reason: Closed,
    },
}

/// How far the end of a transport has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Life {
    #[default]
    Open,
    /// Closed, and its reader does not know yet.
    Closed,
    /// Closed, and its reader was told.
    Told,
}

impl Life {
    /// What the reader of a transport that is not open any more gets now.
    pub(crate) fn end(&mut self) -> Option<Inbound> {
        let told = std::mem::replace(self, Self::Told) == Self::Told;
        (!told).then_some(Inbound::Closed { reason: Closed::Normal })
    }
}

/// A JSON-RPC error in the making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Error code.
    pub code: i64,
    /// What happened and, where there is something to do, what to do. No secrets, no query strings.
    pub message: String,
    /// Raw JSON.
    pub data: Option<String>,
}

impl Failure {
    /// The HTTP status of the refusal, where it was one: `status` of the data.
    pub fn status(&self) -> Option<u16> {
        u16::try_from(self.datum("status")?.as_u64()?).ok()
    }

    /// A person has to sign in, or to give another token: `needs_auth` of the data where an authorizer was asked, else
    /// any 401 and 403.
    pub fn needs_auth(&self) -> bool {
        let said = self.datum("needs_auth").and_then(|said| said.as_bool());
        said.unwrap_or_else(|| matches!(self.status(), Some(401 | 403)))
    }

    /// How to sign in: `hint` of the data, as `run: toolway login linear`.
    pub fn hint(&self) -> Option<String> {
        Some(self.datum("hint")?.as_str()?.to_owned())
    }

    fn datum(&self, name: &str) -> Option<serde_json::Value> {
        let data: serde_json::Value = serde_json::from_str(self.data.as_deref()?).ok()?;
        data.get(name).cloned()
    }
}

/// Why a transport ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// [`Transport::close`] was called, or the peer ended in good order.
    Normal,
    /// The peer ended, or was lost.
    Lost(String),
}

/// Why a message was not taken, or a transport not made.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The upstream's process could not be started.
    #[error(transparent)]
    Start(#[from] crate::child::StartError),
    /// The transport was closed.
    #[error("the transport is closed")]
    Closed,
    /// [`Transport::ready`] said no.
    #[error("too many messages in flight")]
    Busy,
    /// The URL cannot be used; the text says why and shows no more of it than is safe.
    #[error("cannot use the URL: {0}")]
    Url(String),
    /// A configured header cannot be sent; the value is not shown.
    #[error("cannot send the header {name}: {reason}")]
    Header {
        /// Its name as configured.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// TLS could not be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// One connection to a peer, as messages. Implemented by the HTTP, SSE and in-memory transports; called by the
/// relay and by each upstream of the gateway. Futures are `Send`; a tokio runtime must be entered.
pub trait Transport: Send {
    /// A message may be sent now. When not, [`Inbound::Ready`] comes once there is room.
    fn ready(&self) -> bool;

    /// A message that waits for no answer may be sent now, although a request may not: a cancellation, or the answer
    /// that a running call waits for, must not stand behind calls that hang.
    fn ready_for_note(&self) -> bool {
        self.ready()
    }

    /// Takes a message. Never waits: what goes wrong later comes as [`Inbound::Failed`].
    fn send(&mut self, message: Outbound) -> Result<(), TransportError>;

    /// What comes next; `None` after [`Inbound::Closed`]. Dropping the future loses nothing.
    fn receive(&mut self) -> impl Future<Output = Option<Inbound>> + Send;

    /// What has already come, without waiting: for writing several messages at once.
    fn try_receive(&mut self) -> Option<Inbound>;

    /// Ends the connection in good order, within bounds: no task and no socket is left.
    fn close(&mut self) -> impl Future<Output = ()> + Send;
}
