//! Owns the two ways in which a server says what it is: the answer to `initialize` and the one to `server/discover`.

use toolway_wire::era::meta::SERVER_INFO;
use toolway_wire::era::{Era, ProtocolVersion};
use toolway_wire::find::{Step, find, string};
use toolway_wire::push_string;

use super::edits::Edits;

/// The revisions that the gateway speaks to its clients, oldest first.
pub const SUPPORTED: [ProtocolVersion; 5] = ProtocolVersion::KNOWN;

/// What a server says of itself. Raw JSON where it is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The revisions that it speaks; one where it was agreed on by `initialize`.
    pub versions: Vec<String>,
    /// `ServerCapabilities`.
    pub capabilities: Vec<u8>,
    /// `Implementation`.
    pub server_info: Option<Vec<u8>>,
    /// Raw JSON string.
    pub instructions: Option<Vec<u8>>,
}

/// Reads the answer to `initialize`.
pub fn facts_of_initialize(message: &[u8]) -> Option<Facts> {
    let version = text(message, &["result", "protocolVersion"])?;
    Some(Facts {
        versions: vec![version],
        capabilities: raw(message, &["result", "capabilities"]).unwrap_or_else(|| b"{}".to_vec()),
        server_info: raw(message, &["result", "serverInfo"]),
        instructions: raw(message, &["result", "instructions"]).filter(|raw| raw.starts_with(b"\"")),
    })
}

/// Reads the answer to `server/discover`.
pub fn facts_of_discover(message: &[u8]) -> Option<Facts> {
    let at = find(message, &[Step::Key("result"), Step::Key("supportedVersions")])?;
    let versions: Vec<String> =
        toolway_wire::find::elements(message, at).filter_map(|at| string(message, at)).collect();
    Some(Facts {
        versions,
        capabilities: raw(message, &["result", "capabilities"]).unwrap_or_else(|| b"{}".to_vec()),
        server_info: raw(message, &["result", "_meta", SERVER_INFO])
            .or_else(|| raw(message, &["result", "serverInfo"])),
        instructions: raw(message, &["result", "instructions"]).filter(|raw| raw.starts_with(b"\"")),
    })
}

fn path<'a>(keys: &[&'a str]) -> Vec<Step<'a>> {
    keys.iter().map(|key| Step::Key(key)).collect()
}

fn raw(message: &[u8], keys: &[&str]) -> Option<Vec<u8>> {
    message.get(find(message, &path(keys))?).map(<[u8]>::to_vec)
}

fn text(message: &[u8], keys: &[&str]) -> Option<String> {
    string(message, find(message, &path(keys))?)
}

/// The `result` of `initialize`.
pub fn initialize_result(
    version: ProtocolVersion,
    capabilities: &[u8],
    server_info: &[u8],
    instructions: Option<&[u8]>,
) -> Vec<u8> {
    let version = format!("\"{version}\"");
    let mut set: Vec<(&str, &[u8])> = vec![
        ("protocolVersion", version.as_bytes()),
        ("capabilities", capabilities),
        ("serverInfo", server_info),
    ];
    set.extend(instructions.map(|text| ("instructions", text)));
    object(&set)
}

/// The `result` of `server/discover`. It may not be cached: the capabilities are those of servers that come and go.
pub fn discover_result(capabilities: &[u8], server_info: &[u8], instructions: Option<&[u8]>) -> Vec<u8> {
    let mut versions = vec![b'['];
    for version in SUPPORTED.iter().filter(|version| version.era() == Era::Modern) {
        if versions.len() > 1 {
            versions.push(b',');
        }
        push_string(&version.to_string(), &mut versions);
    }
    versions.push(b']');
    let info = object(&[(SERVER_INFO, server_info)]);
    let mut set: Vec<(&str, &[u8])> = vec![
        ("resultType", b"\"complete\""),
        ("supportedVersions", &versions),
        ("capabilities", capabilities),
        ("ttlMs", b"0"),
        ("cacheScope", b"\"private\""),
        ("_meta", &info),
    ];
    set.extend(instructions.map(|text| ("instructions", text)));
    object(&set)
}

/// `initialize` for a legacy server, on behalf of the gateway. `id`, capabilities and client info are raw JSON.
pub fn initialize_request(
    id: &[u8],
    version: ProtocolVersion,
    capabilities: &[u8],
    client_info: &[u8],
) -> Vec<u8> {
    let version = format!("\"{version}\"");
    let params = object(&[
        ("protocolVersion", version.as_bytes()),
        ("capabilities", capabilities),
        ("clientInfo", client_info),
    ]);
    object(&[("jsonrpc", b"\"2.0\""), ("id", id), ("method", b"\"initialize\""), ("params", &params)])
}

/// An object of these members, in their order.
pub(super) fn object(set: &[(&str, &[u8])]) -> Vec<u8> {
    let mut edits = Edits::new();
    edits.object(b"{}", 0..2, &[], set);
    edits.apply(b"{}")
}
