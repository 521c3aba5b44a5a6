//! Owns one request of the sequential client from its sending to its answer, and what the server asks and says meanwhile.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use toolway_guard::Body;
use toolway_transport::Failure;
use toolway_wire::find::{Step, find, string};
use toolway_wire::{Envelope, Id, Kind, UPSTREAM_ERROR};

use super::{Client, ClientError, Companion, Happening};
use crate::gateway::connection::{Received, Words, answer, refuse};
use crate::gateway::message::{Content, Message};

/// A larger answer is not taken into memory.
const MAX_ANSWER: u64 = 256 << 20;

/// How long an answer is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Without progress.
    pub(super) idle: Duration,
    /// In all.
    pub(super) max: Duration,
}

impl Client {
    /// Sends a request and waits for its result.
    pub(super) async fn once(
        &mut self,
        method: &str,
        params: &[(&str, &str)],
        limits: Limits,
        companion: &mut dyn Companion,
    ) -> Result<Message, ClientError> {
        let asked = self.connection.words().request(method, params, true);
        let (id, message) =
            asked.ok_or_else(|| ClientError::Refused(format!("the arguments of {method} are not JSON")))?;
        self.connection.send(message).map_err(|error| ClientError::Lost(error.to_string()))?;
        self.current = Some(id.clone());
        let last = Instant::now() + limits.max;
        let mut idle = Instant::now() + limits.idle;
        loop {
            let Ok(received) = timeout_at(idle.min(last), self.connection.receive()).await else {
                self.current = None;
                if let Some(cancel) = Words::cancel(&id, "no answer in time") {
                    self.connection.send(cancel).ok();
                }
                let time = if idle <= last { limits.idle } else { limits.max };
                return Err(ClientError::Silent { method: method.to_owned(), seconds: time.as_secs() });
            };
            match received {
                Some(Received::Message(message)) => match message.envelope.kind() {
                    Kind::Response if message.envelope.id() == Some(&id) => {
                        self.current = None;
                        return Ok(message);
                    }
                    Kind::ErrorResponse | Kind::Fault if message.envelope.id() == Some(&id) => {
                        self.current = None;
                        return Err(ClientError::Failed(failure_of(&message)));
                    }
                    Kind::Request => {
                        self.asked(&message, companion);
                        // A person may have been asked, who takes their time.
                        idle = Instant::now() + limits.idle;
                    }
                    Kind::Notification if happened(&message, &id, companion) => {
                        idle = Instant::now() + limits.idle;
                    }
                    _ => {}
                },
                Some(Received::Failed { ids, failure }) if ids.contains(&id) => {
                    self.current = None;
                    return Err(ClientError::Unanswered(failure));
                }
                Some(Received::Failed { .. } | Received::Ready) => {}
                Some(Received::Closed { reason }) => return Err(ClientError::Lost(reason)),
                None => return Err(ClientError::Lost("the connection was closed".to_owned())),
            }
        }
    }

    /// A request of the server's.
    fn asked(&mut self, message: &Message, companion: &mut dyn Companion) {
        let (Some(method), Some(id)) = (message.envelope.method(), message.envelope.id()) else { return };
        let reply = if method == "ping" {
            answer(id, b"{}")
        } else {
            let params = part(message, &message.envelope, Envelope::params_span).unwrap_or_default();
            match companion.answer(method, &params) {
                Ok(result) => answer(id, &result),
                Err(failure) => refuse(id, failure.code, &failure.message),
            }
        };
        if let Some(reply) = reply
            && let Err(error) = self.connection.send(reply)
        {
            tracing::debug!(%error, "a question of the server's could not be answered");
        }
    }
}

/// Tells the companion; whether it was progress of this request.
fn happened(message: &Message, id: &Id, companion: &mut dyn Companion) -> bool {
    let params = part(message, &message.envelope, Envelope::params_span).unwrap_or_default();
    let method = message.envelope.method().unwrap_or_default();
    match method {
        "notifications/progress" => {
            let raw = |name: &str| params.get(find(&params, &[Step::Key(name)])?);
            let token = raw("progressToken").and_then(Id::from_json);
            if token.as_ref() != Some(id) {
                return false;
            }
            let number = |name| std::str::from_utf8(raw(name)?).ok()?.parse::<f64>().ok();
            companion.happened(Happening::Progress {
                progress: number("progress").unwrap_or_default(),
                total: number("total"),
                message: raw("message").and_then(|raw| string(raw, 0..raw.len())),
            });
            true
        }
        "notifications/message" => {
            companion.happened(Happening::Log(&params));
            false
        }
        _ => {
            companion.happened(Happening::Notification { method, params: &params });
            false
        }
    }
}

/// The result of an answer.
pub(super) fn result_of(message: &Message) -> Result<Bytes, ClientError> {
    part(message, &message.envelope, Envelope::result_span).ok_or_else(|| match &message.content {
        Content::Held(body) => match &**body {
            Body::Lost { reason, .. } => {
                ClientError::Refused(format!("the answer could not be held: {reason}"))
            }
            body => ClientError::Refused(format!("the answer has {} bytes: too many", body.len())),
        },
        Content::Bytes(_) => ClientError::Refused("the answer has no result".to_owned()),
    })
}

fn part(
    message: &Message,
    envelope: &Envelope,
    span: impl Fn(&Envelope) -> Option<std::ops::Range<u64>>,
) -> Option<Bytes> {
    let span = span(envelope)?;
    match &message.content {
        Content::Bytes(bytes) => {
            let (start, end) = (usize::try_from(span.start).ok()?, usize::try_from(span.end).ok()?);
            (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
        }
        Content::Held(body) => {
            let Body::File(file) = &**body else { return None };
            let len = span.end.checked_sub(span.start).filter(|len| *len <= MAX_ANSWER)?;
            let mut bytes = vec![0; usize::try_from(len).ok()?];
            let mut at = 0;
            while at < bytes.len() {
                match file.read_at(bytes.get_mut(at..)?, span.start + at as u64) {
                    Ok(count @ 1..) => at += count,
                    _ => return None,
                }
            }
            Some(bytes.into())
        }
    }
}

fn failure_of(message: &Message) -> Failure {
    let error = part(message, &message.envelope, Envelope::error_span).unwrap_or_default();
    let raw = |name: &str| error.get(find(&error, &[Step::Key(name)])?);
    let text = |raw: &[u8]| std::str::from_utf8(raw).ok().map(str::to_owned);
    Failure {
        code: raw("code").and_then(text).and_then(|code| code.parse().ok()).unwrap_or(UPSTREAM_ERROR),
        message: raw("message")
            .and_then(|raw| string(raw, 0..raw.len()))
            .unwrap_or_else(|| "the server answered with what is no JSON-RPC response".to_owned()),
        data: raw("data").and_then(text),
    }
}
