//! Owns what a modern request says about its client in `params._meta`, and the refusals of a request that says it wrong.
//! Pure; it must not know any transport. Specification 2026-07-28, "Versioning" and schema `RequestMetaObject`.

use std::ops::Range;

use crate::era::{Era, ProtocolVersion, code, meta};
use crate::error::{INVALID_PARAMS, error_response, push_string};
use crate::find::{Step, find, is_named, members, string};

/// What a client says of itself. All but the version is raw JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFacts {
    /// The revision that is spoken to a modern server.
    pub version: ProtocolVersion,
    /// `ClientCapabilities`.
    pub capabilities: Vec<u8>,
    /// `Implementation`.
    pub client_info: Option<Vec<u8>>,
}

/// `params._meta` of a request, as far as it is known here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestMeta<'a> {
    /// The revision that the request speaks.
    pub version: Option<String>,
    /// `ClientCapabilities`, raw.
    pub capabilities: Option<&'a [u8]>,
    /// `Implementation`, raw.
    pub client_info: Option<&'a [u8]>,
    /// The lowest level of log messages that the client wants.
    pub log_level: Option<String>,
    /// Raw.
    pub progress_token: Option<&'a [u8]>,
}

/// Names that only the modern era puts into `params._meta`.
pub const OWN_NAMES: [&str; 4] =
    [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO, meta::LOG_LEVEL];

/// Where `params._meta` stands.
pub fn meta_span(message: &[u8]) -> Option<Range<usize>> {
    find(message, &[Step::Key("params"), Step::Key("_meta")])
}

/// Reads `params._meta` of a request.
pub fn request_meta(message: &[u8]) -> RequestMeta<'_> {
    let mut found = RequestMeta::default();
    let Some(span) = meta_span(message) else { return found };
    for member in members(message, span) {
        let raw = message.get(member.value.clone());
        let text = || string(message, member.value.clone());
        if is_named(message, &member, meta::PROTOCOL_VERSION) {
            found.version = text();
        } else if is_named(message, &member, meta::CLIENT_CAPABILITIES) {
            found.capabilities = raw;
        } else if is_named(message, &member, meta::CLIENT_INFO) {
            found.client_info = raw;
        } else if is_named(message, &member, meta::LOG_LEVEL) {
            found.log_level = text();
        } else if is_named(message, &member, "progressToken") {
            found.progress_token = raw;
        }
    }
    found
}

/// The message carries any of the members that only the modern era has.
pub fn is_modern(message: &[u8]) -> bool {
    meta_span(message).is_some_and(|span| {
        members(message, span).any(|member| OWN_NAMES.iter().any(|name| is_named(message, &member, name)))
    })
}

impl RequestMeta<'_> {
    /// What the request says of its client, for a server of the modern era.
    pub fn client(&self) -> Option<ClientFacts> {
        Some(ClientFacts {
            version: ProtocolVersion::parse(self.version.as_deref()?)?,
            capabilities: self.capabilities?.to_vec(),
            client_info: self.client_info.map(<[u8]>::to_vec),
        })
    }
}

/// Why a modern request is refused before anything is done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// A required member of `_meta` is missing or of another type; HTTP 400.
    MissingMeta(&'static str),
    /// The revision is not spoken here; HTTP 400.
    UnsupportedVersion {
        /// As the client wrote it.
        requested: String,
    },
    /// The client has not declared a capability that the request needs; HTTP 400.
    MissingCapability(&'static str),
    /// A header is missing, malformed or not equal to the body; HTTP 400. The text says which.
    HeaderMismatch(String),
}

impl Refusal {
    /// The JSON-RPC code.
    pub fn code(&self) -> i64 {
        match self {
            Self::MissingMeta(_) => INVALID_PARAMS,
            Self::UnsupportedVersion { .. } => code::UNSUPPORTED_PROTOCOL_VERSION,
            Self::MissingCapability(_) => code::MISSING_CLIENT_CAPABILITY,
            Self::HeaderMismatch(_) => code::HEADER_MISMATCH,
        }
    }

    /// The error response. `id` is raw JSON.
    pub fn response(&self, id: &[u8], supported: &[ProtocolVersion]) -> Vec<u8> {
        match self {
            Self::MissingMeta(name) => {
                let text = format!("invalid params: _meta[{name:?}] is required");
                error_response(id, self.code(), &text, None)
            }
            Self::UnsupportedVersion { requested } => {
                let mut data = b"{\"supported\":[".to_vec();
                for (index, version) in supported.iter().enumerate() {
                    if index > 0 {
                        data.push(b',');
                    }
                    push_string(&version.to_string(), &mut data);
                }
                data.extend_from_slice(b"],\"requested\":");
                push_string(requested, &mut data);
                data.push(b'}');
                let data = String::from_utf8_lossy(&data);
                error_response(id, self.code(), "Unsupported protocol version", Some(&data))
            }
            Self::MissingCapability(name) => {
                let text = format!("this request needs the client capability {name}");
                let data = format!("{{\"requiredCapabilities\":{{\"{name}\":{{}}}}}}");
                error_response(id, self.code(), &text, Some(&data))
            }
            Self::HeaderMismatch(text) => error_response(id, self.code(), text, None),
        }
    }
}

/// Whether a modern request says what it must. Any revision of the modern era that is in `supported` is taken.
pub fn check(found: &RequestMeta<'_>, supported: &[ProtocolVersion]) -> Result<ProtocolVersion, Refusal> {
    let requested = found.version.as_deref().ok_or(Refusal::MissingMeta(meta::PROTOCOL_VERSION))?;
    let version = ProtocolVersion::parse(requested)
        .filter(|version| version.era() == Era::Modern && supported.contains(version))
        .ok_or_else(|| Refusal::UnsupportedVersion { requested: requested.to_owned() })?;
    match found.capabilities {
        Some(raw) if raw.first() == Some(&b'{') => Ok(version),
        _ => Err(Refusal::MissingMeta(meta::CLIENT_CAPABILITIES)),
    }
}
