//! What the upstream says: its tools, its fixed results and its blobs. Knows no transport.

use std::ops::Range;

const ALPHABET: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
const MULTI: &str = "é漢字😀ñß→Ω";
const ESCAPED: &[u8] = b"a\\nb\\\"c\\\\d\\te"; // 9 characters once decoded

/// The text of `blob`, already escaped for JSON: `n` characters of `kind` (`ascii`, `multibyte`, `escaped`).
pub(crate) fn blob_text(n: usize, kind: &str) -> Vec<u8> {
    let (unit, per) = match kind {
        "multibyte" => (MULTI.as_bytes(), MULTI.chars().count()),
        "escaped" => (ESCAPED, 9),
        _ => (ALPHABET, ALPHABET.len()),
    };
    let (whole, rest) = (n / per, n % per);
    let mut out = Vec::with_capacity(unit.len() * whole + unit.len() + 16);
    repeat(&mut out, unit, whole);
    if kind == "multibyte" {
        out.extend(MULTI.chars().take(rest).collect::<String>().bytes());
    } else {
        out.resize(out.len() + rest, b'.');
    }
    out
}

/// The same in base64's own alphabet.
pub(crate) fn blob_base64(n: usize) -> Vec<u8> {
    let mut text = blob_text(n, "ascii");
    for c in &mut text {
        if matches!(*c, b'-' | b'_' | b'.') {
            *c = b'A';
        }
    }
    text
}

/// `n` numbers of one digit: many values in few bytes, which a tree multiplies.
pub(crate) fn blob_values(n: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * n + 2);
    out.push(b'[');
    repeat(&mut out, b"7,", n);
    out.pop_if(|c| *c == b',');
    out.push(b']');
    out
}

/// A piece of the ASCII blob's text, as one that begins at character `from` of it; whole units only.
pub(crate) fn blob_piece() -> Vec<u8> {
    let mut out = Vec::new();
    repeat(&mut out, ALPHABET, (64 << 10) / ALPHABET.len());
    out
}

fn repeat(out: &mut Vec<u8>, unit: &[u8], times: usize) {
    let from = out.len();
    if times > 0 {
        out.extend_from_slice(unit);
    }
    let mut have = 1;
    while have < times {
        let take = (times - have).min(have);
        let piece: Range<usize> = from..from + take * unit.len();
        out.extend_from_within(piece);
        have += take;
    }
}

/// The result of `tools/list`.
pub(crate) const TOOLS: &str = concat!(
    r#"{"tools":["#,
    r#"{"name":"echo","title":"Echo","description":"Returns its argument.","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":true},"annotations":{"readOnlyHint":true,"x-unknown-hint":1.0},"_meta":{"com.example/k":{"z":1,"a":12345678901234567890}},"futureField":["keep",null]},"#,
    r#"{"name":"blob","description":"Returns n characters.","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":12345678901234567890},"kind":{"type":"string"},"structured":{"type":"boolean"},"image":{"type":"boolean"}},"required":["n"],"additionalProperties":true}},"#,
    r#"{"name":"sleep","description":"Sleeps ms.","inputSchema":{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"],"additionalProperties":true}},"#,
    r#"{"name":"progress","description":"Sends n progress notifications.","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":true}},"#,
    r#"{"name":"reflect","description":"Returns the request line as received.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"probe","description":"Returns a fixed result.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"deep","description":"Returns deeply nested JSON.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"size","description":"Returns the size of the request.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"notify","description":"Sends a log message and an unknown notification.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"server_request","description":"Sends a request to the client.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"stats","description":"Counters.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"crash","description":"Exits with 3.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"crash_partial","description":"Writes half a response, exits with 3.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"garbage","description":"Prints text that is not JSON, then answers.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"stderr_flood","description":"Writes n bytes to stderr, then answers.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"never","description":"Never answers.","inputSchema":{"type":"object","additionalProperties":true}},"#,
    r#"{"name":"break_sse","description":"Cuts the stream before the answer.","inputSchema":{"type":"object","additionalProperties":true}}"#,
    r#"],"futureList":{"b":1.0,"a":1e2}}"#
);

