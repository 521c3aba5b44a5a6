//! Owns the way from the upstream to the client: what passes, what is replaced, what is dropped and counted. Knows
//! no transport.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use toolway_guard::{Action, Body, CallInfo, Intake, Taken};
use toolway_wire::{Envelope, Kind, Verdict};

use super::core::{Relay, failure};
use super::parts::{Line, Part, slice, utf8, whole_file};
use super::rewrite;
use crate::pending::{Asked, Owed};
use crate::record::Direction;

/// What is shown of a line that is no message.
const SHOWN: usize = 120;
/// How many such lines are shown as warnings; the others only at debug level.
const WARNED: u64 = 5;

/// Takes the upstream's messages in.
#[derive(Debug)]
pub(super) struct Downlink {
    relay: Arc<Relay>,
    intake: Intake,
    start: Vec<u8>,
}

/// What a message becomes when it is not just passed on.
enum Outcome<'a> {
    /// It goes on as it is.
    Pass,
    /// It goes on in other words.
    Become(Part<'a>),
    /// It does not go on.
    Drop,
}

impl Downlink {
    pub(super) fn new(relay: Arc<Relay>) -> Self {
        Self { intake: relay.config.guard.intake(), relay, start: Vec::with_capacity(SHOWN) }
    }

    /// The next bytes of the message.
    #[inline]
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        if self.start.len() < SHOWN {
            let room = SHOWN - self.start.len();
            self.start.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        }
        self.intake.feed(bytes);
    }

    /// Forgets what came of a message that will not be complete.
    pub(super) fn abort(&mut self) {
        self.start.clear();
        self.intake.reset();
    }

    /// The message has ended.
    #[inline]
    pub(super) fn finish(&mut self) -> Line<'_> {
        let start = std::mem::take(&mut self.start);
        let line = conclude(&self.relay, &start, self.intake.finish());
        self.start = start;
        self.start.clear();
        line
    }

    /// A whole message that is at hand.
    #[inline]
    pub(super) fn whole<'a>(&'a mut self, message: &'a [u8]) -> Line<'a> {
        let start = message.get(..SHOWN).unwrap_or(message);
        conclude(&self.relay, start, self.intake.whole(message))
    }
}

/// What goes to the client for a message; `start` is shown when it is none.
#[inline]
fn conclude<'a>(relay: &Relay, start: &[u8], taken: Taken<'a>) -> Line<'a> {
    let Taken { verdict, mut body } = taken;
    if let Some(record) = &relay.config.record
        && !matches!(verdict, Verdict::Blank)
    {
        let bytes = match (&verdict, &body) {
            (Verdict::NotJson(_) | Verdict::NotRpc(_), _) => Some(start),
            (_, Body::Memory(bytes)) => Some(*bytes),
            _ => None,
        };
        record.message(Direction::FromServer, bytes, body.len());
    }
    match verdict {
        Verdict::Blank => Line::Nothing,
        Verdict::NotJson(error) => ignore(relay, start, &error.to_string()),
        Verdict::NotRpc(reason) => ignore(relay, start, reason),
        Verdict::Message(message) => {
            let judged = judge(relay, message, start);
            one(relay, message, judged, &mut body).unwrap_or_else(|| pass(message, body))
        }
        Verdict::Batch { members, strangers } => batch(relay, members, strangers, body, start),
    }
}

/// What is known of a message before its bytes are looked at.
enum Judged {
    /// It goes on without a look at its rules.
    Pass,
    /// It is an answer to this, or a message that answers nothing.
    Look(Option<Asked>),
    /// It goes on as this.
    Error(Vec<u8>),
    /// It does not go on.
    Drop,
}

