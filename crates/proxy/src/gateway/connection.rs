//! Owns one connection to one server, from the command or the address to whole messages both ways: what the gateway's
//! upstreams, the shell and the doctor use. Knows no clients, no routing and no restarts.

mod eras;
mod failure;
mod negotiated;

use std::sync::Arc;

use tokio::sync::Semaphore;
use toolway_guard::Guard;
use toolway_transport::{Failure, Outbound, TransportError};
use toolway_wire::Id;

pub use eras::{Eras, Known};
pub use failure::{Exchange, OpenDetail, OpenError};
pub use negotiated::{Carrier, Negotiated};

use super::config::ServerConfig;
use super::message::Message;

/// Processes that are being started at the same time: starting one blocks a thread for a millisecond.
const SPAWNING: usize = 2;

/// Who we are to servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Face {
    /// `clientInfo.name`.
    pub name: String,
    /// `clientInfo.version`.
    pub version: String,
    /// `capabilities`: a JSON object, raw.
    pub capabilities: String,
}

impl Default for Face {
    /// Toolway, which can do nothing that a server might ask for.
    fn default() -> Self {
        Self {
            name: "toolway".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: "{}".to_owned(),
        }
    }
}

/// What all connections of a process share. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shared {
    pub(crate) guard: Arc<Guard>,
    pub(crate) eras: Arc<Eras>,
    pub(crate) face: Arc<Face>,
    pub(crate) spawning: Arc<Semaphore>,
}

impl Shared {
    /// `guard` holds messages that are too large for memory; `eras` remembers what worked.
    pub fn new(guard: Arc<Guard>, eras: Arc<Eras>, face: Face) -> Self {
        Self { guard, eras, face: Arc::new(face), spawning: Arc::new(Semaphore::new(SPAWNING)) }
    }

    /// The same with another face, for servers that are run for one client only.
    #[must_use]
    pub fn with_face(&self, face: Face) -> Self {
        Self { face: Arc::new(face), ..self.clone() }
    }
}

/// What comes from a server.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one message is the rule, and boxing it would cost an allocation"
)]
pub enum Received {
    /// A message. In memory it has no raw line breaks; one in a file may have.
    Message(Message),
    /// These requests get no answer from the server: each is to be answered with this error.
    Failed {
        /// As they were sent.
        ids: Vec<Id>,
        /// The error.
        failure: Failure,
    },
    /// There is room again, after [`Connection::ready`] said no.
    Ready,
    /// Nothing more will come, and why: a whole sentence without its end, naming no server.
    Closed {
        /// `the server exited with code 7; its last words: ...`
        reason: String,
    },
}

/// A server that has answered `initialize` or `server/discover`. Dropping it ends its process by force;
/// [`Connection::close`] ends it in good order.
#[derive(Debug)]
pub struct Connection {
    negotiated: Arc<Negotiated>,
}

impl Connection {
    /// Resolves the command, starts the process or connects, and shakes hands: within `timeouts.startup`.
    ///
    /// # Errors
    /// [`OpenError`]; nothing of the attempt is left running.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn open(_config: &ServerConfig, _shared: &Shared) -> Result<Self, OpenError> {
        Err(OpenError::new(super::Stage::Spawn, "not built yet"))
    }

    /// What the server said of itself.
    pub fn negotiated(&self) -> &Arc<Negotiated> {
        &self.negotiated
    }

    /// A request may be sent now. When not, [`Received::Ready`] comes once there is room.
    pub fn ready(&self) -> bool {
        true
    }

    /// Takes a message; never waits. The bytes leave while [`Connection::receive`] is awaited.
    pub fn send(&mut self, _message: Outbound) -> Result<(), TransportError> {
        Err(TransportError::Closed)
    }

    /// What comes next; `None` after [`Received::Closed`]. Dropping the future loses nothing.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn receive(&mut self) -> Option<Received> {
        None
    }

    /// What has already come, without waiting.
    pub fn try_receive(&mut self) -> Option<Received> {
        None
    }

    /// The last lines of the process's stderr, secrets masked; `None` where there is no process.
    pub fn stderr(&self) -> Option<String> {
        None
    }

    /// Ends it in good order, within 5 s: session, process, everything below it.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn close(self) {}
}
