//! Owns the legacy generation: sessions that `initialize` opens, and requests within them. Specification 2025-11-25,
//! "Lifecycle", "Tools", "Transports".

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use toolway_transport::http_server::single;
use toolway_wire::era::{Era, ProtocolVersion, header, negotiate};
use toolway_wire::{
    INVALID_PARAMS, INVALID_REQUEST, Id, Kind, METHOD_NOT_FOUND, UPSTREAM_ERROR, error_response,
};

use super::answer;
use super::body::Body;
use super::dispatch::{Answers, Reply, call};
use super::message::{self, Message};
use super::post::Asked;
use super::routes::Route;
use super::session::Session;
use crate::calls::Origin;

const SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);

const VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);

/// Messages of one batch.
const MOST_IN_BATCH: usize = 1000;

/// One message.
pub(super) async fn post(asked: &Asked<'_>, message: &Message) -> Response<Body> {
    if let (Some(id), Some("initialize")) = (message.request(), message.envelope.method()) {
        return initialize(asked, id, message);
    }
    let session = match session(asked, message.request()) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    Answers::of(handle(asked, session, message)).respond(asked.server, asked.accepts).await
}

/// A batch, which only 2025-03-26 and older have.
pub(super) async fn post_batch(asked: &Asked<'_>, messages: &[Message], strangers: usize) -> Response<Body> {
    let session = match session(asked, None) {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    let refuse = |text: &str| {
        let error = error_response(b"null", INVALID_REQUEST, text, None);
        answer::message(StatusCode::BAD_REQUEST, vec![error.into()])
    };
    if session.version >= ProtocolVersion::V2025_06_18 {
        return refuse("batches are not part of the protocol revision of this session");
    }
    if messages.is_empty() && strangers == 0 {
        return refuse("the batch is empty");
    }
    if messages.len() + strangers > MOST_IN_BATCH {
        return refuse(&format!("a batch has at most {MOST_IN_BATCH} messages here"));
    }
    let mut answers = Answers { batch: true, ..Answers::default() };
    for _ in 0..strangers {
        let error = error_response(b"null", INVALID_REQUEST, "this is no JSON-RPC 2.0 message", None);
        answers.add(Reply::Now(vec![error.into()]));
    }
    for message in messages {
        answers.add(match message.fault() {
            Some(fault) => Reply::Now(vec![fault.into()]),
            None => handle(asked, session, message),
        });
    }
    answers.respond(asked.server, asked.accepts).await
}

/// `DELETE`: the client ends its session, and with it the calls whose answers it does not wait for any more.
pub(super) fn delete(route: &Route, headers: &HeaderMap) -> Response<Body> {
    if headers.get(header::PROTOCOL_VERSION).is_some_and(is_modern) {
        return answer::not_allowed();
    }
    let Some(id) = single(headers, &SESSION_ID) else {
        return answer::error(StatusCode::BAD_REQUEST, "Mcp-Session-Id does not stand there once");
    };
    match route.sessions.close(id) {
        Some(session) => {
            route.run.cancel_session(session.number, "the client ended its session");
            answer::status(StatusCode::NO_CONTENT)
        }
        None => answer::error(StatusCode::NOT_FOUND, NO_SESSION),
    }
}

const NO_SESSION: &str = "there is no such session (any more): initialize again";

fn is_modern(version: &HeaderValue) -> bool {
    let version = version.to_str().ok().and_then(ProtocolVersion::parse);
    version.is_some_and(|version| version.era() == Era::Modern)
}

/// Opens a session.
fn initialize(asked: &Asked<'_>, id: &Id, message: &Message) -> Response<Body> {
    let version = negotiate(message.envelope.protocol_version());
    let session = Session { number: asked.server.session_number(), version };
    let name = match asked.route.sessions.open(session) {
        Ok(name) => name,
        Err(error) => {
            let error = message::error(id, UPSTREAM_ERROR, &error.to_string());
            return answer::message(StatusCode::INTERNAL_SERVER_ERROR, error);
        }
    };
    asked.route.run.answered(Origin { session: session.number, request: id.clone() });
    let mut result =
        format!("{{\"protocolVersion\":\"{version}\",\"capabilities\":{{\"tools\":{{}}}},").into_bytes();
    result.extend_from_slice(b"\"serverInfo\":");
    message::server_info(&asked.server.profile, &mut result);
    result.push(b'}');
    let reply = Reply::Now(message::small_result(id, &result));
    let mut response = Answers::of(reply).at_once(asked.accepts);
    if let Ok(value) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    response
}

/// The session that the request names. The error is the answer: with the id of a request it is one that a client finds the
/// caller by.
fn session(asked: &Asked<'_>, request: Option<&Id>) -> Result<Session, Box<Response<Body>>> {
    let refuse = |status: StatusCode, text: &str| match request {
        Some(id) => Box::new(answer::message(status, message::error(id, INVALID_REQUEST, text))),
        None => Box::new(answer::error(status, text)),
    };
    let Some(id) = single(asked.headers, &SESSION_ID) else {
        return Err(refuse(
            StatusCode::BAD_REQUEST,
            "Mcp-Session-Id does not stand there once: initialize first",
        ));
    };
    let session = asked.route.sessions.find(id).ok_or_else(|| refuse(StatusCode::NOT_FOUND, NO_SESSION))?;
    let named =
        asked.headers.contains_key(VERSION).then(|| single(asked.headers, &VERSION).unwrap_or_default());
    let known =
        |text: &str| ProtocolVersion::parse(text).is_some_and(|v| ProtocolVersion::KNOWN.contains(&v));
    match named {
        Some(version) if !known(version) => {
            Err(refuse(StatusCode::BAD_REQUEST, "MCP-Protocol-Version names no revision that is spoken here"))
        }
        _ => Ok(session),
    }
}

/// One message within a session.
fn handle(asked: &Asked<'_>, session: Session, message: &Message) -> Reply {
    let run = &asked.route.run;
    let envelope = &message.envelope;
    let Some(id) = message.request() else {
        match (envelope.kind(), envelope.method()) {
            (Kind::Notification, Some("notifications/initialized")) => run.connected(),
            (Kind::Notification, Some("notifications/cancelled")) => {
                if let Some(request) = envelope.request_id().cloned() {
                    run.cancel_request(Origin { session: session.number, request });
                }
            }
            // Answers to requests that were never made, and notifications of what is not served.
            _ => {}
        }
        return Reply::Nothing;
    };
    let method = envelope.method().unwrap_or_default();
    if method != "tools/call" {
        run.answered(Origin { session: session.number, request: id.clone() });
    }
    match method {
        "ping" => Reply::Now(message::small_result(id, b"{}")),
        "tools/list" if message.has_cursor() => {
            Reply::Now(message::error(id, INVALID_PARAMS, "there is one page only: no cursor was given out"))
        }
        "tools/list" => {
            run.listed();
            Reply::Now(message::result(id, b"{\"tools\":", run.snapshot().tools_json(), b"}"))
        }
        "tools/call" => call(run, session.number, id, message, None),
        "initialize" => {
            Reply::Now(message::error(id, INVALID_REQUEST, "initialize does not stand in a batch"))
        }
        other => {
            let text = format!("the method {other} is not served here");
            Reply::Now(message::error(id, METHOD_NOT_FOUND, &text))
        }
    }
}
