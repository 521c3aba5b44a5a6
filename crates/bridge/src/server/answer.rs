//! Owns the shapes of the server's HTTP answers. There are no CORS headers in any: no page of another origin may read one.
//!
//! What is turned away before its message was read is answered with `{"error": "text"}`: clients show such a body as it
//! is, and none takes it for the answer to a request. What is refused after that is a JSON-RPC error with the request's id,
//! by which a client finds the caller that waits.

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Incoming;
use toolway_transport::http_server::set_event_stream;
use toolway_wire::push_string;

use super::body::Body;
use super::door::Refused;
use super::events::Events;
use super::message::Pieces;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A status and nothing else.
pub(super) fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// One message.
pub(super) fn message(status: StatusCode, mut pieces: Pieces) -> Response<Body> {
    let body = match (pieces.pop(), pieces.is_empty()) {
        (Some(piece), true) => Body::Whole(piece),
        (last, _) => Body::Pieces(pieces.into_iter().chain(last).collect()),
    };
    json(status, body)
}

/// Several messages as an array.
pub(super) fn batch(status: StatusCode, messages: Vec<Pieces>) -> Response<Body> {
    let mut pieces = Pieces::new();
    for message in messages {
        pieces.push(Bytes::from_static(if pieces.is_empty() { b"[" } else { b"," }));
        pieces.extend(message);
    }
    pieces.push(Bytes::from_static(b"]"));
    json(status, Body::Pieces(pieces.into()))
}

fn text(text: &str) -> Bytes {
    let mut body = b"{\"error\":".to_vec();
    push_string(text, &mut body);
    body.push(b'}');
    body.into()
}

/// A refusal that belongs to no message.
pub(super) fn error(status: StatusCode, reason: &str) -> Response<Body> {
    json(status, Body::Whole(text(reason)))
}

/// The answer to one that the door turns away.
pub(super) fn refused(refused: Refused) -> Response<Body> {
    let (status, text) = refused.answer();
    error(status, text)
}

/// A body that is larger than allowed: what is left of it is thrown away, none of it is kept.
pub(super) fn too_large(most: u64, rest: Incoming) -> Response<Body> {
    let reason = text(&format!("the body of a request has at most {most} bytes"));
    json(StatusCode::PAYLOAD_TOO_LARGE, Body::discarding(reason, rest))
}

/// The method is none of those that are served.
pub(super) fn not_allowed() -> Response<Body> {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "this method is not served here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, DELETE"));
    response
}

/// An event stream, which nobody on the way may hold back or keep.
pub(super) fn events(events: Events) -> Response<Body> {
    let mut response = Response::new(Body::Events(Box::new(events)));
    set_event_stream(response.headers_mut());
    response
}
