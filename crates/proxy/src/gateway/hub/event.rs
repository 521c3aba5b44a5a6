//! Owns what fronts and the owner of the gateway tell the hub. Decides nothing.

use tokio::sync::oneshot;

use crate::gateway::config::GatewayConfig;
use crate::gateway::message::{Message, SessionId};
use crate::gateway::outlet::Sink;
use crate::gateway::status::{Status, ToolStatus};

/// What a front says of a session when it opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionOptions {
    /// Its name in the index of saved results: what the read-back tool shows goes by it.
    pub saved_as: String,
    /// There is no connection that lasts: each request of a modern HTTP client is a session of its own. Such sessions
    /// use the copy of a server that they share, also where [`crate::gateway::Share::Never`] gives each other client
    /// its own, and are told nothing that they did not ask for.
    pub passing: bool,
}

/// What fronts tell the hub.
#[derive(Debug)]
pub enum ClientEvent {
    /// A client has come.
    Opened {
        /// From now on it is called so.
        session: SessionId,
        /// Where its messages go.
        sink: Sink,
        /// More of it.
        options: SessionOptions,
    },
    /// A message of a client.
    Message {
        /// Whose.
        session: SessionId,
        /// The message.
        message: Message,
    },
    /// The members of a batch, which is answered by a batch.
    Batch {
        /// Whose.
        session: SessionId,
        /// Its members in their order; those that are no messages were answered by the front.
        messages: Vec<Message>,
    },
    /// A client's request is to be given up although it said nothing: its stream was closed, which cancels in the
    /// modern era.
    Dropped {
        /// Whose.
        session: SessionId,
        /// The request.
        request: toolway_wire::Id,
    },
    /// A client has gone. (Dropping its [`crate::gateway::Outlet`] says the same.)
    Closed {
        /// Which.
        session: SessionId,
    },
}

/// What the owner of the gateway wants of the hub.
#[derive(Debug)]
pub enum Command {
    /// New settings; it is told when they hold.
    Reload(Box<GatewayConfig>, oneshot::Sender<()>),
    /// The state of every entry.
    Status(oneshot::Sender<Vec<Status>>),
    /// The definition of the tool that clients call so, as they get it.
    Tool(String, oneshot::Sender<Option<bytes::Bytes>>),
    /// Every tool that can be called.
    Tools(oneshot::Sender<Vec<ToolStatus>>),
    /// All servers end, and the hub with them.
    Shutdown,
}