/// Notes an answer, and says what is to be done with a message.
#[inline]
fn judge(relay: &Relay, message: &Envelope, start: &[u8]) -> Judged {
    let small = message.size().chars <= relay.plain_limit;
    match (message.kind(), message.id()) {
        (Kind::Request | Kind::Notification, _) | (Kind::ErrorResponse, None) => {
            if small {
                Judged::Pass
            } else {
                Judged::Look(None)
            }
        }
        (Kind::Stranger, _) => Judged::Drop,
        (kind, Some(id)) => match relay.pending().answer(id) {
            Owed::Waiting(_) if kind == Kind::Fault => {
                relay.counters.faults.fetch_add(1, Ordering::Relaxed);
                let why = if message.has_version() {
                    "its answer has neither or both of result and error"
                } else {
                    "its answer lacks \"jsonrpc\":\"2.0\""
                };
                Judged::Error(failure(id, &format!("the server broke the protocol: {why}")))
            }
            Owed::Waiting(asked) | Owed::Cancelled(asked) => {
                if small && asked.method() == "tools/call" {
                    Judged::Pass
                } else {
                    Judged::Look(Some(asked))
                }
            }
            Owed::Nothing if kind == Kind::ErrorResponse && id.is_null() => Judged::Look(None),
            Owed::Nothing if kind == Kind::Fault => {
                ignore(relay, start, "it answers nothing and is no JSON-RPC 2.0 message");
                Judged::Drop
            }
            Owed::Nothing => stray(relay, message),
        },
        (_, None) => stray(relay, message),
    }
}

fn stray(relay: &Relay, message: &Envelope) -> Judged {
    let count = relay.counters.stray_answers.fetch_add(1, Ordering::Relaxed);
    let id = message.id().map(ToString::to_string).unwrap_or_default();
    if count < WARNED {
        tracing::warn!(%id, "dropped an answer to no open request");
    } else {
        tracing::debug!(%id, "dropped an answer to no open request");
    }
    Judged::Drop
}

fn ignore<'a>(relay: &Relay, start: &[u8], reason: &str) -> Line<'a> {
    let count = relay.counters.ignored_lines.fetch_add(1, Ordering::Relaxed);
    let text = String::from_utf8_lossy(start);
    if count < WARNED {
        tracing::warn!(%reason, line = %text.escape_debug(), "ignored what the server sent that is no message");
    } else {
        tracing::debug!(%reason, line = %text.escape_debug(), "ignored what the server sent that is no message");
    }
    Line::Nothing
}

/// The line of one message; `None`: it passes as it is.
fn one<'a>(relay: &Relay, message: &Envelope, judged: Judged, body: &mut Body<'_>) -> Option<Line<'a>> {
    let asked = match judged {
        Judged::Pass => return None,
        Judged::Drop => return Some(Line::Nothing),
        Judged::Error(bytes) => return Some(Line::One(Part::Bytes(bytes))),
        Judged::Look(asked) => asked,
    };
    if let Some(asked) = &asked
        && let Some(bytes) = rewrite::listing(relay, message, asked.method(), body)
    {
        return Some(Line::One(Part::Bytes(bytes)));
    }
    if matches!(body, Body::TooLarge { .. }) {
        return None;
    }
    let call = asked.map(|asked| asked.call_info(&relay.config.server, &relay.config.session));
    let Action::Replace { shape, limit } = relay.config.guard.action(message, call.as_ref()) else {
        return None;
    };
    let bytes = relay.config.guard.replace(message, call.as_ref(), shape, limit, body)?;
    relay.replaced();
    Some(Line::One(Part::Bytes(bytes)))
}

/// A message that passes; one that could not be held becomes an error where it answers something.
fn pass<'a>(message: &Envelope, body: Body<'a>) -> Line<'a> {
    if let (true, Body::Memory(bytes)) = (message.is_ascii(), &body) {
        return Line::One(Part::Slice(bytes));
    }
    Line::for_client(body).unwrap_or_else(|reason| {
        tracing::warn!(%reason, "a message of the server could not be passed on");
        match (message.kind(), message.id()) {
            (Kind::Response | Kind::ErrorResponse, Some(id)) => Line::One(Part::Bytes(failure(id, &reason))),
            _ => Line::Nothing,
        }
    })
}

