//! Owns the named exceptions to passing bytes unchanged that are not about size: relaxed output schemas, and the
//! tool and the resources that read saved results back.

use std::borrow::Cow;

use toolway_guard::{
    Body, OutputSchema, READ_BACK_TOOL, ReadBack, add_read_back_tool, add_resources_capability,
    add_tools_capability, read_back_definition, relax_schemas,
};
use toolway_wire::find::{Step, find};
use toolway_wire::{Envelope, INVALID_PARAMS, Id, Kind, error_response};

use super::core::Relay;

/// The largest message that is looked into.
const LOOKED_INTO: u64 = 64 << 20;

impl Relay {
    fn reads_back(&self) -> bool {
        self.config.guard.config().read_back != ReadBack::Off
    }
}

/// An answer to `method` as the client gets it, where that differs.
pub(super) fn listing(relay: &Relay, answer: &Envelope, method: &str, body: &Body<'_>) -> Option<Vec<u8>> {
    let reads_back = relay.reads_back();
    let wanted = match method {
        "tools/list" => reads_back || relay.config.guard.config().output_schema == OutputSchema::Relax,
        "initialize" | "server/discover" | "resources/list" => reads_back,
        _ => false,
    };
    if !wanted {
        return None;
    }
    if answer.kind() == Kind::ErrorResponse {
        return if reads_back { missing_list(relay, answer, method, body) } else { None };
    }
    let original = bytes(body)?;
    let mut message: Cow<'_, [u8]> = Cow::Borrowed(&original);
    let mut change = |changed: Option<Vec<u8>>| {
        if let Some(changed) = changed {
            message = Cow::Owned(changed);
        }
    };
    let session = &relay.config.session;
    match method {
        "tools/list" => {
            if relay.config.guard.config().output_schema == OutputSchema::Relax {
                change(relax_schemas(&original));
            }
            if reads_back && !answer.has_next_cursor() {
                let added = add_read_back_tool(&message);
                message = added.map_or(message, Cow::Owned);
            }
        }
        "resources/list" => {
            if !answer.has_next_cursor() {
                change(relay.config.guard.add_saved_resources(&original, session));
            }
        }
        _ => {
            change(add_tools_capability(&original));
            let added = add_resources_capability(&message);
            message = added.map_or(message, Cow::Owned);
        }
    }
    match message {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    }
}

/// The upstream has no such list; with the read-back tool there is one all the same.
fn missing_list(relay: &Relay, answer: &Envelope, method: &str, body: &Body<'_>) -> Option<Vec<u8>> {
    let message = bytes(body)?;
    let code = find(&message, &[Step::Key("error"), Step::Key("code")])?;
    if message.get(code)? != b"-32601" {
        return None;
    }
    let id = answer.id()?.raw();
    let respond =
        |result: &[u8]| [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":", result, b"}"].concat();
    match method {
        "tools/list" => Some(respond(format!("{{\"tools\":[{}]}}", read_back_definition()).as_bytes())),
        "resources/list" => {
            let empty = respond(b"{\"resources\":[]}");
            Some(relay.config.guard.add_saved_resources(&empty, &relay.config.session).unwrap_or(empty))
        }
        _ => None,
    }
}

/// The answer to a request that is ours to answer. The client's side waits meanwhile: for a query 10 seconds at most,
/// because it runs in a process that is ended then. That is the client's own doing, and keeps its messages in order.
pub(super) fn own_answer(relay: &Relay, request: &Envelope, body: &Body<'_>) -> Option<Vec<u8>> {
    if !relay.reads_back() || request.kind() != Kind::Request {
        return None;
    }
    let (guard, session) = (&relay.config.guard, &relay.config.session);
    let id = request.id().map(Id::raw)?;
    match request.method()? {
        "tools/call" if request.name() == Some(READ_BACK_TOOL) => {
            let message = bytes(body)?;
            let arguments = find(&message, &[Step::Key("params"), Step::Key("arguments")]);
            let arguments = arguments.and_then(|range| message.get(range)).unwrap_or(b"{}");
            Some(guard.call_read_back(id, arguments, session))
        }
        "resources/read" => guard.read_saved_resource(id, request.uri()?, session),
        _ => None,
    }
}

/// A call whose arguments name saved results, with their text in place; `None`: it names none. An error is the
/// answer to the call.
pub(super) fn with_references(
    relay: &Relay,
    request: &Envelope,
    body: &Body<'_>,
) -> Result<Option<Vec<u8>>, Vec<u8>> {
    let (guard, session) = (&relay.config.guard, &relay.config.session);
    if guard.config().pass_saved.is_empty() || request.method() != Some("tools/call") {
        return Ok(None);
    }
    let (Some(id), Some(tool), Some(message)) = (request.id(), request.name(), bytes(body)) else {
        return Ok(None);
    };
    guard
        .follow_references(&message, tool, session)
        .map_err(|error| error_response(id.raw(), INVALID_PARAMS, &error.to_string(), None))
}

/// The whole message, unless it is too large to be looked into.
fn bytes<'a>(body: &Body<'a>) -> Option<Cow<'a, [u8]>> {
    match body {
        Body::Memory(bytes) => Some(Cow::Borrowed(bytes)),
        Body::File(file) if file.len() <= LOOKED_INTO => {
            let mut whole = vec![0; usize::try_from(file.len()).ok()?];
            let mut at = 0;
            while at < whole.len() {
                match file.read_at(whole.get_mut(at..)?, at as u64) {
                    Ok(0) | Err(_) => return None,
                    Ok(length) => at += length,
                }
            }
            Some(Cow::Owned(whole))
        }
        Body::File(_) | Body::Lost { .. } | Body::TooLarge { .. } => None,
    }
}
