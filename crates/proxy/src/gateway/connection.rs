//! Owns one connection to one server, from the command or the address to whole messages both ways: what the gateway's
//! upstreams, the shell and the doctor use. Knows no clients, no routing and no restarts.

mod eras;
mod failure;
mod handshake;
mod inbox;
mod link;
mod masks;
mod negotiated;
mod opening;
mod start;
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use toolway_guard::Guard;
use toolway_transport::memory::MemoryEnd;
use toolway_transport::{ChildTransport, Failure, Inbound, Outbound, Transport as _, TransportError};
use toolway_wire::Id;

pub use eras::{Eras, Known};
pub use failure::{Exchange, OpenDetail, OpenError};
pub(crate) use link::Link;
pub use negotiated::{Carrier, Negotiated};
pub(crate) use words::{Words, answer, quote, refuse};

use inbox::Inbox;
use masks::Masks;
use opening::Opening;

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

impl Face {
    /// Toolway before clients: what any of them may be able to do. A question for one that cannot is refused by name.
    pub fn of_gateway() -> Self {
        let all = r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}}}"#;
        Self { capabilities: all.to_owned(), ..Self::default() }
    }
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
    link: Link,
    inbox: Inbox,
    words: Words,
    negotiated: Arc<Negotiated>,
    masks: Masks,
    program: Option<PathBuf>,
    /// Up to the end of the handshake.
    exchanges: Vec<Exchange>,
}

impl Connection {
    /// Resolves the command, starts the process or connects, and shakes hands: within `timeouts.startup`.
    ///
    /// # Errors
    /// [`OpenError`]; nothing of the attempt is left running: a server that was started and does not answer is
    /// stopped first, which may take some seconds more.
    pub async fn open(config: &ServerConfig, shared: &Shared) -> Result<Self, OpenError> {
        match Self::attempt(config, shared, &CancellationToken::new()).await {
            Ok(connection) => Ok(connection),
            Err((error, remains)) => {
                if let Some(mut link) = remains {
                    link.close().await;
                }
                Err(error)
            }
        }
    }

    /// Shakes hands over one end of an in-memory pair.
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub async fn over(end: MemoryEnd, config: &ServerConfig, shared: &Shared) -> Result<Self, OpenError> {
        let opened = Opening::new(config, shared).over(Link::Memory(Box::new(end))).await;
        opened.map_err(|(error, _)| error)
    }

    /// As [`Connection::open`], until `stop`; what a failure leaves behind is the caller's to close.
    pub(crate) async fn attempt(
        config: &ServerConfig,
        shared: &Shared,
        stop: &CancellationToken,
    ) -> Result<Self, (OpenError, Option<Link>)> {
        Opening::new(config, shared).open(stop).await
    }

    /// What the server said of itself.
    pub fn negotiated(&self) -> &Arc<Negotiated> {
        &self.negotiated
    }

    /// A request may be sent now. When not, [`Received::Ready`] comes once there is room.
    pub fn ready(&self) -> bool {
        self.link.ready()
    }

    /// A message that waits for no answer may be sent now, although a request may not.
    pub fn ready_for_note(&self) -> bool {
        self.link.ready_for_note()
    }

    /// Takes a message; never waits. The bytes leave while [`Connection::receive`] is awaited.
    ///
    /// # Errors
    /// When the transport is closed or has no room.
    pub fn send(&mut self, message: Outbound) -> Result<(), TransportError> {
        self.link.send(message)
    }

    /// What comes next; `None` after [`Received::Closed`]. Dropping the future loses nothing.
    pub async fn receive(&mut self) -> Option<Received> {
        loop {
            if let Some(received) = self.inbox.next() {
                return Some(received);
            }
            let inbound = self.link.receive().await?;
            if let Some(received) = self.take(inbound) {
                return Some(received);
            }
        }
    }

    /// What has already come, without waiting.
    pub fn try_receive(&mut self) -> Option<Received> {
        loop {
            if let Some(received) = self.inbox.next() {
                return Some(received);
            }
            let inbound = self.link.try_receive()?;
            if let Some(received) = self.take(inbound) {
                return Some(received);
            }
        }
    }

    fn take(&mut self, inbound: Inbound) -> Option<Received> {
        let received = self.inbox.take(inbound)?;
        let reason = match received {
            Received::Closed { reason } => reason,
            Received::Failed { ids, failure } => {
                return Some(Received::Failed { ids, failure: with_hint(failure) });
            }
            other => return Some(other),
        };
        let stderr = self.stderr();
        let words = stderr.as_deref().and_then(masks::last_words);
        let reason = match words {
            Some(words) => format!("{reason}; its last words: {words}"),
            None => reason,
        };
        Some(Received::Closed { reason })
    }

    /// How our own requests are spelled for this server.
    pub(crate) fn words(&mut self) -> &mut Words {
        &mut self.words
    }

    /// The last lines of the process's stderr, secrets masked; `None` where there is no process.
    pub fn stderr(&self) -> Option<String> {
        self.link.child().map(|child| self.masks.mask(&child.stderr().text()))
    }

    /// What is known of it, for a diagnosis: as after a failure.
    pub fn detail(&self) -> OpenDetail {
        let carrier = self.link.carrier();
        let mut exchanges = self.exchanges.clone();
        let noted = exchanges.iter().filter(|exchange| exchange.carrier == carrier).count();
        exchanges.extend(opening::exchanges(&self.link).skip(noted));
        let garbage = self.inbox.ignored().map(|(line, count)| (self.masks.mask(line), count));
        let stderr = self.stderr().filter(|text| !text.is_empty());
        OpenDetail { program: self.program.clone(), stderr, exchanges, garbage, ..OpenDetail::default() }
    }

    /// The number of its process: the supervisor's if there is one. `None` where there is no process.
    pub fn process(&self) -> Option<u32> {
        self.link.child().map(ChildTransport::id)
    }

    /// Ends it in good order, within 5 s: session, process, everything below it.
    pub async fn close(mut self) {
        self.link.close().await;
    }
}

/// Whoever called reads how to sign in.
fn with_hint(mut failure: Failure) -> Failure {
    if let Some(hint) = failure.hint().filter(|hint| !failure.message.contains(hint.as_str())) {
        failure.message = format!("{}. To sign in, {hint}", failure.message);
    }
    failure
}
