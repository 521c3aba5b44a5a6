//! Owns what is refused of a client's input before anybody looks into it: what is not JSON, and what JSON-RPC does not
//! allow in a request. Shared by relay and gateway; knows neither.

use toolway_wire::{Envelope, INVALID_REQUEST, IdField, Kind, PARSE_ERROR, error_response};

/// The longest id of a request, in characters: an answer must have room beside it.
const ID_CHARS: usize = 500;

/// The error response to a request that is none. `id` is raw JSON.
pub(crate) fn invalid(id: &[u8], reason: &str) -> Vec<u8> {
    error_response(id, INVALID_REQUEST, &format!("invalid request: {reason}"), None)
}

/// The error response to bytes that are not JSON.
pub(crate) fn not_json(reason: &dyn std::fmt::Display) -> Vec<u8> {
    error_response(b"null", PARSE_ERROR, &format!("parse error: {reason}"), None)
}

/// The error response to what some call JSON.
pub(crate) fn lax() -> Vec<u8> {
    not_json(&"NaN, Infinity and raw control characters in strings are not JSON")
}

/// The error response that refuses a message, if it is none that a client may send.
pub(crate) fn refusal(message: &Envelope) -> Option<Vec<u8>> {
    match message.kind() {
        Kind::Fault | Kind::Stranger => {
            Some(invalid(b"null", "a response has either a result or an error, and \"jsonrpc\":\"2.0\""))
        }
        Kind::Request => match message.id_field() {
            IdField::Value(id) if id.is_null() => Some(invalid(b"null", "the id of a request is not null")),
            IdField::Value(id) if id.raw().len() > ID_CHARS && id.chars() > ID_CHARS => {
                Some(invalid(id.raw(), "the id has more than 500 characters"))
            }
            IdField::Value(_) | IdField::Absent => None,
            IdField::WrongType => Some(invalid(b"null", "the id is a string or a number")),
            IdField::TooLong => Some(invalid(b"null", "the id has more than 500 characters")),
        },
        Kind::Notification | Kind::Response | Kind::ErrorResponse => None,
    }
}
