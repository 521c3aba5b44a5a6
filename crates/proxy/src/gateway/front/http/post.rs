//! Owns the way of a request from the door to the handlers of the two generations: checks that need no parsing, the body,
//! and which generation it belongs to.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::timeout;
use toolway_guard::Intake;
use toolway_transport::http_server::{Accepts, Standing, announced_length, is_json, is_modern};

use super::body::Body;
use super::{Shared, answer, gate, legacy, modern};
use crate::gateway::front::admit::{Admitted, admit};

/// Answers one HTTP request.
pub(super) async fn handle(
    shared: &Arc<Shared>,
    local: IpAddr,
    standing: &Standing,
    request: Request<Incoming>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if let Err(refused) = shared.door.check(&parts, local) {
        return answer::refused(refused);
    }
    standing.admit();
    shared.visits.fetch_add(1, Ordering::Relaxed);
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
    if announced_length(&parts.headers).is_some_and(|length| length > most) {
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
    let (admitted, listening) = match &shared.config.gate {
        None => (admitted, None),
        Some(gate) => match gate::ask(gate, admitted).await {
            Ok(passed) => passed,
            Err(answer) => return answer::message(StatusCode::OK, answer),
        },
    };
    match admitted {
        Admitted::Nothing => answer::error(StatusCode::BAD_REQUEST, "the body is empty"),
        Admitted::Refused(answers) => answer::message(StatusCode::BAD_REQUEST, one_or_batch(answers)),
        Admitted::One(message)
            if is_modern(
                &message.envelope,
                message.content.bytes().map(|bytes| &**bytes),
                &parts.headers,
            ) =>
        {
            modern::post(shared, &parts.headers, message, listening, accepts).await
        }
        Admitted::One(message) => legacy::post(shared, &parts.headers, message, listening, accepts).await,
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
