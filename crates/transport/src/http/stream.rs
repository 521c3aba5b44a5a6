//! Reads an event stream from the body of an answer, message by message. It must not know why it was asked for.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;
use toolway_wire::sse::{SseDecoder, SsePiece};

use super::client::lost;
use super::conn::AnswerBody;
use super::messages::{Messages, Seen};

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// Nobody waits any more; the stream itself goes on.
    Answered,
    /// The server ended it in good order.
    Ended,
    /// The connection was lost.
    Broken(String),
    /// No bytes came in time.
    Silent,
}

/// An event stream and what it has said so far, over reconnections.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    pub(crate) decoder: SseDecoder,
    /// Complete events, those without data too.
    pub(crate) events: u64,
}

/// Called when a message is complete, before its end is passed on.
pub(crate) type OnMessage<'a> = &'a mut (dyn FnMut(&Seen, &Messages) + Send);

impl EventStream {
    /// Passes messages on until nobody waits any more or the stream ends. Comments count as life.
    pub(crate) async fn read(
        &mut self,
        body: &mut AnswerBody,
        messages: &mut Messages,
        silence: Option<Duration>,
        on_message: OnMessage<'_>,
    ) -> StreamEnd {
        let waited = !messages.pending.is_empty();
        let end = loop {
            let piece = match silence {
                Some(limit) => match timeout(limit, body.next()).await {
                    Ok(piece) => piece,
                    Err(_elapsed) => break StreamEnd::Silent,
                },
                None => body.next().await,
            };
            match piece {
                Some(Ok(bytes)) => self.chunk(&bytes, messages, on_message).await,
                Some(Err(error)) => break StreamEnd::Broken(lost(&error)),
                None => break StreamEnd::Ended,
            }
            if waited && messages.pending.is_empty() {
                return StreamEnd::Answered;
            }
        };
        messages.abort().await;
        end
    }

    /// The next bytes of the stream.
    pub(crate) async fn chunk(&mut self, bytes: &Bytes, messages: &mut Messages, on_message: OnMessage<'_>) {
        let mut rest = &bytes[..];
        while let Some(piece) = self.decoder.next(&mut rest) {
            match piece {
                SsePiece::Data(part) => {
                    if is_message(self.decoder.pending_type()) {
                        messages.data(bytes.slice_ref(part)).await;
                    } else {
                        messages.skip();
                    }
                }
                SsePiece::DataBreak => {
                    messages.data(Bytes::from_static(b"\n")).await;
                }
                SsePiece::End { data } => {
                    self.events += 1;
                    if data {
                        self.message(messages, on_message).await;
                    }
                }
            }
        }
    }

    async fn message(&mut self, messages: &mut Messages, on_message: OnMessage<'_>) {
        if !is_message(self.decoder.event_type()) {
            messages.abort().await;
            return;
        }
        let seen = messages.finish();
        match &seen {
            Seen::NotJson(reason) | Seen::Garbage(reason) => {
                tracing::warn!(%reason, "an event that is not JSON-RPC was skipped");
                messages.abort().await;
            }
            _ => {
                on_message(&seen, messages);
                messages.commit().await;
            }
        }
    }

    /// The last event id, where it can be sent back.
    pub(crate) fn last_id(&self) -> Option<http::HeaderValue> {
        self.decoder.last_id().and_then(|id| http::HeaderValue::from_bytes(id).ok())
    }
}

fn is_message(event_type: &[u8]) -> bool {
    event_type.is_empty() || event_type == b"message"
}
