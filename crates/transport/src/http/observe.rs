//! What an exchange reads in the answers that it passes on: the session, the tools, the error without an id. It must not
//! send anything.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use toolway_wire::find::{Step as Key, find};
use toolway_wire::{Id, Kind, Scanner, Verdict};

use super::job::{Job, Role};
use super::messages::{Messages, Seen};
use super::session::SESSION_ID;
use super::shared::Shared;
use super::target::Target;
use crate::transport::Failure;

/// Watches the answers that change what the transport knows.
pub(crate) struct Observer<'a> {
    shared: &'a Shared,
    role: Role,
    lists_tools: bool,
    at: &'a Arc<Target>,
    session: Option<HeaderValue>,
}

impl<'a> Observer<'a> {
    pub(crate) fn new(shared: &'a Shared, job: &Job, at: &'a Arc<Target>, headers: &HeaderMap) -> Self {
        let lists_tools = job.modern.as_ref().is_some_and(|modern| modern.lists_tools);
        let session = headers.get(SESSION_ID).cloned();
        Self { shared, role: job.role, lists_tools, at, session }
    }

    pub(crate) fn observe(&mut self, seen: &Seen, messages: &Messages) {
        let Seen::Answer { success: true, version } = seen else { return };
        if self.role == Role::Initialize {
            self.shared.session.install(self.session.take(), &self.at.origin, version.as_deref());
        }
        if self.lists_tools
            && let Some(list) = messages.whole()
        {
            self.shared.tools.learn(list);
        }
    }
}

/// The body of a stream that is not declared as one.
pub(crate) fn looks_like_events(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    [&b"data:"[..], b"event:", b"id:", b"retry:", b":"].iter().any(|field| text.starts_with(field))
}

/// The error that a message carries, as one for the only request that waits.
pub(crate) fn error_of(message: &[u8]) -> Failure {
    let part = |name| {
        find(message, &[Key::Key("error"), Key::Key(name)])
            .and_then(|at| std::str::from_utf8(message.get(at)?).ok())
    };
    let text = part("message").and_then(|raw| serde_json::from_str::<String>(raw).ok());
    Failure {
        code: part("code").and_then(|code| code.parse().ok()).unwrap_or(toolway_wire::UPSTREAM_ERROR),
        message: text.unwrap_or_else(|| "the server answered with an error".to_owned()),
        data: part("data").filter(|raw| serde_json::from_str::<Value>(raw).is_ok()).map(str::to_owned),
    }
}

/// Some servers answer 400 where the specification wants 404.
pub(crate) fn mentions_session(body: &[u8]) -> bool {
    body.windows(7).any(|window| window.eq_ignore_ascii_case(b"session"))
}

/// What the body of an error answer is to those who wait.
pub(crate) enum ErrorBody {
    /// A message, or a batch, that answers one of them.
    Answer,
    /// An error without the id of a request.
    Nameless,
    Other,
}

/// Looks before anything is passed on: most error answers are no messages.
pub(crate) fn answer_in(body: &[u8], pending: &[Id]) -> ErrorBody {
    let mut scanner = Scanner::new();
    scanner.feed(body);
    let members = match scanner.finish() {
        Verdict::Message(envelope) => std::slice::from_ref(envelope),
        Verdict::Batch { members, .. } => members,
        Verdict::Blank | Verdict::NotJson(_) | Verdict::NotRpc(_) => &[],
    };
    let responses = || {
        let kinds = [Kind::Response, Kind::ErrorResponse, Kind::Fault];
        members.iter().filter(move |envelope| kinds.contains(&envelope.kind()))
    };
    if responses().any(|envelope| envelope.id().is_some_and(|id| pending.contains(id))) {
        ErrorBody::Answer
    } else if responses()
        .any(|envelope| envelope.kind() == Kind::ErrorResponse && envelope.id().is_none_or(Id::is_null))
    {
        ErrorBody::Nameless
    } else {
        ErrorBody::Other
    }
}
