//! Owns the modern generation over HTTP: each request is whole in itself, its headers say what its body says, and closing
//! its answer gives it up. Specification 2026-07-28, "Streamable HTTP".

use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode};
use toolway_transport::http_server::{self, Accepts, check_headers};
use toolway_transport::mirrored_mismatch;
use toolway_wire::era::{Era, ProtocolVersion, code};
use toolway_wire::find::{Step, find};
use toolway_wire::{Envelope, Kind, METHOD_NOT_FOUND, UPSTREAM_ERROR, error_response};

use super::body::Body;
use super::events::Events;
use super::heard::Listening;
use super::stream::{Data, First, Stream};
use super::{Shared, answer};
use crate::admission::invalid;
use crate::gateway::hub::SessionOptions;
use crate::gateway::message::{Content, Message};
use crate::gateway::run::ClientSession;
use crate::gateway::translate::{Refusal, SUPPORTED, check, request_meta};

/// Answers larger than this are no errors whose status would matter.
const SMALL: usize = 64 << 10;

/// One message of a modern client.
pub(super) async fn post(
    shared: &Arc<Shared>,
    headers: &HeaderMap,
    message: Message,
    listening: Option<Listening>,
    accepts: Accepts,
) -> Response<Body> {
    let envelope = &message.envelope;
    match envelope.kind() {
        Kind::Request => {}
        // The generation has no notification that a client sends over HTTP: what comes is of no consequence.
        Kind::Notification => return answer::status(StatusCode::ACCEPTED),
        _ => {
            let text = "a client of this revision sends no responses";
            return answer::message(StatusCode::BAD_REQUEST, invalid(b"null", text));
        }
    }
    let Some(id) = envelope.id().cloned() else { return answer::status(StatusCode::BAD_REQUEST) };
    let mut checked = check_version(&message, headers).and_then(|()| check_headers(envelope, headers));
    if checked.is_ok() && is_removed(envelope) {
        let text = format!("{} is not part of this protocol revision", envelope.method().unwrap_or_default());
        return answer::message(
            StatusCode::NOT_FOUND,
            error_response(id.raw(), METHOD_NOT_FOUND, &text, None),
        );
    }
    if checked.is_ok() {
        checked = check_parameters(shared, &message, headers).await;
    }
    if let Err(refusal) = checked {
        let spoken: Vec<ProtocolVersion> = SUPPORTED.into_iter().filter(|v| v.era() == Era::Modern).collect();
        return answer::message(StatusCode::BAD_REQUEST, refusal.response(id.raw(), &spoken));
    }
    let saved_as = super::session_name(&shared.config);
    let Some(client) = shared.gateway.open(SessionOptions { saved_as, passing: true }).await else {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the gateway has ended");
    };
    let stream = Arc::new(Stream::new(1, [id.clone()], !accepts.events));
    if !client.send(message).await {
        return answer::error(StatusCode::SERVICE_UNAVAILABLE, "the gateway has ended");
    }
    // Ends the session with this request, also when the client goes before anything was sent.
    let pump = shared.sessions.pump(pump(client, Arc::clone(&stream), listening));
    match stream.first(shared.config.patience).await {
        First::Answer(data) if accepts.json => answer::data(status_of(&data), data),
        First::Nothing => {
            let error = error_response(id.raw(), UPSTREAM_ERROR, "the gateway has ended", None);
            answer::message(StatusCode::SERVICE_UNAVAILABLE, error)
        }
        First::Answer(_) | First::Events => {
            let events = Events::new(stream, 0, false, false, shared.config.keep_alive);
            pump.release();
            answer::events(events)
        }
    }
}

/// Moves the hub's messages to the stream until the answer has come or its reader has gone.
async fn pump(client: ClientSession, stream: Arc<Stream>, mut listening: Option<Listening>) {
    let mut arrived = Vec::new();
    loop {
        let more = tokio::select! {
            biased;
            () = stream.left() => return,
            more = client.outlet.receive(&mut arrived) => more,
        };
        for message in arrived.drain(..) {
            let answers = message.about.as_ref().filter(|_| message.is_answer);
            if answers.is_none() {
                if !stream.answers_only {
                    stream.push(Data::of(message.payload), None);
                }
                continue;
            }
            let payload = match listening.take() {
                None => message.payload,
                Some(listening) => tokio::select! {
                    biased;
                    () = stream.left() => return,
                    payload = listening.heard(message.payload) => payload,
                },
            };
            stream.push(Data::of(payload), answers);
        }
        if !more || stream.is_ended() {
            stream.end();
            return;
        }
    }
}

/// The revision, in the body and in the header.
fn check_version(message: &Message, headers: &HeaderMap) -> Result<(), Refusal> {
    let in_body = message.envelope.protocol_version();
    http_server::check_version(in_body, headers)?;
    match &message.content {
        Content::Bytes(bytes) => check(&request_meta(bytes), &SUPPORTED).map(drop),
        // What is too large for memory is checked by its revision alone.
        Content::Held(_) => match in_body.and_then(ProtocolVersion::parse) {
            Some(version) if version.era() == Era::Modern && SUPPORTED.contains(&version) => Ok(()),
            _ => Err(Refusal::UnsupportedVersion { requested: in_body.unwrap_or_default().to_owned() }),
        },
    }
}

/// `Mcp-Param-*` say what the arguments say, for the parameters that the tool's definition annotates.
async fn check_parameters(shared: &Shared, message: &Message, headers: &HeaderMap) -> Result<(), Refusal> {
    let (Some("tools/call"), Some(name)) = (message.envelope.method(), message.envelope.name()) else {
        return Ok(());
    };
    let (Content::Bytes(call), Some(tool)) = (&message.content, shared.gateway.tool(name).await) else {
        return Ok(());
    };
    let mismatch = mirrored_mismatch(&tool, call, headers);
    mismatch.map_or(Ok(()), |text| Err(Refusal::HeaderMismatch(format!("Header mismatch: {text}"))))
}

/// Methods of older revisions, which the gateway answers to older clients only.
fn is_removed(envelope: &Envelope) -> bool {
    const REMOVED: [&str; 5] =
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"];
    envelope.method().is_some_and(|method| REMOVED.contains(&method))
}

/// The status that an answer of the hub has: some errors have one of their own.
fn status_of(data: &Data) -> StatusCode {
    let Data::Bytes(bytes) = data else { return StatusCode::OK };
    if bytes.len() > SMALL {
        return StatusCode::OK;
    }
    let at = find(bytes, &[Step::Key("error"), Step::Key("code")]);
    let code = at.and_then(|at| std::str::from_utf8(bytes.get(at)?).ok()?.parse::<i64>().ok());
    match code {
        Some(METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION,
        ) => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