/// Fixed results, spelled on purpose in ways that a front which parses and prints changes.
pub(crate) fn probe_result(kind: &str) -> &'static str {
    match kind {
        "numbers" => {
            r#"{"content":[{"type":"text","text":"n"}],"structuredContent":{"big":12345678901234567890,"huge":123456789012345678901234567890,"one":1.0,"exp":1e2,"negzero":-0.0,"small":1.0e-10,"precise":0.1234567890123456789,"max53":9007199254740993}}"#
        }
        "strings" => {
            r#"{"content":[{"type":"text","text":"s"}],"structuredContent":{"esc":"\u00e9","slash":"a\/b","pair":"\ud83d\ude00","raw":"é漢字😀","nul":"\u0000","ls":"\u2028","ctrl":"\u001f"}}"#
        }
        "shape" => {
            r#"{"content":[{"type":"text","text":"h"}],"structuredContent":{"z":1,"a":{"y":1,"b":2},"null":null,"emptyObj":{},"emptyArr":[],"nested":[{"q":null}],"bool":false}}"#
        }
        "unknown_fields" => {
            r#"{"content":[{"type":"text","text":"u","futureInner":{"k":1.0}}],"_meta":{"com.example/z":1.0,"a":null},"futureField":{"z":1,"a":[1.0,null]},"isError":false}"#
        }
        "unknown_content" => r#"{"content":[{"type":"hologram","data":"AAAA","depth":3}]}"#,
        "lone_surrogate" => r#"{"content":[{"type":"text","text":"\ud800"}]}"#,
        "duplicate_key" => r#"{"content":[{"type":"text","text":"d"}],"structuredContent":{"k":1,"k":2}}"#,
        "resource_link" => {
            r#"{"content":[{"type":"resource_link","uri":"file:///x","name":"x","futureInner":1},{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"file:///y","mimeType":"text/plain","text":"y"}}]}"#
        }
        "is_error" => r#"{"content":[{"type":"text","text":"failed"}],"isError":true}"#,
        _ => r#"{"content":[]}"#,
    }
}

/// What follows `protocolVersion` in the result of `initialize`.
pub(crate) const INIT_TAIL: &str = r#""capabilities":{"tools":{"listChanged":true},"logging":{},"resources":{"subscribe":true,"listChanged":true},"prompts":{"listChanged":true},"completions":{},"experimental":{"x-bench":{"n":1.0}},"futureCapability":{"k":1}},"serverInfo":{"name":"toolway-bench","title":"Toolway bench","version":"0.1.0","futureInfo":true},"instructions":"Bench instructions.","futureInit":{"z":1,"a":2}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_has_exactly_the_characters_asked_for() {
        for n in [0, 1, 7, 8, 9, 63, 64, 65, 1000, 100_000] {
            assert_eq!(blob_text(n, "ascii").len(), n);
            let multibyte = String::from_utf8(blob_text(n, "multibyte")).expect("valid UTF-8");
            assert_eq!(multibyte.chars().count(), n);
            let escaped = String::from_utf8(blob_text(n, "escaped")).expect("valid UTF-8");
            let decoded: String = serde_json::from_str(&format!("\"{escaped}\"")).expect("valid escapes");
            assert_eq!(decoded.chars().count(), n);
        }
    }

    #[test]
    fn values_are_an_array_of_that_length() {
        for n in [0, 1, 2, 1000] {
            let v: Vec<u8> = serde_json::from_slice(&blob_values(n)).expect("an array");
            assert_eq!(v.len(), n);
        }
    }

    #[test]
    fn pieces_join_to_the_blob() {
        let piece = blob_piece();
        assert_eq!([piece.as_slice(), &piece].concat(), blob_text(2 * piece.len(), "ascii"));
    }
}
