//! Owns what a message of the modern era becomes in the legacy one: a modern client's requests, a modern server's
//! answers.

use toolway_wire::INVALID_PARAMS;
use toolway_wire::find::{Step, find, is_named, members};
use toolway_wire::request::OWN_NAMES;

use super::edits::Edits;
use super::is_cacheable;
use super::to_modern::{RESOURCE_NOT_FOUND, with_code};

/// A modern client's request for a legacy server: what only the modern era knows is taken out, an empty `_meta` with it.
pub fn request_to_legacy(message: &[u8]) -> Vec<u8> {
    let Some(params) =
        find(message, &[Step::Key("params")]).filter(|at| message.get(at.start) == Some(&b'{'))
    else {
        return message.to_vec();
    };
    let mut edits = Edits::new();
    let mut remove = vec!["inputResponses", "requestState"];
    if let Some(span) = find(message, &[Step::Key("params"), Step::Key("_meta")])
        && message.get(span.start) == Some(&b'{')
    {
        let own = |member: &toolway_wire::find::Member| {
            OWN_NAMES.iter().any(|name| is_named(message, member, name))
        };
        let all = members(message, span.clone()).count();
        let ours = members(message, span.clone()).filter(own).count();
        if ours == all && all > 0 {
            remove.push("_meta");
        } else if ours > 0 {
            edits.object(message, span, &OWN_NAMES, &[]);
        }
    }
    edits.object(message, params, &remove, &[]);
    edits.apply(message)
}

/// A modern server's answer for a legacy client: `resultType` goes, and for lists and reads what says how long they may
/// be cached.
pub fn result_to_legacy(message: &[u8], method: &str) -> Vec<u8> {
    let mut edits = Edits::new();
    if let Some(result) = find(message, &[Step::Key("result")]) {
        let remove: &[&str] =
            if is_cacheable(method) { &["resultType", "ttlMs", "cacheScope"] } else { &["resultType"] };
        edits.object(message, result, remove, &[]);
    }
    edits.apply(message)
}

/// A modern server's error for a legacy client: that a resource is not there has a code of its own.
pub fn error_to_legacy(message: &[u8], method: &str) -> Vec<u8> {
    if method == "resources/read" {
        return with_code(message, INVALID_PARAMS, RESOURCE_NOT_FOUND);
    }
    message.to_vec()
}
