//! Owns the legacy generation over HTTP: sessions, answers as JSON or as events, the GET stream, and coming back to a
//! stream that broke. Specification 2025-11-25, "Transports".

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, StatusCode};
use toolway_transport::http_server::Accepts;
use toolway_wire::era::{Era, ProtocolVersion, header};
use toolway_wire::find::{Step, find};
use toolway_wire::{Id, Kind, UPSTREAM_ERROR, error_response};

use super::body::Body;
use super::events::Events;
use super::heard::Listening;
use super::session::HttpSession;
use super::stream::{Data, First, Stream};
use super::{Shared, answer};
use crate::admission::invalid;
use crate::gateway::hub::SessionOptions;
use crate::gateway::message::Message;

/// One message of a legacy client.
pub(super) async fn post(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    message: Message,
    listening: Option<Listening>,
    accepts: Accepts,
) -> Response<Body> {
    let request =
        (message.envelope.kind() == Kind::Request).then(|| message.envelope.id().cloned()).flatten();
    if let (Some(id), Some("initialize")) = (&request, message.envelope.method()) {
        let id = id.clone();
        return initialize(shared, id, message, accepts).await;
    }
    let session = match session(shared, headers) {
        Ok((_, session)) => session,
        Err(response) => return *response,
    };
    let Some(id) = request else {
        let cancelled = (message.envelope.method() == Some("notifications/cancelled"))
            .then(|| message.envelope.request_id().cloned())
            .flatten();
        let taken = session.client.send(message).await;
        if let Some(id) = cancelled {
            session.cancelled(&id);
        }
        return answer::status(if taken { StatusCode::ACCEPTED } else { StatusCode::SERVICE_UNAVAILABLE });
    };
    let about = [id];
    let Some(stream) = session.open(&about, !accepts.events) else { return already_open(&about) };
    let left =
        Left { session: Arc::clone(&session), stream: Arc::clone(&stream), about: &about, kept: false };
    if let Some(listening) = listening {
        session.listen(listening);
    }
    if !session.client.send(message).await {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the gateway has ended");
    }
    respond(shared, left, &stream, accepts).await
}

/// A batch, which only 2025-03-26 and older have.
pub(super) async fn post_batch(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    messages: Vec<Message>,
    answers: Vec<Vec<u8>>,
    accepts: Accepts,
) -> Response<Body> {
    let session = match session(shared, headers) {
        Ok((_, session)) => session,
        Err(response) => return *response,
    };
    if session.version().is_none_or(|version| version >= ProtocolVersion::V2025_06_18) {
        let text = "batches are not part of the protocol revision of this session";
        return answer::message(StatusCode::BAD_REQUEST, invalid(b"null", text));
    }
    let mut requests = messages.iter().filter(|message| message.envelope.kind() == Kind::Request);
    let Some(first) = requests.find_map(|message| message.envelope.id()).cloned() else {
        let taken = session.client.send_batch(messages).await;
        return answer::status(if taken { StatusCode::ACCEPTED } else { StatusCode::SERVICE_UNAVAILABLE });
    };
    let about = [first];
    let Some(stream) = session.open_batch(&about[0], !accepts.events) else { return already_open(&about) };
    for answer in answers {
        stream.push(Data::Bytes(answer.into()), None);
    }
    let left =
        Left { session: Arc::clone(&session), stream: Arc::clone(&stream), about: &about, kept: false };
    if !session.client.send_batch(messages).await {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the gateway has ended");
    }
    respond(shared, left, &stream, accepts).await
}

fn already_open(about: &[Id; 1]) -> Response<Body> {
    let text = "a request of this id is still open in this session";
    answer::message(StatusCode::BAD_REQUEST, invalid(about[0].raw(), text))
}

/// Opens a session. One whose `initialize` fails is none.
async fn initialize(shared: &Arc<Shared>, id: Id, message: Message, accepts: Accepts) -> Response<Body> {
    if !shared.sessions.make_room() {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions");
    }
    let saved_as = super::session_name(&shared.config);
    let Some(client) = shared.gateway.open(SessionOptions { saved_as, passing: false }).await else {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the gateway has ended");
    };
    let Some((name, session)) = shared.sessions.add(HttpSession::new(client, id.clone())) else {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the system has no randomness");
    };
    let about = [id];
    let unopened = Unopened { shared, name: &name, opened: false };
    let Some(stream) = session.open(&about, !accepts.events) else { return already_open(&about) };
    let left =
        Left { session: Arc::clone(&session), stream: Arc::clone(&stream), about: &about, kept: false };
    if !session.client.send(message).await {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the gateway has ended");
    }
    let mut response = respond(shared, left, &stream, accepts).await;
    let failed = match response.body() {
        Body::Whole(Some(bytes)) => find(bytes, &[Step::Key("error")]).is_some(),
        _ => !response.status().is_success(),
    };
    if !failed && let Ok(value) = HeaderValue::from_str(&name) {
        response.headers_mut().insert(answer::SESSION_ID, value);
        unopened.open();
    }
    response
}

