//! Owns what a message of the legacy era becomes in the modern one: a legacy client's requests, a legacy server's
//! answers.

use toolway_wire::era::meta;
use toolway_wire::find::{Step, find};
use toolway_wire::request::ClientFacts;
use toolway_wire::{INVALID_PARAMS, push_string};

use super::edits::Edits;
use super::is_cacheable;

/// The code of "resource not found" up to 2025-11-25.
pub(super) const RESOURCE_NOT_FOUND: i64 = -32002;

/// What becomes of a legacy client's request before a modern server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LegacyRequest {
    /// It goes on, with the client's facts in it.
    Pass,
    /// The handshake: answered here, see [`super::initialize_result`].
    Initialize,
    /// `ping`: answered here with an empty result.
    Ping,
    /// `logging/setLevel`: noted for later requests, and answered with an empty result.
    SetLevel,
    /// `resources/subscribe`: belongs to a `subscriptions/listen` from now on; answered with an empty result.
    Subscribe,
    /// `resources/unsubscribe`, the reverse.
    Unsubscribe,
}

/// What becomes of a request of this method.
pub fn legacy_request(method: &str) -> LegacyRequest {
    match method {
        "initialize" => LegacyRequest::Initialize,
        "ping" => LegacyRequest::Ping,
        "logging/setLevel" => LegacyRequest::SetLevel,
        "resources/subscribe" => LegacyRequest::Subscribe,
        "resources/unsubscribe" => LegacyRequest::Unsubscribe,
        _ => LegacyRequest::Pass,
    }
}

/// A legacy client's request for a modern server: the client's facts are added to `params._meta`.
pub fn request_to_modern(message: &[u8], client: &ClientFacts, log_level: Option<&str>) -> Vec<u8> {
    let version = format!("\"{}\"", client.version);
    let level = log_level.map(|level| {
        let mut quoted = Vec::new();
        push_string(level, &mut quoted);
        quoted
    });
    let mut set: Vec<(&str, &[u8])> =
        vec![(meta::PROTOCOL_VERSION, version.as_bytes()), (meta::CLIENT_CAPABILITIES, &client.capabilities)];
    if let Some(info) = &client.client_info {
        set.push((meta::CLIENT_INFO, info));
    }
    if let Some(level) = &level {
        set.push((meta::LOG_LEVEL, level));
    }
    with_meta(message, &set)
}

/// The message with these members in `params._meta`, which is made where it is missing.
pub(super) fn with_meta(message: &[u8], set: &[(&str, &[u8])]) -> Vec<u8> {
    let object = || {
        let mut edits = Edits::new();
        edits.object(b"{}", 0..2, &[], set);
        edits.apply(b"{}")
    };
    let is_object = |at: &std::ops::Range<usize>| message.get(at.start) == Some(&b'{');
    let mut edits = Edits::new();
    match find(message, &[Step::Key("params")]) {
        Some(params) if is_object(&params) => {
            match find(message, &[Step::Key("params"), Step::Key("_meta")]) {
                Some(span) if is_object(&span) => edits.object(message, span, &[], set),
                _ => edits.object(message, params, &[], &[("_meta", &object())]),
            }
        }
        // Positional parameters: nothing in MCP has them, and there is no place for `_meta` in them.
        Some(params) if message.get(params.start) == Some(&b'[') => {}
        _ => {
            let params = [b"{\"_meta\":", object().as_slice(), b"}"].concat();
            if let Some(whole) = find(message, &[]) {
                edits.object(message, whole, &[], &[("params", &params)]);
            }
        }
    }
    edits.apply(message)
}

/// A legacy server's answer for a modern client: `resultType` says that it is complete, lists and reads may not be
/// cached. What the server has said itself stays.
pub fn result_to_modern(message: &[u8], method: &str) -> Vec<u8> {
    let Some(result) =
        find(message, &[Step::Key("result")]).filter(|at| message.get(at.start) == Some(&b'{'))
    else {
        return message.to_vec();
    };
    let has = |name: &str| find(message, &[Step::Key("result"), Step::Key(name)]).is_some();
    let mut set: Vec<(&str, &[u8])> = Vec::new();
    if !has("resultType") {
        set.push(("resultType", b"\"complete\""));
    }
    if is_cacheable(method) {
        if !has("ttlMs") {
            set.push(("ttlMs", b"0"));
        }
        if !has("cacheScope") {
            set.push(("cacheScope", b"\"private\""));
        }
    }
    let mut edits = Edits::new();
    edits.object(message, result, &[], &set);
    edits.apply(message)
}

/// A legacy server's error for a modern client: "resource not found" has no code of its own any more.
pub fn error_to_modern(message: &[u8]) -> Vec<u8> {
    with_code(message, RESOURCE_NOT_FOUND, INVALID_PARAMS)
}

/// The error response with another code, where it has the one that is named.
pub(super) fn with_code(message: &[u8], from: i64, to: i64) -> Vec<u8> {
    let mut edits = Edits::new();
    if let Some(at) = find(message, &[Step::Key("error"), Step::Key("code")])
        && message.get(at.clone()).is_some_and(|raw| raw == from.to_string().as_bytes())
    {
        edits.replace(at, to.to_string().into_bytes());
    }
    edits.apply(message)
}
