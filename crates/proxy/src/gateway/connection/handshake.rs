//! Owns the first exchange with a server: `initialize`, `server/discover`, and which of them comes first. Knows no
//! transport by name.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use toolway_transport::{Failure, Outbound, Transport as _};
use toolway_wire::era::{Era, ProtocolVersion, code};
use toolway_wire::find::{Step, elements, find, string};
use toolway_wire::{Id, Kind, METHOD_NOT_FOUND, UPSTREAM_ERROR};

use super::inbox::Inbox;
use super::link::Link;
use super::words::{self, Words};
use super::{Negotiated, Received};
use crate::gateway::config::Protocol;
use crate::gateway::message::Message;

/// How long `server/discover` is waited for when `initialize` is the alternative.
const DISCOVER_TIME: Duration = Duration::from_secs(10);

/// Why a request of the handshake has no result.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    /// The server's JSON-RPC error.
    Rpc { code: i64, message: String, supported: Vec<String> },
    /// The transport's.
    Failed(Failure),
    /// The connection has ended.
    Closed(String),
    /// The answer cannot be understood.
    Odd(String),
    /// No answer in time, where another way is left.
    Silent,
}

/// A connection that is being made.
#[derive(Debug)]
pub(super) struct Handshake<'a> {
    pub(super) link: &'a mut Link,
    pub(super) inbox: &'a mut Inbox,
    pub(super) words: &'a mut Words,
}

impl Handshake<'_> {
    /// Tries the generations in their order; the first refusal is the one that counts.
    pub(super) async fn shake(
        &mut self,
        protocol: Protocol,
        known: Option<Era>,
    ) -> Result<Negotiated, Refusal> {
        let order: &[Era] = match (protocol, known) {
            (Protocol::Legacy, _) => &[Era::Legacy],
            (Protocol::Modern, _) => &[Era::Modern],
            (Protocol::Auto, Some(Era::Modern)) => &[Era::Modern, Era::Legacy],
            (Protocol::Auto, _) => &[Era::Legacy, Era::Modern],
        };
        let mut first = None;
        for (at, era) in order.iter().enumerate() {
            let last = at + 1 == order.len();
            let tried = match era {
                Era::Legacy => self.initialize().await,
                Era::Modern => self.discover(!last).await,
            };
            match tried {
                Ok(negotiated) => return Ok(negotiated),
                Err(refusal) => {
                    let go_on = match &refusal {
                        Refusal::Rpc { .. } | Refusal::Silent | Refusal::Odd(_) => true,
                        // A server of sessions refuses a request without one, in words of its own.
                        Refusal::Failed(failure) => *era == Era::Modern && !is_final(failure),
                        Refusal::Closed(_) => false,
                    };
                    let first = first.get_or_insert(refusal.clone());
                    if last || !go_on {
                        let now = matches!(refusal, Refusal::Closed(_)) || known == Some(Era::Modern);
                        return Err(if now { refusal } else { first.clone() });
                    }
                }
            }
        }
        Err(first.unwrap_or(Refusal::Silent))
    }

    async fn initialize(&mut self) -> Result<Negotiated, Refusal> {
        self.words.era = Era::Legacy;
        let asked = self.words_initialize()?;
        let result = self.ask(asked).await?;
        let version = text(&result, &[Step::Key("protocolVersion")]);
        let Some(version) = version.filter(|version| ProtocolVersion::parse(version).is_some()) else {
            return Err(Refusal::Odd("its answer to initialize names no protocol version".to_owned()));
        };
        if let Some(message) = words::initialized() {
            self.send(message)?;
        }
        Ok(Negotiated { era: Era::Legacy, version, carrier: self.link.carrier(), result })
    }

    fn words_initialize(&mut self) -> Result<(Id, Outbound), Refusal> {
        let spelled = self.words.initialize();
        spelled.ok_or_else(|| Refusal::Odd("the client's capabilities are no JSON object".to_owned()))
    }

    async fn discover(&mut self, alternative: bool) -> Result<Negotiated, Refusal> {
        self.words.era = Era::Modern;
        let asked = self.words.request("server/discover", &[], false);
        let asked =
            asked.ok_or_else(|| Refusal::Odd("the client's capabilities are no JSON object".to_owned()))?;
        let result = if alternative {
            timeout(DISCOVER_TIME, self.ask(asked)).await.unwrap_or(Err(Refusal::Silent))?
        } else {
            self.ask(asked).await?
        };
        let own = ProtocolVersion::V2026_07_28.to_string();
        let supported = versions(&result, &[Step::Key("supportedVersions")]);
        if !supported.is_empty() && !supported.contains(&own) {
            let message = format!("it supports {} only", supported.join(", "));
            return Err(Refusal::Rpc { code: code::UNSUPPORTED_PROTOCOL_VERSION, message, supported });
        }
        Ok(Negotiated { era: Era::Modern, version: own, carrier: self.link.carrier(), result })
    }

    fn send(&mut self, message: Outbound) -> Result<(), Refusal> {
        self.link.send(message).map_err(|error| Refusal::Closed(error.to_string()))
    }

    /// Sends a request and waits for its result. What else comes is not for anybody yet.
    async fn ask(&mut self, (id, message): (Id, Outbound)) -> Result<Bytes, Refusal> {
        self.send(message)?;
        loop {
            let received = match self.inbox.next() {
                Some(received) => received,
                None => match self.link.receive().await {
                    None => return Err(Refusal::Closed("the connection was closed".to_owned())),
                    Some(inbound) => match self.inbox.take(inbound) {
                        Some(received) => received,
                        None => continue,
                    },
                },
            };
            match received {
                Received::Message(message) => {
                    if let Some(result) = self.hear(&id, &message) {
                        return result;
                    }
                }
                Received::Failed { ids, failure } if ids.contains(&id) => {
                    return Err(failed(failure));
                }
                Received::Failed { .. } | Received::Ready => {}
                Received::Closed { reason } => return Err(Refusal::Closed(reason)),
            }
        }
    }

    fn hear(&mut self, id: &Id, message: &Message) -> Option<Result<Bytes, Refusal>> {
        let envelope = &message.envelope;
        let own = envelope.id() == Some(id);
        match envelope.kind() {
            Kind::Request => {
                let answer = match (envelope.method(), envelope.id()) {
                    (Some("ping"), Some(id)) => words::answer(id, b"{}"),
                    (_, Some(id)) => words::refuse(id, METHOD_NOT_FOUND, "the handshake is not over"),
                    _ => None,
                };
                answer.and_then(|answer| self.send(answer).err()).map(Err)
            }
            Kind::Response if own => Some(
                slice(message, envelope.result_span())
                    .ok_or_else(|| Refusal::Odd("its answer to the handshake is too large".to_owned())),
            ),
            // An error without an id can only be about the one thing that was asked.
            Kind::ErrorResponse if own || envelope.id().is_none_or(Id::is_null) => {
                Some(Err(rpc_error(message, envelope.error_span())))
            }
            Kind::Fault if own => {
                Some(Err(Refusal::Odd("its answer to the handshake is no JSON-RPC 2.0 response".to_owned())))
            }
            _ => None,
        }
    }
}

