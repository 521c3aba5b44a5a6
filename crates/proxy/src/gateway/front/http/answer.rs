//! Owns the shapes of the front's HTTP answers: statuses, headers, error bodies. There are no CORS headers in any.

use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use toolway_transport::http_server::set_event_stream;
use toolway_wire::era::header;
use toolway_wire::{INVALID_REQUEST, UPSTREAM_ERROR, error_response};

use super::body::Body;
use super::door::Refused;
use super::events::Events;
use super::stream::Data;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A status and nothing else.
pub(super) fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// JSON.
pub(super) fn json(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A message as JSON.
pub(super) fn message(status: StatusCode, message: Vec<u8>) -> Response<Body> {
    json(status, Body::Whole(Some(message.into())))
}

/// An answer of the hub as JSON.
pub(super) fn data(status: StatusCode, data: Data) -> Response<Body> {
    json(status, Body::of(data))
}

/// A JSON-RPC error that belongs to no request.
pub(super) fn error(status: StatusCode, text: &str) -> Response<Body> {
    let code = if status.is_server_error() { UPSTREAM_ERROR } else { INVALID_REQUEST };
    let mut response = message(status, error_response(b"null", code, text, None));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("10"));
    }
    response
}

/// The answer to one that the door turns away.
pub(super) fn refused(refused: Refused) -> Response<Body> {
    let (status, text) = refused.answer();
    let mut response = error(status, text);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"toolway\""));
    }
    response
}

/// The method is none of ours here.
pub(super) fn not_allowed(allow: &'static str) -> Response<Body> {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "this method is not served here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

/// An event stream, which nobody on the way may hold back or keep.
pub(super) fn events(events: Events) -> Response<Body> {
    let mut response = Response::new(Body::Events(Box::new(events)));
    set_event_stream(response.headers_mut());
    response
}
