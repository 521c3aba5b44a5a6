//! Owns what has come from a server and is no whole message yet, and makes messages of it. A message that came in one
//! piece is handed on as that piece, without a copy. Decides nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use toolway_guard::{Body, Guard, Intake, SpoolFile};
use toolway_transport::{Inbound, StreamId};
use toolway_wire::{Envelope, Verdict};

use super::Received;
use crate::gateway::message::{Content, Message};

/// Intakes that are kept for the next messages that come in pieces.
const SPARE: usize = 2;
/// What is shown of a line that is no message.
const SHOWN: usize = 120;
/// How many such lines are shown as warnings.
const WARNED: u64 = 5;
/// A larger member of a batch is not taken out of it.
const MAX_MEMBER: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct Inbox {
    guard: Arc<Guard>,
    /// The first piece of a message, and so far the only one.
    first: Option<(StreamId, Bytes)>,
    open: Vec<(StreamId, Intake)>,
    /// Looks at messages that came in one piece.
    whole: Intake,
    spare: Vec<Intake>,
    /// Members of a batch that are still to be handed on.
    members: VecDeque<Message>,
    /// Raw line breaks cannot be in a message: it came as a line.
    lines: bool,
    /// Lines that were no messages.
    ignored: u64,
    /// The beginning of the first of them.
    shown: Option<String>,
}

impl Inbox {
    pub(super) fn new(guard: &Arc<Guard>, lines: bool) -> Self {
        Self {
            guard: Arc::clone(guard),
            first: None,
            open: Vec::new(),
            whole: guard.intake(),
            spare: Vec::new(),
            members: VecDeque::new(),
            lines,
            ignored: 0,
            shown: None,
        }
    }

    /// The beginning of the first line that was no message, and how many there were.
    pub(super) fn ignored(&self) -> Option<(&str, u64)> {
        Some((self.shown.as_deref()?, self.ignored))
    }

    /// What is left of a batch.
    pub(super) fn next(&mut self) -> Option<Received> {
        self.members.pop_front().map(Received::Message)
    }

    /// Takes what has come; gives what it completes.
    pub(super) fn take(&mut self, inbound: Inbound) -> Option<Received> {
        match inbound {
            Inbound::Data { stream, bytes } => {
                self.data(stream, bytes);
                None
            }
            Inbound::End { stream } => self.end(stream).map(Received::Message).or_else(|| self.next()),
            Inbound::Abort { stream } => {
                if self.first.as_ref().is_some_and(|(first, _)| *first == stream) {
                    self.first = None;
                } else if let Some(mut intake) = self.close(stream) {
                    intake.reset();
                    self.keep(intake);
                }
                None
            }
            Inbound::Failed { ids, failure } => Some(Received::Failed { ids, failure }),
            Inbound::Ready => Some(Received::Ready),
            Inbound::Closed { reason } => Some(Received::Closed {
                reason: match reason {
                    toolway_transport::Closed::Normal => "the connection was closed".to_owned(),
                    toolway_transport::Closed::Lost(reason) => reason,
                },
            }),
        }
    }

    fn data(&mut self, stream: StreamId, bytes: Bytes) {
        if let Some((_, intake)) = self.open.iter_mut().find(|(open, _)| *open == stream) {
            return intake.feed(&bytes);
        }
        if let Some((first, begin)) = self.first.take() {
            let mut intake = self.spare.pop().unwrap_or_else(|| self.guard.intake());
            intake.feed(&begin);
            if first == stream {
                intake.feed(&bytes);
                self.open.push((first, intake));
                return;
            }
            self.open.push((first, intake));
        }
        self.first = Some((stream, bytes));
    }

    fn close(&mut self, stream: StreamId) -> Option<Intake> {
        let at = self.open.iter().position(|(open, _)| *open == stream)?;
        Some(self.open.swap_remove(at).1)
    }

    fn keep(&mut self, intake: Intake) {
        if self.spare.len() < SPARE {
            self.spare.push(intake);
        }
    }