/// A transport reports an error without an id, which came with a status of refusal, in this way too.
fn failed(failure: Failure) -> Refusal {
    if failure.code == UPSTREAM_ERROR {
        return Refusal::Failed(failure);
    }
    let data = Bytes::from(failure.data.unwrap_or_default());
    Refusal::Rpc {
        code: failure.code,
        message: failure.message,
        supported: versions(&data, &[Step::Key("supported")]),
    }
}

fn slice(message: &Message, span: Option<std::ops::Range<u64>>) -> Option<Bytes> {
    let (bytes, span) = (message.content.bytes()?, span?);
    let (start, end) = (usize::try_from(span.start).ok()?, usize::try_from(span.end).ok()?);
    // A copy: the message may be a small part of what was read at once.
    bytes.get(start..end).map(Bytes::copy_from_slice)
}

fn rpc_error(message: &Message, span: Option<std::ops::Range<u64>>) -> Refusal {
    let error = slice(message, span).unwrap_or_default();
    let code = find(&error, &[Step::Key("code")])
        .and_then(|at| std::str::from_utf8(error.get(at)?).ok()?.parse::<i64>().ok());
    let supported = versions(&error, &[Step::Key("data"), Step::Key("supported")]);
    let message = text(&error, &[Step::Key("message")]).unwrap_or_else(|| "no reason given".to_owned());
    Refusal::Rpc { code: code.unwrap_or_default(), message, supported }
}

fn versions(json: &Bytes, path: &[Step<'_>]) -> Vec<String> {
    let Some(at) = find(json, path) else { return Vec::new() };
    elements(json, at).filter_map(|at| string(json, at)).take(16).collect()
}

fn text(json: &Bytes, path: &[Step<'_>]) -> Option<String> {
    string(json, find(json, path)?)
}

/// Another generation would be refused in the same way.
fn is_final(failure: &Failure) -> bool {
    failure.needs_auth() || failure.hint().is_some()
}
