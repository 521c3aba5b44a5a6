//! Owns the way of a request from the door to the handlers of the two generations: checks that need no parsing, the body,
//! and which generation it belongs to.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use toolway_guard::Intake;
use toolway_wire::era::{Era, ProtocolVersion, header};

use super::body::Body;
use super::{Shared, answer, legacy, modern};
use crate::gateway::front::admit::{Admitted, admit};
use crate::gateway::message::Message;
use crate::gateway::translate;

/// Answers one HTTP request.
pub(super) async fn handle(
    shared: &Arc<Shared>,
    local: IpAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if let Err(refused) = shared.door.check(&parts, local) {
        return answer::refused(refused);
    }
    match parts.method {
        Method::POST => post(shared, &parts, body).await,
        Method::GET => legacy::get(shared, &parts.headers),
        Method::DELETE => legacy::delete(shared, &parts.headers),
        _ => answer::not_allowed("GET, POST, DELETE"),
    }
}

async fn post(shared: &Arc<Shared>, parts: &Parts, body: Incoming) -> Response<Body> {
    if !is_json(&parts.headers) {
        return answer::error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json");
    }
    let Some(accepts) = Accepts::of(&parts.headers) else {
        let text = "Accept must name application/json or text/event-stream";
        return answer::error(StatusCode::NOT_ACCEPTABLE, text);
    };
    let most = shared.config.max_body;
    let too_large =
        || answer::error(StatusCode::PAYLOAD_TOO_LARGE, &format!("a request has at most {most} bytes"));
    let announced =
        parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > most) {
        return too_large();
    }
    let mut intake = shared.guard.intake();
    let admitted = match take(body, &mut intake, shared).await {
        Ok(admitted) => admitted,
        Err(Untaken::TooLarge) => return too_large(),
        Err(Untaken::Slow) => {
            return answer::error(StatusCode::REQUEST_TIMEOUT, "the body of the request stalled");
        }
        Err(Untaken::Broken) => {
            return answer::error(StatusCode::BAD_REQUEST, "the body of the request is broken");
        }
    };
    drop(intake);
    match admitted {
        Admitted::Nothing => answer::error(StatusCode::BAD_REQUEST, "the body is empty"),
        Admitted::Refused(answers) => answer::message(StatusCode::BAD_REQUEST, one_or_batch(answers)),
        Admitted::One(message) if is_modern(&message, &parts.headers) => {
            modern::post(shared, &parts.headers, message, accepts).await
        }
        Admitted::One(message) => legacy::post(shared, &parts.headers, message, accepts).await,
        Admitted::Batch(messages, answers) => {
            legacy::post_batch(shared, &parts.headers, messages, answers, accepts).await
        }
    }
}

fn one_or_batch(mut answers: Vec<Vec<u8>>) -> Vec<u8> {
    if answers.len() == 1 {
        return answers.pop().unwrap_or_default();
    }
    [b"[", answers.join(&b',').as_slice(), b"]"].concat()
}

/// The request belongs to the modern generation: it says its revision, or only that generation has its method, or its
/// header names such a revision. `initialize` belongs to the other one, unless its body has what only this one has.
fn is_modern(message: &Message, headers: &HeaderMap) -> bool {
    let envelope = &message.envelope;
    match envelope.method() {
        Some("initialize") => is_marked(message),
        Some("server/discover" | "subscriptions/listen") => true,
        _ => {
            let named = headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
            let modern =
                named.and_then(ProtocolVersion::parse).is_some_and(|version| version.era() == Era::Modern);
            modern || (envelope.method().is_some() && envelope.protocol_version().is_some())
        }
    }
}

/// Its `_meta` has members that only the modern generation has.
fn is_marked(message: &Message) -> bool {
    message.content.bytes().is_some_and(|bytes| translate::is_modern(bytes))
}

/// Which answers the client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// `None`: neither of ours. A client that says nothing reads both.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        if !headers.contains_key(ACCEPT) {
            return Some(Self { json: true, events: true });
        }
        let mut accepts = Self { json: false, events: false };
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|value| value.split(',')) {
            let range = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            accepts.json |= matches!(range.as_str(), "application/json" | "application/*" | "*/*");
            accepts.events |= matches!(range.as_str(), "text/event-stream" | "text/*" | "*/*");
        }
        (accepts.json || accepts.events).then_some(accepts)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Why a body was not taken in.
enum Untaken {
    TooLarge,
    Slow,
    Broken,
}

/// Takes the body in: in memory while it is small, in a file then, and no further than it may go.
async fn take(mut body: Incoming, intake: &mut Intake, shared: &Shared) -> Result<Admitted, Untaken> {
    let mut length = 0;
    let mut first = None;
    let mut fed = false;
    loop {
        let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
        let frame = match timeout(shared.config.stall, next).await {
            Err(_) => return Err(Untaken::Slow),
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(Untaken::Broken),
            Ok(Some(Ok(frame))) => frame,
        };
        let Ok(bytes) = frame.into_data() else { continue };
        length += bytes.len() as u64;
        if length > shared.config.max_body {
            return Err(Untaken::TooLarge);
        }
        // A body in one piece needs no copy before it is known what it is.
        if !fed && first.is_none() {
            first = Some(bytes);
            continue;
        }
        if let Some(first) = first.take() {
            intake.feed(&first);
        }
        intake.feed(&bytes);
        fed = true;
    }
    Ok(match first {
        Some(bytes) => admit(intake.whole(&bytes)),
        None if fed => admit(intake.finish()),
        None => Admitted::Nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(values: &[&str]) -> Option<(bool, bool)> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, value.parse().unwrap());
        }
        Accepts::of(&headers).map(|accepts| (accepts.json, accepts.events))
    }

    #[test]
    fn what_a_client_reads_is_taken_from_its_words() {
        assert_eq!(accepts(&[]), Some((true, true)));
        assert_eq!(accepts(&["application/json, text/event-stream"]), Some((true, true)));
        assert_eq!(accepts(&["application/json", "Text/Event-Stream;q=0.9"]), Some((true, true)));
        assert_eq!(accepts(&["*/*"]), Some((true, true)));
        assert_eq!(accepts(&["application/json"]), Some((true, false)));
        assert_eq!(accepts(&["text/event-stream"]), Some((false, true)));
        assert_eq!(accepts(&["text/html"]), None);
    }

    #[test]
    fn only_json_is_json() {
        for (value, fits) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
            ("multipart/form-data", false),
            ("application/jsonp", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, value.parse().unwrap());
            assert_eq!(is_json(&headers), fits, "{value}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
