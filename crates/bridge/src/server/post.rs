//! Owns the way of a request from the door to the handlers of the two generations: checks that need no parsing, the body,
//! and which generation it belongs to.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use toolway_transport::http_server::{Accepts, Watched, announced_length, is_json, is_modern};

use super::body::Body;
use super::door::Refused;
use super::intake::{self, Untaken};
use super::message::{self, Content};
use super::routes::Route;
use super::{Client, Server, answer, legacy, modern};

/// What a handler is told beside the message.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) server: &'a Server,
    pub(super) route: &'a Route,
    pub(super) headers: &'a HeaderMap,
    pub(super) accepts: Accepts,
    /// The connection that it came on.
    pub(super) stream: &'a Watched,
}

/// Answers one HTTP request.
pub(super) async fn handle(server: &Server, client: &Client, request: Request<Incoming>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let route = match admit(server, &parts, client) {
        Ok(route) => route,
        Err(refused) => return answer::refused(refused),
    };
    client.standing.admit();
    match parts.method {
        Method::POST => post(server, client, &route, &parts.headers, body).await,
        Method::DELETE => legacy::delete(&route, &parts.headers),
        // There is nothing that the server would say by itself, so there is no stream to open with GET.
        _ => answer::not_allowed(),
    }
}

/// All that is checked before anything is read.
fn admit(server: &Server, parts: &Parts, client: &Client) -> Result<Arc<Route>, Refused> {
    server.door.check(parts, client.local)?;
    server.routes.find(parts.uri.path())
}

async fn post(
    server: &Server,
    client: &Client,
    route: &Route,
    headers: &HeaderMap,
    body: Incoming,
) -> Response<Body> {
    let encoded = headers.get_all(CONTENT_ENCODING).iter().any(|coding| coding != "identity");
    if encoded || !is_json(headers) {
        let reason = "Content-Type must be application/json, without a Content-Encoding";
        return answer::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, reason);
    }
    let Some(accepts) = Accepts::of(headers) else {
        let reason = "Accept must name application/json or text/event-stream";
        return answer::error(StatusCode::NOT_ACCEPTABLE, reason);
    };
    let bytes = match intake::take(server, announced_length(headers), body).await {
        Ok(bytes) => bytes,
        Err(Untaken::TooLarge(rest)) => return answer::too_large(server.options.max_body, rest),
        Err(Untaken::Slow) => {
            return answer::error(StatusCode::REQUEST_TIMEOUT, "the body of the request stalled");
        }
        Err(Untaken::Crowded) => {
            let reason = "too many large requests are being received";
            return answer::error(StatusCode::SERVICE_UNAVAILABLE, reason);
        }
        Err(Untaken::Broken) => {
            return answer::error(StatusCode::BAD_REQUEST, "the body of the request is broken");
        }
    };
    dispatch(&Asked { server, route, headers, accepts, stream: &client.stream }, &bytes).await
}

async fn dispatch(asked: &Asked<'_>, bytes: &Bytes) -> Response<Body> {
    match message::read(bytes) {
        Content::Bad(error) => answer::message(StatusCode::BAD_REQUEST, vec![error.into()]),
        Content::One(message) => {
            if let Some(fault) = message.fault() {
                return answer::message(StatusCode::BAD_REQUEST, vec![fault.into()]);
            }
            if is_modern(&message.envelope, Some(message.bytes()), asked.headers) {
                modern::post(asked, &message).await
            } else {
                legacy::post(asked, &message).await
            }
        }
        Content::Batch { messages, strangers } => legacy::post_batch(asked, &messages, strangers).await,
    }
}
