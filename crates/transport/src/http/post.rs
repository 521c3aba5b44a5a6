//! One JSON text to one address, for what is not MCP: telemetry. It must not know what the text says.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method};
use tokio::time::timeout;

use super::body::Message;
use super::client::{Call, CallError, Client, Signing};
use super::config::{HttpConfig, plain_headers};
use super::target::Target;
use crate::transport::TransportError;

/// Bytes of an answer that are read, so that the connection can be used again.
const MAX_ANSWER: usize = 64 << 10;
const ACCEPT: &str = "application/json";

/// An address that takes JSON. Connections are kept for a while.
#[derive(Debug)]
pub struct JsonPost {
    target: Arc<Target>,
    client: Client,
    own: HeaderMap,
    public: HeaderMap,
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostAnswer {
    /// The HTTP status.
    pub status: u16,
    /// When to try again (RFC 9110, section 10.2.3), given in seconds.
    pub retry_after: Option<Duration>,
}

impl JsonPost {
    /// Takes URL, headers, time limit, connector and roots of `config`. Connects to nothing yet.
    pub fn new(config: &HttpConfig) -> Result<Self, TransportError> {
        let target = Arc::new(config.target()?);
        Ok(Self {
            client: Client::new(config, &target),
            target,
            own: config.own_headers(ACCEPT)?,
            public: plain_headers(ACCEPT),
        })
    }

    /// Sends `json` once. The error is a fragment without secrets: nothing was answered.
    pub async fn send(&self, json: Bytes) -> Result<PostAnswer, String> {
        let message = Message::Bytes(json);
        let call = Call {
            method: Method::POST,
            message: Some(&message),
            repeatable: false,
            headers: &self.own,
            public: &self.public,
            bound: &|_, _| {},
            signing: Signing::Quiet,
            flight: None,
        };
        let (mut answer, _) = self.client.send(&self.target, call).await.map_err(|error| match error {
            CallError::Connect { origin, reason } => format!("cannot connect to {origin}: {reason}"),
            CallError::Lost { reason } | CallError::Redirect { reason, .. } => reason,
            CallError::SignIn(error) => error.message,
            CallError::Silent => "no answer came in time".to_owned(),
        })?;
        let retry_after = answer.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let status = answer.status.as_u16();
        let rest = async {
            let mut read = 0;
            while let Some(Ok(bytes)) = answer.body.next().await {
                read += bytes.len();
                if read > MAX_ANSWER {
                    break;
                }
            }
        };
        // What it says does not matter, and a connection that is not read to its end is only not used again.
        let _elapsed = timeout(self.client.timeout, rest).await;
        Ok(PostAnswer { status, retry_after: retry_after.map(Duration::from_secs) })
    }
}
