//! Owns the crate's own error texts and the JSON-RPC error responses that a front writes. All codes are here.

/// Invalid JSON was received (JSON-RPC 2.0, section 5.1).
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is not a valid request (JSON-RPC 2.0, section 5.1).
pub const INVALID_REQUEST: i64 = -32600;
/// The method does not exist (JSON-RPC 2.0, section 5.1).
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Invalid parameters (JSON-RPC 2.0, section 5.1).
pub const INVALID_PARAMS: i64 = -32602;
/// The upstream could not answer: it ended, refused, or broke the protocol (implementation-defined range).
pub const UPSTREAM_ERROR: i64 = -32000;

/// A complete error response, without a line ending. `id` and `data` are JSON texts.
pub fn error_response(id: &[u8], code: i64, message: &str, data: Option<&str>) -> Vec<u8> {
    let mut out = Vec::with_capacity(id.len() + message.len() + data.map_or(0, str::len) + 64);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"error\":{\"code\":");
    out.extend_from_slice(code.to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    push_string(message, &mut out);
    if let Some(data) = data {
        out.extend_from_slice(b",\"data\":");
        out.extend_from_slice(data.as_bytes());
    }
    out.extend_from_slice(b"}}");
    out
}

/// Appends `text` as a JSON string, with characters outside of ASCII as they are.
pub fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut plain = 0;
    for (i, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(text.as_bytes().get(plain..i).unwrap_or_default());
        plain = i + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(text.as_bytes().get(plain..).unwrap_or_default());
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_are_json_whatever_the_text() {
        let message = "line\nquote\" back\\ tab\t nul\0 é漢 \u{7f}\u{2028}";
        let bytes = error_response(b"\"a\"", -32000, message, Some("{\"z\":1.0}"));
        let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(value["error"]["message"], message);
        assert_eq!(value["id"], "a");
        assert!(bytes.ends_with(b",\"data\":{\"z\":1.0}}}"));
    }
}
