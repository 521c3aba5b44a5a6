//! Owns the modern generation: each request is whole in itself, its headers say what its body says, and closing its answer
//! gives it up. Specification 2026-07-28, "Streamable HTTP", "Discovery", "Tools", "Subscriptions".

use http::{Response, StatusCode};
use toolway_transport::http_server::{check_headers, check_version};
use toolway_transport::mirrored_mismatch;
use toolway_wire::era::{Era, ProtocolVersion, meta};
use toolway_wire::find::{Step, find};
use toolway_wire::request::{Refusal, check, request_meta};
use toolway_wire::{
    INVALID_PARAMS, INVALID_REQUEST, Id, Kind, METHOD_NOT_FOUND, error_response, push_string,
};

use super::answer;
use super::body::Body;
use super::dispatch::{Answers, Reply, call};
use super::flight::{Flight, Item};
use super::message::{self, Message, Pieces};
use super::post::Asked;

/// What lists and descriptions end with: they are those of one run, which ends without notice.
const UNCACHED: &[u8] = b",\"ttlMs\":0,\"cacheScope\":\"private\"";

/// One message.
pub(super) async fn post(asked: &Asked<'_>, message: &Message) -> Response<Body> {
    let Some(id) = message.request() else {
        if message.envelope.kind() == Kind::Notification {
            // The generation has no notification that a client sends over HTTP: what comes is of no consequence.
            return answer::status(StatusCode::ACCEPTED);
        }
        let error =
            error_response(b"null", INVALID_REQUEST, "a client of this revision sends no responses", None);
        return answer::message(StatusCode::BAD_REQUEST, vec![error.into()]);
    };
    if let Err(refusal) = check_request(asked, message) {
        let refused = refusal.response(id.raw(), &spoken());
        return answer::message(StatusCode::BAD_REQUEST, vec![refused.into()]);
    }
    let run = &asked.route.run;
    let method = message.envelope.method().unwrap_or_default();
    if method == "server/discover" || run.facts().connected == 0 {
        run.connected();
    }
    let reply = match method {
        "server/discover" => Reply::Now(discover(asked, id)),
        "tools/list" if message.has_cursor() => {
            Reply::Now(message::error(id, INVALID_PARAMS, "there is one page only: no cursor was given out"))
        }
        "tools/list" => {
            run.listed();
            let after = [UNCACHED, b"}"].concat();
            let identity = &asked.server.identity;
            let before =
                [b"{\"resultType\":\"complete\",\"_meta\":{".as_slice(), identity, b"},\"tools\":"].concat();
            Reply::Now(message::result(id, &before, run.snapshot().tools_json(), &after))
        }
        "tools/call" => call(run, asked.server.session_number(), id, message, Some(&asked.server.identity)),
        "subscriptions/listen" => listen(asked, id, message),
        other => {
            let text = format!("the method {other} is not served here");
            let error = message::error(id, METHOD_NOT_FOUND, &text);
            return answer::message(StatusCode::NOT_FOUND, error);
        }
    };
    if method == "subscriptions/listen" && !asked.accepts.events {
        return answer::error(
            StatusCode::NOT_ACCEPTABLE,
            "Accept must name text/event-stream for a subscription",
        );
    }
    Answers::of(reply).while_there(asked.stream).respond(asked.server, asked.accepts).await
}

/// The modern revisions that are spoken.
fn spoken() -> Vec<ProtocolVersion> {
    ProtocolVersion::KNOWN.into_iter().filter(|version| version.era() == Era::Modern).collect()
}

/// `_meta` says what it must, and the headers say what the body says.
fn check_request(asked: &Asked<'_>, message: &Message) -> Result<(), Refusal> {
    let envelope = &message.envelope;
    check_version(envelope.protocol_version(), asked.headers)?;
    check(&request_meta(message.bytes()), &ProtocolVersion::KNOWN)?;
    check_headers(envelope, asked.headers)?;
    let (Some("tools/call"), Some(name)) = (envelope.method(), envelope.name()) else { return Ok(()) };
    let Some(tool) = asked.route.run.snapshot().find(name) else { return Ok(()) };
    match mirrored_mismatch(&tool.definition, message.bytes(), asked.headers) {
        None => Ok(()),
        Some(text) => Err(Refusal::HeaderMismatch(format!("Header mismatch: {text}"))),
    }
}

fn discover(asked: &Asked<'_>, id: &Id) -> Pieces {
    let mut text = b"{\"resultType\":\"complete\",\"supportedVersions\":[".to_vec();
    for (index, version) in spoken().iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        push_string(&version.to_string(), &mut text);
    }
    text.extend_from_slice(b"],\"capabilities\":{\"tools\":{}}");
    text.extend_from_slice(UNCACHED);
    text.extend_from_slice(b",\"_meta\":{");
    text.extend_from_slice(&asked.server.identity);
    text.extend_from_slice(b"}}");
    message::small_result(id, &text)
}

/// A stream on which nothing comes but its end: a run's surface does not change. It is acknowledged as one of nothing.
fn listen(asked: &Asked<'_>, id: &Id, message: &Message) -> Reply {
    let wanted = find(message.bytes(), &[Step::Key("params"), Step::Key("notifications")]);
    if wanted.and_then(|at| message.bytes().get(at.start)) != Some(&b'{') {
        return Reply::Now(message::error(id, INVALID_PARAMS, "params.notifications is no object"));
    }
    let mut stream = b"{".to_vec();
    push_string(meta::SUBSCRIPTION_ID, &mut stream);
    stream.push(b':');
    stream.extend_from_slice(id.raw());
    stream.push(b'}');
    let acknowledged = [
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":".as_slice(),
        &stream,
        b",\"notifications\":{}}}",
    ];
    let acknowledged = acknowledged.concat();
    let end = [b"{\"_meta\":", stream.as_slice(), b"}"].concat();
    let end = message::complete(id, &asked.server.identity, &end.into());
    let run = asked.route.run.clone();
    let over = async move {
        run.disposed().await;
        (Item::Answer(end), None)
    };
    Reply::Later(Flight::new(async move { (Item::Note(acknowledged.into()), Some(Flight::new(over))) }))
}
