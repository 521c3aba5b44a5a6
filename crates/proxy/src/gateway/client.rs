//! Owns a client that does one thing after the other, for the shell and the doctor. Raw JSON in and out, both
//! generations. Knows no gateway.

mod exchange;
mod rounds;

use std::time::Duration;

use tokio::time::Instant;
use toolway_transport::{Failure, Payload};
use toolway_wire::Id;
use toolway_wire::era::Era;

use super::config::{ServerConfig, Timeouts};
use super::connection::{Connection, Negotiated, OpenDetail, OpenError, Shared, Words, quote};
use super::lists::RawLists;
use super::upstream::{Listed, Listing};
use exchange::Limits;

/// Why a request of ours has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server answered with an error.
    #[error("{}", .0.message)]
    Failed(Failure),
    /// The transport says that there is no answer: a refusal of HTTP, a lost connection.
    #[error("{}", .0.message)]
    Unanswered(Failure),
    /// No answer, and no progress, for so long.
    #[error("{method}: no answer within {seconds} s")]
    Silent {
        /// What was asked.
        method: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The server ended.
    #[error("{0}")]
    Lost(String),
    /// The server asked for more than can be given: rounds of input without end, or too large an answer.
    #[error("{0}")]
    Refused(String),
}

/// What happens while a call runs.
#[derive(Debug)]
pub enum Happening<'a> {
    /// `notifications/progress` of this call.
    Progress {
        /// How far it is.
        progress: f64,
        /// Of how much, where the server knows.
        total: Option<f64>,
        /// What it is doing.
        message: Option<String>,
    },
    /// `notifications/message`: its `params`, raw.
    Log(&'a [u8]),
    /// Another notification.
    Notification {
        /// Its method.
        method: &'a str,
        /// Its `params`, raw.
        params: &'a [u8],
    },
}

/// Answers what a server asks of its client, and hears what it says.
pub trait Companion: Send {
    /// A request of the server's: `elicitation/create`, `sampling/createMessage`, `roots/list`. The result, raw, or
    /// an error. In the modern generation these come as rounds of input, and are asked for here too.
    fn answer(&mut self, method: &str, params: &[u8]) -> Result<Vec<u8>, Failure>;

    /// Something happened.
    fn happened(&mut self, happening: Happening<'_>);
}

/// A companion that can do nothing and hears nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Alone;

impl Companion for Alone {
    fn answer(&mut self, method: &str, _params: &[u8]) -> Result<Vec<u8>, Failure> {
        let message = format!("this client cannot answer {method}");
        Err(Failure { code: toolway_wire::METHOD_NOT_FOUND, message, data: None })
    }

    fn happened(&mut self, _happening: Happening<'_>) {}
}

/// A server, asked for one thing after the other.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    timeouts: Timeouts,
    /// The request that is being waited for.
    current: Option<Id>,
}

impl Client {
    /// Connects, see [`Connection::open`].
    ///
    /// # Errors
    /// As [`Connection::open`].
    pub async fn open(config: &ServerConfig, shared: &Shared) -> Result<Self, OpenError> {
        Ok(Self::over(Connection::open(config, shared).await?, config.timeouts))
    }

    /// A client on a connection that is there already.
    pub fn over(connection: Connection, timeouts: Timeouts) -> Self {
        Self { connection, timeouts, current: None }
    }

    /// What the server said of itself.
    pub fn negotiated(&self) -> &Negotiated {
        self.connection.negotiated()
    }

    /// The last lines of the process's stderr, secrets masked; `None` where there is no process.
    pub fn stderr(&self) -> Option<String> {
        self.connection.stderr()
    }

    /// What is known of the connection, for a diagnosis: the program, HTTP answers, lines that were no messages.
    pub fn detail(&self) -> OpenDetail {
        self.connection.detail()
    }

    /// All that the server offers, pages followed to their end. An error only when the tools cannot be listed; what
    /// is wrong with the other lists is a note.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn lists(&mut self) -> Result<RawLists, ClientError> {
        let mut listing = Listing::new(self.connection.negotiated(), Instant::now());
        let idle = self.timeouts.list;
        for kind in listing.begin(Instant::now()) {
            let mut cursor: Option<String> = None;
            loop {
                let params: Vec<(&str, &str)> =
                    cursor.as_deref().map(|raw| ("cursor", raw)).into_iter().collect();
                let limits = Limits { idle, max: idle };
                let now = Instant::now;
                match self.once(kind.method(), &params, limits, &mut Alone).await {
                    Ok(message) => match listing.page(kind, &message, now()) {
                        Listed::Ask(next) => cursor = Some(String::from_utf8_lossy(&next).into_owned()),
                        Listed::Done => break,
                    },
                    Err(ClientError::Lost(reason)) => return Err(ClientError::Lost(reason)),
                    Err(error) => {
                        let unknown = matches!(&error, ClientError::Failed(failure)
                            if failure.code == toolway_wire::METHOD_NOT_FOUND);
                        match listing.failed(kind, &error.to_string(), unknown, now()) {
                            Some(_) => return Err(error),
                            None => break,
                        }
                    }
                }
            }
        }
        Ok(listing.into_lists())
    }

    /// `tools/call` with `arguments`, a JSON object; the raw result. Progress starts the idle time again.
    ///
    /// # Errors
    /// [`ClientError`]; a result that says `isError` is none.
    pub async fn call(
        &mut self,
        tool: &str,
        arguments: &str,
        companion: &mut dyn Companion,
    ) -> Result<Payload, ClientError> {
        let name = quoted(tool);
        self.rounds("tools/call", &[("name", &name), ("arguments", arguments)], companion).await
    }

    /// `resources/read`; the raw result.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn read(&mut self, uri: &str, companion: &mut dyn Companion) -> Result<Payload, ClientError> {
        let uri = quoted(uri);
        self.rounds("resources/read", &[("uri", &uri)], companion).await
    }

    /// `prompts/get` with `arguments`, a JSON object of strings; the raw result.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn prompt(
        &mut self,
        name: &str,
        arguments: &str,
        companion: &mut dyn Companion,
    ) -> Result<Payload, ClientError> {
        let name = quoted(name);
        self.rounds("prompts/get", &[("name", &name), ("arguments", arguments)], companion).await
    }

    /// `ping`, or for a modern server, which has none, `server/discover`: how long the answer took.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn ping(&mut self) -> Result<Duration, ClientError> {
        let modern = self.connection.negotiated().era == Era::Modern;
        let since = Instant::now();
        let limits = Limits { idle: self.timeouts.call_idle, max: self.timeouts.call_idle };
        self.once(if modern { "server/discover" } else { "ping" }, &[], limits, &mut Alone).await?;
        Ok(since.elapsed())
    }

    /// Tells the server that the request, whose future was dropped, is not waited for any more.
    pub fn give_up(&mut self) {
        if let Some(id) = self.current.take()
            && let Some(cancel) = Words::cancel(&id, "the user gave up")
            && let Err(error) = self.connection.send(cancel)
        {
            tracing::debug!(%error, "a request could not be cancelled");
        }
    }

    /// Ends the connection in good order, within 5 s.
    pub async fn close(self) {
        self.connection.close().await;
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    quote(&mut quoted, text);
    quoted
}
