//! Owns the messages of a request's body: what came, as envelopes over its bytes, and how answers are spelled around ready
//! bytes. Splices only: no tree is built here.

use std::cell::RefCell;

use bytes::Bytes;
use toolway_wire::era::meta;
use toolway_wire::find::{Step, find, is_named, members};
use toolway_wire::{
    Envelope, INVALID_REQUEST, Id, IdField, Kind, PARSE_ERROR, Scanner, Verdict, error_response, push_string,
};

use crate::json::RawJson;
use crate::profile::Profile;

/// Answers up to this are copied into one piece.
const SMALL: usize = 16 << 10;

thread_local! {
    static SCANNER: RefCell<Scanner> = RefCell::new(Scanner::new());
}

/// One message of a client.
#[derive(Debug)]
pub(super) struct Message {
    /// The whole body.
    bytes: Bytes,
    pub(super) envelope: Envelope,
}

/// What a body holds.
#[derive(Debug)]
pub(super) enum Content {
    One(Message),
    /// A batch; `strangers` of its members are no messages.
    Batch {
        messages: Vec<Message>,
        strangers: usize,
    },
    /// Nothing that could be answered but with this error.
    Bad(Vec<u8>),
}

/// Reads a body.
pub(super) fn read(bytes: &Bytes) -> Content {
    let content = SCANNER.with_borrow_mut(|scanner| match scanner.whole(bytes) {
        Verdict::Message(envelope) => {
            Content::One(Message { bytes: bytes.clone(), envelope: envelope.clone() })
        }
        Verdict::Batch { members, strangers } => {
            let message = |envelope: &Envelope| Message { bytes: bytes.clone(), envelope: envelope.clone() };
            Content::Batch { messages: members.iter().map(message).collect(), strangers }
        }
        Verdict::Blank => bad(PARSE_ERROR, "the body is empty"),
        Verdict::NotJson(error) => bad(PARSE_ERROR, &format!("the body is no JSON: {error}")),
        Verdict::NotRpc(reason) => {
            bad(INVALID_REQUEST, &format!("the body is no JSON-RPC 2.0 message: {reason}"))
        }
    });
    let odd = match &content {
        Content::One(message) => !message.is_strict(),
        Content::Batch { messages, .. } => messages.iter().any(|message| !message.is_strict()),
        Content::Bad(_) => false,
    };
    if odd { bad(PARSE_ERROR, "the body is no JSON as RFC 8259 has it, in UTF-8") } else { content }
}

fn bad(code: i64, text: &str) -> Content {
    Content::Bad(error_response(b"null", code, text, None))
}

impl Message {
    /// What the host is to read must be JSON for every reader.
    fn is_strict(&self) -> bool {
        !self.envelope.is_lax() && (self.envelope.is_ascii() || std::str::from_utf8(&self.bytes).is_ok())
    }

    /// The message's own bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        range(self.envelope.span()).and_then(|span| self.bytes.get(span)).unwrap_or_default()
    }

    /// The id of a request; `None`: it is none, or cannot be answered.
    pub(super) fn request(&self) -> Option<&Id> {
        (self.envelope.kind() == Kind::Request).then(|| self.envelope.id()).flatten()
    }

    /// A request with an id that cannot be kept, or `null`, is refused rather than left without an answer.
    pub(super) fn fault(&self) -> Option<Vec<u8>> {
        let text = match (self.envelope.kind(), self.envelope.id_field()) {
            (Kind::Stranger | Kind::Fault, _) => "this is no JSON-RPC 2.0 message",
            (Kind::Request, IdField::WrongType | IdField::TooLong) => {
                "the id is no string and no number, or too long"
            }
            (Kind::Request, IdField::Value(id)) if id.raw() == b"null" => {
                "the id of a request is not null in MCP"
            }
            _ => return None,
        };
        Some(error_response(b"null", INVALID_REQUEST, text, None))
    }

    /// `params.arguments`, byte for byte but for half characters, which not every host can read.
    pub(super) fn arguments(&self) -> Option<RawJson> {
        self.member("arguments").map(|raw| RawJson::scanned(raw).with_whole_characters())
    }

    /// `params.cursor` is there and not `null`.
    pub(super) fn has_cursor(&self) -> bool {
        self.member("cursor").is_some_and(|raw| raw.as_ref() != b"null")
    }

    /// `params._meta.progressToken`, where it is a string or a number.
    pub(super) fn progress_token(&self) -> Option<RawJson> {
        let raw = self.bytes.slice(range(self.envelope.token_span()?)?);
        Id::from_json(&raw).filter(|_| raw.as_ref() != b"null").map(|_| RawJson::scanned(raw))
    }

    fn member(&self, name: &str) -> Option<Bytes> {
        let params = range(self.envelope.params_span()?)?;
        let found =
            members(&self.bytes, params).filter(|member| is_named(&self.bytes, member, name)).last()?;
        Some(self.bytes.slice(found.value))
    }
}