/// A batch: its members are judged one by one, and the rest of its bytes stays. What is no message is cut out of it.
fn batch<'a>(
    relay: &Relay,
    members: &[Envelope],
    strangers: usize,
    body: Body<'a>,
    start: &[u8],
) -> Line<'a> {
    if strangers > 0 {
        ignore(relay, start, &format!("{strangers} members of its batch are no messages and were cut out"));
    }
    let mut outcomes = Vec::with_capacity(members.len());
    for member in members {
        outcomes.push(member_outcome(relay, member, judge(relay, member, start), &body));
    }
    if strangers == 0 && outcomes.iter().all(|outcome| matches!(outcome, Outcome::Pass)) {
        return Line::for_client(body).unwrap_or_else(|reason| lost_batch(members, &reason));
    }
    if outcomes.iter().all(|outcome| matches!(outcome, Outcome::Drop)) {
        return Line::Nothing;
    }
    let file = match &body {
        Body::File(file) => match whole_file(file) {
            Ok(file) => Some(file),
            Err(reason) => return lost_batch(members, &reason),
        },
        _ => None,
    };
    let mut parts = vec![Part::Slice(b"[")];
    for (member, outcome) in members.iter().zip(outcomes) {
        let part = match outcome {
            Outcome::Drop => continue,
            Outcome::Become(part) => part,
            Outcome::Pass => match (&body, &file) {
                (Body::Memory(bytes), _) => utf8(slice(bytes, member)),
                (_, Some(file)) => {
                    let span = member.span();
                    Part::File { file: Arc::clone(file), start: span.start, len: span.end - span.start }
                }
                _ => return lost_batch(members, "it could not be held"),
            },
        };
        if parts.len() > 1 {
            parts.push(Part::Slice(b","));
        }
        parts.push(part);
    }
    parts.push(Part::Slice(b"]"));
    Line::Many(parts)
}

fn lost_batch<'a>(members: &[Envelope], reason: &str) -> Line<'a> {
    let answers =
        members.iter().filter(|member| matches!(member.kind(), Kind::Response | Kind::ErrorResponse));
    let mut parts = vec![Part::Slice(&b"["[..])];
    for id in answers.filter_map(Envelope::id) {
        if parts.len() > 1 {
            parts.push(Part::Slice(b","));
        }
        parts.push(Part::Bytes(failure(id, reason)));
    }
    if parts.len() == 1 {
        return Line::Nothing;
    }
    parts.push(Part::Slice(b"]"));
    Line::Many(parts)
}

fn member_outcome<'a>(relay: &Relay, member: &Envelope, judged: Judged, body: &Body<'a>) -> Outcome<'a> {
    let asked = match judged {
        Judged::Pass => return Outcome::Pass,
        Judged::Drop => return Outcome::Drop,
        Judged::Error(bytes) => return Outcome::Become(Part::Bytes(bytes)),
        Judged::Look(asked) => asked,
    };
    if let (Some(asked), Body::Memory(bytes)) = (&asked, body)
        && let Some(bytes) =
            rewrite::listing(relay, member, asked.method(), &Body::Memory(slice(bytes, member)))
    {
        return Outcome::Become(Part::Bytes(bytes));
    }
    let call: Option<CallInfo> =
        asked.map(|asked| asked.call_info(&relay.config.server, &relay.config.session));
    let Action::Replace { shape, limit } = relay.config.guard.action(member, call.as_ref()) else {
        return Outcome::Pass;
    };
    match relay.config.guard.replace_member(member, call.as_ref(), shape, limit, body) {
        Some(bytes) => {
            relay.replaced();
            Outcome::Become(Part::Bytes(bytes))
        }
        None => Outcome::Pass,
    }
}