    fn end(&mut self, stream: StreamId) -> Option<Message> {
        if let Some((_, mut bytes)) = self.first.take_if(|(first, _)| *first == stream) {
            if bytes.last() == Some(&b'\r') {
                bytes.truncate(bytes.len() - 1);
            }
            return self.whole(bytes);
        }
        let mut intake = self.close(stream)?;
        let taken = intake.finish();
        let done = match taken.verdict {
            Verdict::Message(envelope) => match taken.body {
                // In other words it has to be looked at once more; see `whole`.
                Body::Memory(bytes) if self.must_change(bytes, envelope) => {
                    Err(Bytes::copy_from_slice(bytes))
                }
                body => Ok(Some(Message { envelope: envelope.clone(), content: Content::of(body) })),
            },
            Verdict::Batch { members, .. } => match taken.body {
                Body::Memory(bytes) => Err(Bytes::copy_from_slice(bytes)),
                Body::File(file) => {
                    let spans: Vec<_> = members.iter().map(Envelope::span).collect();
                    self.large_batch(&file, &spans);
                    Ok(None)
                }
                Body::Lost { .. } | Body::TooLarge { .. } => {
                    tracing::warn!("a batch of answers could not be held");
                    Ok(None)
                }
            },
            Verdict::Blank => Ok(None),
            Verdict::NotJson(error) => {
                let reason = error.to_string();
                match taken.body {
                    Body::Memory(bytes) => self.ignore(&Bytes::copy_from_slice(bytes), &reason),
                    _ => self.ignore(b"", &reason),
                }
                Ok(None)
            }
            Verdict::NotRpc(reason) => {
                self.ignore(b"", reason);
                Ok(None)
            }
        };
        self.keep(intake);
        match done {
            Ok(message) => message,
            Err(bytes) => self.whole(bytes),
        }
    }

    /// A whole message that is at hand.
    fn whole(&mut self, bytes: Bytes) -> Option<Message> {
        let taken = self.whole.whole(&bytes);
        match taken.verdict {
            Verdict::Message(envelope) => {
                if let Body::TooLarge { len } = taken.body {
                    let content = Content::Held(Box::new(Body::TooLarge { len }));
                    return Some(Message { envelope: envelope.clone(), content });
                }
                let envelope = envelope.clone();
                if !self.must_change(&bytes, &envelope) {
                    return Some(Message { envelope, content: Content::Bytes(bytes) });
                }
                let bytes = flat_utf8(&bytes);
                match self.whole.whole(&bytes).verdict {
                    Verdict::Message(envelope) => {
                        Some(Message { envelope: envelope.clone(), content: Content::Bytes(bytes) })
                    }
                    _ => None,
                }
            }
            Verdict::Batch { members, .. } => {
                let spans: Vec<_> = members.iter().map(Envelope::span).collect();
                for span in spans {
                    let (Ok(start), Ok(end)) = (usize::try_from(span.start), usize::try_from(span.end))
                    else {
                        continue;
                    };
                    if start < end && end <= bytes.len() {
                        self.member(&bytes.slice(start..end));
                    }
                }
                None
            }
            Verdict::Blank => None,
            Verdict::NotJson(error) => {
                let reason = error.to_string();
                self.ignore(&bytes, &reason);
                None
            }
            Verdict::NotRpc(reason) => {
                self.ignore(&bytes, reason);
                None
            }
        }
    }

    fn member(&mut self, bytes: &Bytes) {
        let bytes = flat_utf8(bytes);
        if let Verdict::Message(envelope) = self.whole.whole(&bytes).verdict {
            let envelope = envelope.clone();
            self.members.push_back(Message { envelope, content: Content::Bytes(bytes) });
        }
    }

    fn large_batch(&mut self, file: &SpoolFile, spans: &[std::ops::Range<u64>]) {
        for span in spans {
            let len = span.end.saturating_sub(span.start);
            let size = usize::try_from(len).ok().filter(|_| len <= MAX_MEMBER);
            let mut bytes = vec![0; size.unwrap_or(0)];
            let mut at = 0;
            while at < bytes.len() {
                match file.read_at(bytes.get_mut(at..).unwrap_or_default(), span.start + at as u64) {
                    Ok(count @ 1..) => at += count,
                    _ => break,
                }
            }
            if at > 0 && at == bytes.len() {
                self.member(&bytes.into());
            } else {
                tracing::warn!(len, "a member of a batch of answers is too large, or could not be read back");
            }
        }
    }

    /// A message in memory is UTF-8 and has no raw line breaks.
    fn must_change(&self, bytes: &[u8], envelope: &Envelope) -> bool {
        (!self.lines && memchr::memchr2(b'\n', b'\r', bytes).is_some())
            || (!envelope.is_ascii() && std::str::from_utf8(bytes).is_err())
    }

    /// What is no message is never answered and harms nobody else.
    fn ignore(&mut self, bytes: &[u8], reason: &str) {
        self.ignored += 1;
        let start = String::from_utf8_lossy(bytes.get(..SHOWN).unwrap_or(bytes));
        let start: String = start.chars().filter(|c| !c.is_control()).collect();
        if self.ignored <= WARNED {
            tracing::warn!(%reason, start, "the server wrote what is no message to stdout: ignored");
        } else {
            tracing::debug!(%reason, start, "the server wrote what is no message to stdout: ignored");
        }
        self.shown.get_or_insert(start);
    }
}

fn flat_utf8(bytes: &Bytes) -> Bytes {
    if std::str::from_utf8(bytes).is_ok() && memchr::memchr2(b'\n', b'\r', bytes).is_none() {
        return bytes.clone();
    }
    String::from_utf8_lossy(bytes).replace(['\n', '\r'], " ").into()
}

#[cfg(test)]
mod tests;