fn range(span: std::ops::Range<u64>) -> Option<std::ops::Range<usize>> {
    Some(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)
}

/// A message that goes out, in pieces.
pub(super) type Pieces = Vec<Bytes>;

/// The answer to a request: `before`, `ready` and `after` are the text of its result.
pub(super) fn result(id: &Id, before: &[u8], ready: &Bytes, after: &[u8]) -> Pieces {
    let small = ready.len() <= SMALL;
    let room = id.raw().len() + before.len() + after.len() + 48 + if small { ready.len() } else { 0 };
    let mut head = Vec::with_capacity(room);
    head.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    head.extend_from_slice(id.raw());
    head.extend_from_slice(b",\"result\":");
    head.extend_from_slice(before);
    if small {
        head.extend_from_slice(ready);
        head.extend_from_slice(after);
        head.push(b'}');
        return vec![head.into()];
    }
    vec![head.into(), ready.clone(), [after, b"}"].concat().into()]
}

/// An answer whose result is small and at hand.
pub(super) fn small_result(id: &Id, text: &[u8]) -> Pieces {
    result(id, text, &Bytes::new(), b"")
}

/// `Implementation` of the server.
pub(super) fn server_info(profile: &Profile, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    push_string(profile.server_name, out);
    out.extend_from_slice(b",\"version\":");
    push_string(profile.server_version, out);
    out.push(b'}');
}

/// The same as a member of `_meta`.
pub(super) fn identity(profile: &Profile) -> Bytes {
    let mut member = Vec::new();
    push_string(meta::SERVER_INFO, &mut member);
    member.push(b':');
    server_info(profile, &mut member);
    member.into()
}

/// A finished result of the modern generation, which says that it is one and who gives it.
pub(super) fn complete(id: &Id, identity: &Bytes, ready: &Bytes) -> Pieces {
    const COMPLETE: &[u8] = b"{\"resultType\":\"complete\",";
    let inner = |from: usize| ready.get(from..).unwrap_or_default().trim_ascii_start().first().copied();
    let comma = |next: Option<u8>| if next == Some(b'}') { b"".as_slice() } else { b"," };
    let own = find(ready, &[Step::Key("_meta")]).map(|value| value.start);
    let (before, from) = match own.filter(|at| ready.get(*at) == Some(&b'{')) {
        Some(at) => {
            let kept = ready.get(1..=at).unwrap_or_default();
            ([COMPLETE, kept, identity.as_ref(), comma(inner(at + 1))].concat(), at + 1)
        }
        None => ([COMPLETE, b"\"_meta\":{", identity.as_ref(), b"}", comma(inner(1))].concat(), 1),
    };
    result(id, &before, &ready.slice(from.min(ready.len())..), b"")
}

/// The refusal of a request.
pub(super) fn error(id: &Id, code: i64, text: &str) -> Pieces {
    vec![error_response(id.raw(), code, text, None).into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_result_names_its_server_beside_what_it_has() {
        let id = Id::from_json(b"1").unwrap();
        let identity = Bytes::from_static(b"\"server\":{}");
        for (ready, wanted) in [
            ("{}", r#"{"resultType":"complete","_meta":{"server":{}}}"#),
            (r#"{"a":1.0}"#, r#"{"resultType":"complete","_meta":{"server":{}},"a":1.0}"#),
            (r#"{"_meta":{}}"#, r#"{"resultType":"complete","_meta":{"server":{}}}"#),
            (
                r#"{"a":[{"_meta":1}],"_meta": {"b":9007199254740993},"c":""}"#,
                r#"{"resultType":"complete","a":[{"_meta":1}],"_meta": {"server":{},"b":9007199254740993},"c":""}"#,
            ),
        ] {
            let answer = complete(&id, &identity, &Bytes::from_static(ready.as_bytes())).concat();
            assert_eq!(
                String::from_utf8(answer).unwrap(),
                format!(r#"{{"jsonrpc":"2.0","id":1,"result":{wanted}}}"#)
            );
        }
    }
}