/// Takes a session away again unless it was opened.
struct Unopened<'a> {
    shared: &'a Shared,
    name: &'a str,
    opened: bool,
}

impl Unopened<'_> {
    fn open(mut self) {
        self.opened = true;
    }
}

impl Drop for Unopened<'_> {
    fn drop(&mut self) {
        if !self.opened {
            self.shared.sessions.remove(self.name);
        }
    }
}

/// A request whose client goes before a byte of the answer was sent has nothing to come back to.
struct Left<'a> {
    session: Arc<HttpSession>,
    stream: Arc<Stream>,
    about: &'a [Id],
    kept: bool,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.session.forget(self.about);
            self.stream.end();
        }
    }
}

/// The answer: JSON where nothing precedes it, an event stream else.
async fn respond(
    shared: &Shared,
    mut left: Left<'_>,
    stream: &Arc<Stream>,
    accepts: Accepts,
) -> Response<Body> {
    let session = Arc::clone(&left.session);
    let first = stream.first(shared.config.patience).await;
    left.kept = true;
    match first {
        First::Answer(data) if accepts.json => answer::data(StatusCode::OK, data),
        First::Nothing => {
            let id = left.about.first().map_or(&b"null"[..], Id::raw);
            let text = if session.closed.is_cancelled() {
                "the session has ended"
            } else {
                "the request was cancelled"
            };
            let error = error_response(id, UPSTREAM_ERROR, text, None);
            answer::message(StatusCode::OK, error)
        }
        First::Answer(_) | First::Events => {
            session.keep(Arc::clone(stream));
            answer::events(events(shared, &session, Arc::clone(stream), 0))
        }
    }
}

/// Events with ids to come back with; the revision that knows it begins with an empty one.
fn events(shared: &Shared, session: &HttpSession, stream: Arc<Stream>, last: u64) -> Events {
    let prime = session.version().is_some_and(|version| version >= ProtocolVersion::V2025_11_25);
    Events::new(stream, last, true, prime, shared.config.keep_alive)
}

/// The session that the request names.
fn session(shared: &Shared, headers: &HeaderMap) -> Result<(String, Arc<HttpSession>), Box<Response<Body>>> {
    let refuse = |status, text: &str| Err(Box::new(answer::error(status, text)));
    let Some(name) = headers.get(&answer::SESSION_ID).and_then(|value| value.to_str().ok()) else {
        return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing: begin with initialize");
    };
    let Some(session) = shared.sessions.get(name) else {
        return refuse(StatusCode::NOT_FOUND, "there is no such session: begin with initialize");
    };
    if let Some(value) = headers.get(header::PROTOCOL_VERSION) {
        let version = value.to_str().ok().and_then(ProtocolVersion::parse);
        let known = |version: &ProtocolVersion| {
            version.era() == Era::Legacy && ProtocolVersion::KNOWN.contains(version)
        };
        if !version.as_ref().is_some_and(known) {
            return refuse(StatusCode::BAD_REQUEST, "this MCP-Protocol-Version is not spoken here");
        }
    }
    Ok((name.to_owned(), session))
}

/// The stream for what belongs to no request, or one that broke.
pub(super) fn get(shared: &Shared, headers: &HeaderMap) -> Response<Body> {
    // A modern client has no such stream, and one of the oldest transport is told so.
    if !headers.contains_key(&answer::SESSION_ID) {
        return answer::not_allowed("POST");
    }
    if !Accepts::of(headers).is_some_and(|accepts| accepts.events) {
        return answer::error(StatusCode::NOT_ACCEPTABLE, "Accept must name text/event-stream");
    }
    let session = match session(shared, headers) {
        Ok((_, session)) => session,
        Err(response) => return *response,
    };
    let Some(last) = headers.get(header::LAST_EVENT_ID) else {
        return match session.open_general() {
            Some(stream) => answer::events(events(shared, &session, stream, 0)),
            None => answer::error(StatusCode::CONFLICT, "this session has enough open streams"),
        };
    };
    let named = last.to_str().ok().and_then(|text| text.split_once('-'));
    let numbers = named.and_then(|(stream, event)| Some((stream.parse().ok()?, event.parse().ok()?)));
    let Some((number, event)) = numbers else {
        return answer::error(StatusCode::BAD_REQUEST, "this Last-Event-ID is none of this session");
    };
    match session.resume(number) {
        Some(stream) => answer::events(events(shared, &session, stream, event)),
        None => {
            answer::error(StatusCode::BAD_REQUEST, "the stream of this Last-Event-ID is over or forgotten")
        }
    }
}

/// The end of a session.
pub(super) fn delete(shared: &Shared, headers: &HeaderMap) -> Response<Body> {
    if !headers.contains_key(&answer::SESSION_ID) {
        return answer::not_allowed("POST");
    }
    match session(shared, headers) {
        Ok((name, _)) => {
            shared.sessions.remove(&name);
            answer::status(StatusCode::NO_CONTENT)
        }
        Err(response) => *response,
    }
}
