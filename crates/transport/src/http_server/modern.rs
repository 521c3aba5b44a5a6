//! Owns the checks of a modern request's headers against its body. Pure. Specification 2026-07-28, "Streamable HTTP".

use http::HeaderMap;
use toolway_wire::Envelope;
use toolway_wire::era::{Era, ProtocolVersion, header, header_value};
use toolway_wire::request::{self, Refusal};

/// The request belongs to the modern generation: it says its revision, or only that generation has its method, or its
/// header names such a revision. `initialize` belongs to the other one, unless its body has what only this one has.
pub fn is_modern(envelope: &Envelope, message: Option<&[u8]>, headers: &HeaderMap) -> bool {
    match envelope.method() {
        Some("initialize") => message.is_some_and(request::is_modern),
        Some("server/discover" | "subscriptions/listen") => true,
        _ => {
            let named = headers.get(header::PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
            let modern =
                named.and_then(ProtocolVersion::parse).is_some_and(|version| version.era() == Era::Modern);
            modern || (envelope.method().is_some() && envelope.protocol_version().is_some())
        }
    }
}

/// `MCP-Protocol-Version` is there and says what the body says.
pub fn check_version(in_body: Option<&str>, headers: &HeaderMap) -> Result<(), Refusal> {
    let in_header = text(headers, header::PROTOCOL_VERSION)?;
    match (in_body, in_header) {
        (Some(_), None) => Err(missing("MCP-Protocol-Version")),
        (Some(body), Some(header)) if body != header => Err(differs("MCP-Protocol-Version", header, body)),
        _ => Ok(()),
    }
}

/// `Mcp-Method` and `Mcp-Name` say what the body says.
pub fn check_headers(envelope: &Envelope, headers: &HeaderMap) -> Result<(), Refusal> {
    let method = envelope.method().unwrap_or_default();
    equal("Mcp-Method", text(headers, header::METHOD)?, method)?;
    let named = match method {
        "tools/call" | "prompts/get" => envelope.name(),
        "resources/read" => envelope.uri(),
        _ => return Ok(()),
    };
    let Some(named) = named else { return Ok(()) };
    let given = text(headers, header::NAME)?.ok_or_else(|| missing("Mcp-Name"))?;
    let decoded = header_value(given)
        .ok_or_else(|| Refusal::HeaderMismatch("Header mismatch: Mcp-Name is not well encoded".to_owned()))?;
    equal("Mcp-Name", Some(&decoded), named)
}

fn equal(name: &str, given: Option<&str>, expected: &str) -> Result<(), Refusal> {
    match given {
        None => Err(missing(name)),
        Some(given) if given != expected => Err(differs(name, given, expected)),
        Some(_) => Ok(()),
    }
}

fn missing(name: &str) -> Refusal {
    Refusal::HeaderMismatch(format!("Header mismatch: {name} is missing"))
}

fn differs(name: &str, header: &str, body: &str) -> Refusal {
    Refusal::HeaderMismatch(format!(
        "Header mismatch: {name} header value {header:?} does not match body value {body:?}"
    ))
}

/// The text of a header that stands at most once.
fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    match (value.to_str(), values.next()) {
        (Ok(text), None) => Ok(Some(text)),
        _ => Err(Refusal::HeaderMismatch(format!("Header mismatch: {name} is not one plain value"))),
    }
}
