//! The two generations of the protocol as values: which version belongs to which, the names that each puts
//! on the wire, and how a value becomes safe for a header. It must not know any transport or message.
//!
//! Legacy revisions open with an `initialize` handshake and keep a session; from 2026-07-28 on (modern)
//! every request carries its own protocol version and capabilities in `params._meta`.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A generation of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize`, sessions, server requests, the GET stream.
    Legacy,
    /// 2026-07-28 and later: everything per request.
    Modern,
}

/// A protocol revision, named by its date. Ordered by date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProtocolVersion {
    year: u16,
    month: u8,
    day: u8,
}

impl ProtocolVersion {
    /// The first revision: HTTP+SSE transport.
    pub const V2024_11_05: Self = Self { year: 2024, month: 11, day: 5 };
    /// Streamable HTTP, and the only revision with batches.
    pub const V2025_03_26: Self = Self { year: 2025, month: 3, day: 26 };
    /// `MCP-Protocol-Version`, structured content, elicitation.
    pub const V2025_06_18: Self = Self { year: 2025, month: 6, day: 18 };
    /// The last legacy revision.
    pub const V2025_11_25: Self = Self { year: 2025, month: 11, day: 25 };
    /// The first modern revision.
    pub const V2026_07_28: Self = Self { year: 2026, month: 7, day: 28 };

    /// Every revision that is known here, oldest first.
    pub const KNOWN: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// Reads `YYYY-MM-DD`. Revisions that are not known here are versions too; `None` when it is no date.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let number = |range: std::ops::Range<usize>| {
            bytes[range]
                .iter()
                .try_fold(0u16, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u16::from(byte - b'0')))
        };
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        Some(Self { year, month: u8::try_from(month).ok()?, day: u8::try_from(day).ok()? })
    }

    /// The generation this revision belongs to.
    pub fn era(self) -> Era {
        if self >= Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The revision in which a client that asks for `requested` is answered: that one where it is a known legacy one, else
/// the last legacy one.
pub fn negotiate(requested: Option<&str>) -> ProtocolVersion {
    requested
        .and_then(ProtocolVersion::parse)
        .filter(|version| version.era() == Era::Legacy && ProtocolVersion::KNOWN.contains(version))
        .unwrap_or(ProtocolVersion::V2025_11_25)
}

/// Names of `params._meta` members of the modern era.
pub mod meta {
    /// The revision a request speaks; required.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// What the client can do; required.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// Name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// Lowest level of log notifications that the client wants for this request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// On notifications of a `subscriptions/listen` stream: the id of that request.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    /// On the answer to `server/discover`: name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// Names of the transport's HTTP headers, in lower case.
pub mod header {
    /// The session, in the legacy era.
    pub const SESSION_ID: &str = "mcp-session-id";
    /// The revision: negotiated (legacy), or equal to `_meta` (modern).
    pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
    /// `method` of the message, in the modern era.
    pub const METHOD: &str = "mcp-method";
    /// `params.name` or `params.uri` of `tools/call`, `prompts/get`, `resources/read`, in the modern era.
    pub const NAME: &str = "mcp-name";
    /// Beginning of the headers that mirror annotated tool parameters, in the modern era.
    pub const PARAM_PREFIX: &str = "mcp-param-";
    /// Where to resume an event stream, in the legacy era.
    pub const LAST_EVENT_ID: &str = "last-event-id";
}

/// Error codes that the specification defines for the modern era.
pub mod code {
    /// A header is missing, malformed, or not equal to the body; HTTP 400.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The request needs a capability that the client did not declare; HTTP 400.
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The server does not speak this revision; HTTP 400, `data: {supported, requested}`.
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
}

const OPEN: &str = "=?base64?";
const CLOSE: &str = "?=";

/// `value` in the form it may have in a header: as it is when it is plain ASCII without white space at the
/// ends, else `=?base64?...?=` over its UTF-8. A plain value that looks encoded is encoded too.
///
/// Specification 2026-07-28, "Streamable HTTP", "Value Encoding".
pub fn header_safe(value: &str) -> Cow<'_, str> {
    let edge = |byte: Option<&u8>| byte == Some(&b' ');
    let bytes = value.as_bytes();
    let looks_encoded = value.starts_with(OPEN) && value.ends_with(CLOSE);
    let odd = edge(bytes.first()) || edge(bytes.last()) || looks_encoded;
    let plain = !odd && bytes.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if plain { Cow::Borrowed(value) } else { Cow::Owned(format!("{OPEN}{}{CLOSE}", STANDARD.encode(value))) }
}

/// The value that [`header_safe`] made `text` of; `None` when the encoding is broken.
pub fn header_value(text: &str) -> Option<Cow<'_, str>> {
    match text.strip_prefix(OPEN).and_then(|rest| rest.strip_suffix(CLOSE)) {
        None => Some(Cow::Borrowed(text)),
        Some(coded) => String::from_utf8(STANDARD.decode(coded).ok()?).ok().map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::{Era, ProtocolVersion, header_safe, header_value};
    use proptest::prelude::*;

    #[test]
    fn versions_are_dates_in_order_and_belong_to_an_era() {
        let known: Vec<String> = ProtocolVersion::KNOWN.iter().map(ToString::to_string).collect();
        assert_eq!(known, ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);
        assert!(ProtocolVersion::KNOWN.is_sorted());
        for (text, era) in [
            ("2024-10-07", Era::Legacy),
            ("2025-11-25", Era::Legacy),
            ("2026-07-27", Era::Legacy),
            ("2026-07-28", Era::Modern),
            ("2027-01-01", Era::Modern),
        ] {
            let version = ProtocolVersion::parse(text).unwrap();
            assert_eq!((version.to_string().as_str(), version.era()), (text, era));
        }
    }

    #[test]
    fn what_is_no_date_is_no_version() {
        for text in [
            "",
            "1.0",
            "2025-3-26",
            "2025-13-01",
            "2025-00-01",
            "2025-01-32",
            "2025/01/01",
            "draft-2026",
            "２０25-01",
        ] {
            assert_eq!(ProtocolVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn unsafe_values_are_encoded_as_the_specification_shows() {
        for (value, header) in [
            ("us-west1", "us-west1"),
            ("a b", "a b"),
            ("", ""),
            ("Hello, \u{4e16}\u{754c}", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("tab\there", "=?base64?dGFiCWhlcmU=?="),
        ] {
            assert_eq!(header_safe(value), header, "{value:?}");
        }
        assert_eq!(header_value("=?base64?!!!?="), None);
    }

    proptest! {
        #[test]
        fn every_value_comes_back_from_a_printable_header(value in ".*") {
            let header = header_safe(&value);
            prop_assert!(header.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            let back = header_value(&header);
            prop_assert_eq!(back.as_deref(), Some(value.as_str()));
        }
    }
}
