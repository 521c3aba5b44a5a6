//! Where the two generations of the protocol meet: pure functions over the bytes of one message. What is not named here
//! keeps its bytes: unknown members, the spelling of numbers, the order of members. Knows no session and no connection.
//!
//! *Legacy* is up to 2025-11-25 (`initialize`, server requests, the GET stream), *modern* is 2026-07-28 and later
//! (everything in `params._meta`, `input_required` rounds, `subscriptions/listen`).

mod edits;
mod handshake;
mod listen;
mod meta;
mod parked;
mod rounds;
mod to_legacy;
mod to_modern;

pub use edits::{Edits, set_members, without_members};
pub use handshake::{
    Facts, SUPPORTED, discover_result, facts_of_discover, facts_of_initialize, initialize_request,
    initialize_result,
};
pub use listen::{
    Filter, acknowledged, cancelled, listen_filter, listen_request, listen_result, subscribe,
    subscription_id, unsubscribe, with_subscription_id, without_subscription_id,
};
pub use meta::{declares, log_rank, set_level};
pub use parked::Parked;
pub use rounds::{
    Asked, InputRequired, Retry, capability_for, input_required, read_input_required, read_retry,
    result_response, retry, server_request, url_elicitations,
};
pub use to_legacy::{error_to_legacy, request_to_legacy, result_to_legacy};
pub use to_modern::{LegacyRequest, error_to_modern, legacy_request, request_to_modern, result_to_modern};
pub use toolway_wire::era::negotiate;
pub use toolway_wire::request::{ClientFacts, Refusal, RequestMeta, check, is_modern, request_meta};

/// The answer to this method carries `ttlMs` and `cacheScope` in the modern era.
pub fn is_cacheable(method: &str) -> bool {
    matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    )
}

/// The answer to this method may be `input_required` (2026-07-28, "Multi Round-Trip Requests").
pub fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

#[cfg(test)]
mod tests;
