//! Owns what becomes of a client's bytes: messages for the hub, or the answers that refuse them. Knows no transport.

use std::borrow::Cow;

use bytes::Bytes;
use toolway_guard::{Body, Taken};
use toolway_wire::{Envelope, Kind, Scanner, UPSTREAM_ERROR, Verdict, error_response};

use crate::admission::{invalid, lax, not_json, refusal};
use crate::gateway::message::{Content, Message};

/// What the bytes of one message, or one batch, are to the hub.
#[derive(Debug)]
pub(super) enum Admitted {
    /// Nothing.
    Nothing,
    /// No message: the client gets these error responses.
    Refused(Vec<Vec<u8>>),
    /// One message.
    One(Message),
    /// The members of a batch, and error responses for those that were none.
    Batch(Vec<Message>, Vec<Vec<u8>>),
}

/// Looks at what an intake has taken in.
pub(super) fn admit(taken: Taken<'_>) -> Admitted {
    let Taken { verdict, body } = taken;
    match verdict {
        Verdict::Blank => Admitted::Nothing,
        Verdict::NotJson(error) => Admitted::Refused(vec![not_json(&error)]),
        Verdict::NotRpc(reason) => Admitted::Refused(vec![invalid(b"null", reason)]),
        Verdict::Message(message) => one(message, body),
        Verdict::Batch { members, .. } if members.iter().any(Envelope::is_lax) => {
            Admitted::Refused(vec![lax()])
        }
        Verdict::Batch { members, strangers } => batch(members, strangers, &body),
    }
}

fn one(envelope: &Envelope, body: Body<'_>) -> Admitted {
    if envelope.is_lax() {
        return Admitted::Refused(vec![lax()]);
    }
    if let Some(answer) = refusal(envelope) {
        return Admitted::Refused(vec![answer]);
    }
    match unusable(&body) {
        Some(reason) => Admitted::Refused(failures(std::slice::from_ref(envelope), &reason)),
        None => Admitted::One(Message { content: content(body), envelope: envelope.clone() }),
    }
}

/// Why the message cannot be passed on.
fn unusable(body: &Body<'_>) -> Option<String> {
    match body {
        Body::Memory(_) | Body::File(_) => None,
        Body::Lost { reason, len, .. } => {
            Some(format!("the request of {len} bytes could not be held: {reason}"))
        }
        Body::TooLarge { len } => Some(format!("the request of {len} bytes is over --max-message-bytes")),
    }
}

/// The bytes, in one line: raw line breaks are white space between tokens.
fn content(body: Body<'_>) -> Content {
    match body {
        Body::Memory(bytes) => Content::Bytes(in_one_line(bytes)),
        other => Content::of(other),
    }
}

fn in_one_line(bytes: &[u8]) -> Bytes {
    let flat: Cow<'_, [u8]> = if memchr::memchr2(b'\n', b'\r', bytes).is_some() {
        let mut flat = bytes.to_vec();
        crate::relay::flatten_in_place(&mut flat);
        flat.into()
    } else {
        bytes.into()
    };
    Bytes::from(flat.into_owned())
}

fn batch(members: &[Envelope], strangers: usize, body: &Body<'_>) -> Admitted {
    let mut answers: Vec<Vec<u8>> = Vec::new();
    answers.resize(strangers, invalid(b"null", "a member of the batch is no message"));
    let Body::Memory(bytes) = body else {
        let reason = unusable(body).unwrap_or_else(|| {
            format!("the batch of {} bytes is too large: send its members alone", body.len())
        });
        answers.extend(failures(members, &reason));
        return Admitted::Refused(answers);
    };
    let mut messages = Vec::with_capacity(members.len());
    let mut scanner = Scanner::new();
    for member in members {
        if let Some(answer) = refusal(member) {
            answers.push(answer);
            continue;
        }
        let span = member.span();
        let (start, end) = (usize::try_from(span.start), usize::try_from(span.end));
        let (Ok(start), Ok(end)) = (start, end) else { continue };
        let bytes = in_one_line(bytes.get(start..end).unwrap_or_default());
        // Spans count from the member's own beginning from here on.
        if let Verdict::Message(envelope) = scanner.whole(&bytes) {
            let envelope = envelope.clone();
            messages.push(Message { content: Content::Bytes(bytes), envelope });
        }
    }
    if messages.is_empty() { Admitted::Refused(answers) } else { Admitted::Batch(messages, answers) }
}

/// Error responses for the requests among these messages.
fn failures(messages: &[Envelope], reason: &str) -> Vec<Vec<u8>> {
    let requests =
        messages.iter().filter(|message| message.kind() == Kind::Request && refusal(message).is_none());
    let ids = requests.filter_map(Envelope::id);
    ids.map(|id| error_response(id.raw(), UPSTREAM_ERROR, reason, None)).collect()
}
