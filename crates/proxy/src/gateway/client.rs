//! Owns a client that does one thing after the other, for the shell and the doctor. Raw JSON in and out, both
//! generations. Knows no gateway.

use toolway_transport::{Failure, Payload};

use super::config::ServerConfig;
use super::connection::{Connection, Negotiated, OpenError, Shared};
use super::lists::RawLists;

/// Why a request of ours has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server, or the transport, answered with an error.
    #[error("{}", .0.message)]
    Failed(Failure),
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
pub trait Companion {
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
}

impl Client {
    /// Connects, see [`Connection::open`].
    pub async fn open(config: &ServerConfig, shared: &Shared) -> Result<Self, OpenError> {
        Ok(Self { connection: Connection::open(config, shared).await? })
    }

    /// What the server said of itself.
    pub fn negotiated(&self) -> &Negotiated {
        self.connection.negotiated()
    }

    /// All that the server offers, pages followed to their end. An error only when the tools cannot be listed; what
    /// is wrong with the other lists is a note.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn lists(&mut self) -> Result<RawLists, ClientError> {
        Err(ClientError::Lost(String::new()))
    }

    /// `tools/call` with `arguments`, a JSON object; the raw result. Progress starts the idle time again.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn call(
        &mut self,
        _tool: &str,
        _arguments: &str,
        _companion: &mut dyn Companion,
    ) -> Result<Payload, ClientError> {
        Err(ClientError::Lost(String::new()))
    }

    /// `resources/read`; the raw result.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn read(&mut self, _uri: &str, _companion: &mut dyn Companion) -> Result<Payload, ClientError> {
        Err(ClientError::Lost(String::new()))
    }

    /// `prompts/get` with `arguments`, a JSON object of strings; the raw result.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn prompt(
        &mut self,
        _name: &str,
        _arguments: &str,
        _companion: &mut dyn Companion,
    ) -> Result<Payload, ClientError> {
        Err(ClientError::Lost(String::new()))
    }

    /// `ping`, or for a modern server, which has none, `server/discover`: how long the answer took.
    #[expect(clippy::unused_async, reason = "signature first")]
    pub async fn ping(&mut self) -> Result<std::time::Duration, ClientError> {
        Err(ClientError::Lost(String::new()))
    }

    /// Ends the connection in good order, within 5 s.
    pub async fn close(self) {
        self.connection.close().await;
    }
}
