//! Owns the way from the client to the upstream: what is passed on, and what is answered at once. Knows no
//! transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolway_guard::{Body, Intake, Taken};
use toolway_wire::{Envelope, Id, Kind, UPSTREAM_ERROR, Verdict, error_response};

use super::core::{Relay, failure};
use super::parts::slice;
use super::rewrite;
use crate::admission;
use crate::pending::Asked;
use crate::record::Direction;

/// What becomes of a message of the client.
#[derive(Debug)]
pub(super) enum Up<'a> {
    /// Nothing.
    Nothing,
    /// It goes to the upstream as it is.
    Forward {
        /// Its bytes, unless `changed` has others.
        body: Body<'a>,
        /// What it is.
        verdict: Verdict<'a>,
        /// The bytes that go instead.
        changed: Option<Vec<u8>>,
        /// Lines that the client gets, each with its end; none where nothing is changed.
        answers: Vec<u8>,
    },
    /// The client gets these lines, each with its end.
    Answer(Vec<u8>),
}

/// Takes the client's messages in.
#[derive(Debug)]
pub(super) struct Uplink {
    relay: Arc<Relay>,
    intake: Intake,
}

impl Uplink {
    pub(super) fn new(relay: Arc<Relay>) -> Self {
        Self { intake: relay.config.guard.intake(), relay }
    }

    /// The next bytes of the message.
    #[inline]
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.intake.feed(bytes);
    }

    /// The message has ended.
    #[inline]
    pub(super) fn finish(&mut self) -> Up<'_> {
        conclude(&self.relay, self.intake.finish())
    }

    /// A whole message that is at hand.
    #[inline]
    pub(super) fn whole<'a>(&'a mut self, message: &'a [u8]) -> Up<'a> {
        conclude(&self.relay, self.intake.whole(message))
    }
}

/// What becomes of a message.
#[inline]
fn conclude<'a>(relay: &Relay, Taken { verdict, body }: Taken<'a>) -> Up<'a> {
    if let Some(record) = &relay.config.record
        && !matches!(verdict, Verdict::Blank)
    {
        let bytes = if let Body::Memory(bytes) = &body { Some(*bytes) } else { None };
        record.message(Direction::FromClient, bytes, body.len());
    }
    match verdict {
        Verdict::Blank => Up::Nothing,
        Verdict::NotJson(error) => Up::Answer(line(&admission::not_json(&error))),
        Verdict::NotRpc(reason) => Up::Answer(invalid(b"null", reason)),
        Verdict::Message(message) => match admit(relay, std::slice::from_ref(message), &body) {
            Ok(()) if message.kind() == Kind::Request => ask(relay, message, body, verdict),
            Ok(()) => Up::Forward { body, verdict, changed: None, answers: Vec::new() },
            Err(lines) => Up::Answer(lines),
        },
        Verdict::Batch { members, strangers } => {
            let admitted = admit(relay, members, &body);
            // What is not JSON was refused as a whole.
            let strangers = if members.iter().any(Envelope::is_lax) { 0 } else { strangers };
            let answers = || invalid(b"null", "a member of the batch is no message").repeat(strangers);
            match admitted {
                Ok(()) => match without_strangers(members, strangers, &body) {
                    Some(bytes) => Up::Forward { body, verdict, changed: Some(bytes), answers: answers() },
                    None => Up::Forward { body, verdict, changed: None, answers: Vec::new() },
                },
                Err(lines) => Up::Answer([answers(), lines].concat()),
            }
        }
    }
}

/// A batch whose strangers are answered here, as it goes on. `None`: it goes on whole, because it has none, or because
/// it is too large for memory: then they are for the upstream to answer.
fn without_strangers(members: &[Envelope], strangers: usize, body: &Body<'_>) -> Option<Vec<u8>> {
    let Body::Memory(bytes) = body else { return None };
    if strangers == 0 {
        return None;
    }
    let kept: Vec<&[u8]> = members.iter().map(|member| slice(bytes, member)).collect();
    Some([b"[", kept.join(&b',').as_slice(), b"]"].concat())
}

/// A request that was admitted: it goes on, or is ours to answer.
#[inline]
fn ask<'a>(relay: &Relay, request: &Envelope, body: Body<'a>, verdict: Verdict<'a>) -> Up<'a> {
    if !relay.answers {
        return Up::Forward { body, verdict, changed: None, answers: Vec::new() };
    }
    let answer = match rewrite::own_answer(relay, request, &body) {
        Some(answer) => answer,
        None => match rewrite::with_references(relay, request, &body) {
            Ok(changed) => return Up::Forward { body, verdict, changed, answers: Vec::new() },
            Err(answer) => answer,
        },
    };
    if let Some(id) = request.id() {
        relay.pending().answer(id);
    }
    Up::Answer(line(&answer))
}

fn line(answer: &[u8]) -> Vec<u8> {
    [answer, b"\n"].concat()
}

fn invalid(id: &[u8], reason: &str) -> Vec<u8> {
    line(&admission::invalid(id, reason))
}

/// Notes what the messages ask; or gives the lines that answer them, when they are not passed on.
fn admit(relay: &Relay, messages: &[Envelope], body: &Body<'_>) -> Result<(), Vec<u8>> {
    if messages.iter().any(Envelope::is_lax) {
        return Err(line(&admission::lax()));
    }
    let refused: Vec<u8> = messages.iter().filter_map(refusal).flatten().collect();
    if !refused.is_empty() {
        return Err([refused, failures(messages, "another member of the batch is not valid")].concat());
    }
    let asks = messages.iter().any(|message| message.kind() == Kind::Request);
    if asks {
        relay.asked.store(true, Ordering::Release);
    }
    match body {
        Body::Memory(_) | Body::File(_) => {}
        Body::Lost { reason, len, .. } => {
            return Err(failures(
                messages,
                &format!("the request of {len} bytes could not be held: {reason}"),
            ));
        }
        Body::TooLarge { len } => {
            return Err(failures(
                messages,
                &format!("the request of {len} bytes is over --max-message-bytes"),
            ));
        }
    }
    if let [message] = messages {
        return admit_one(relay, message);
    }
    if let Some(reason) = relay.gone() {
        return Err(failures(messages, &reason));
    }
    for message in messages {
        admit_one(relay, message)?;
    }
    Ok(())
}

#[inline]
fn admit_one(relay: &Relay, message: &Envelope) -> Result<(), Vec<u8>> {
    match (message.kind(), message.id()) {
        (Kind::Request, Some(id)) => {
            let mut pending = relay.pending();
            // Under the same lock under which the open requests are failed when the upstream is gone.
            if let Some(reason) = relay.gone() {
                return Err(line(&failure(id, &reason)));
            }
            pending.ask(id.clone(), Asked::of(message));
        }
        (Kind::Notification, _) if message.method() == Some("notifications/cancelled") => {
            if let Some(id) = message.request_id() {
                relay.pending().cancel(id);
            }
        }
        _ => {}
    }
    Ok(())
}

/// The line that refuses a message, if it is none that a client may send.
fn refusal(message: &Envelope) -> Option<Vec<u8>> {
    admission::refusal(message).map(|answer| line(&answer))
}

/// Error lines for the requests among the messages that could have been admitted.
fn failures(messages: &[Envelope], reason: &str) -> Vec<u8> {
    let ids = messages.iter().filter(|message| message.kind() == Kind::Request && refusal(message).is_none());
    let lines = ids
        .filter_map(Envelope::id)
        .map(|id: &Id| line(&error_response(id.raw(), UPSTREAM_ERROR, reason, None)));
    lines.flatten().collect()
}
