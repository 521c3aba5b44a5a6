//! A raw, non-recursive JSON reader for what the harness itself sends and gets. It never builds a tree, so values
//! come back byte for byte (numbers, escapes and key order untouched), and 10,000-deep nesting costs a counter.
//! It trusts its input: the product's strict lexer is another one, on purpose, so that neither hides the other's
//! mistakes.

mod compare;

pub(crate) use compare::compare;

fn blank(b: &[u8], mut i: usize) -> usize {
    while i < b.len() && matches!(b[i], b' ' | b'\t' | b'\n' | b'\r') {
        i += 1;
    }
    i
}

/// `i` is at the opening quote; gives the index after the closing quote.
fn skip_string(b: &[u8], i: usize) -> usize {
    let mut j = i + 1;
    loop {
        match memchr::memchr2(b'"', b'\\', &b[j.min(b.len())..]) {
            None => return b.len(),
            Some(k) if b[j + k] == b'"' => return j + k + 1,
            Some(k) => j += k + 2,
        }
    }
}

fn skip_container(b: &[u8], i: usize) -> usize {
    let mut depth = 0usize;
    let mut j = i;
    while j < b.len() {
        match b[j] {
            b'"' => {
                j = skip_string(b, j);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return j + 1;
                }
            }
            _ => {}
        }
        j += 1;
    }
    b.len()
}

/// Index after the value that starts at `i`.
fn skip_value(b: &[u8], i: usize) -> usize {
    match b.get(i) {
        None => b.len(),
        Some(b'"') => skip_string(b, i),
        Some(b'{' | b'[') => skip_container(b, i),
        Some(_) => {
            let mut j = i;
            while j < b.len() && !matches!(b[j], b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                j += 1;
            }
            j
        }
    }
}

/// The (raw key without quotes, raw value) pairs of one object.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    b: &'a [u8],
    i: usize,
}

pub(crate) fn fields(b: &[u8]) -> Fields<'_> {
    let i = blank(b, 0);
    if b.get(i) == Some(&b'{') { Fields { b, i: i + 1 } } else { Fields { b, i: b.len() } }
}

impl<'a> Fields<'a> {
    fn stop(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.i = self.b.len();
        None
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let b = self.b;
        let mut i = blank(b, self.i);
        if i < b.len() && b[i] == b',' {
            i = blank(b, i + 1);
        }
        if i >= b.len() || b[i] != b'"' {
            return self.stop();
        }
        let key_end = skip_string(b, i);
        if key_end < i + 2 || key_end > b.len() {
            return self.stop();
        }
        let key = &b[i + 1..key_end - 1];
        i = blank(b, key_end);
        if i >= b.len() || b[i] != b':' {
            return self.stop();
        }
        i = blank(b, i + 1);
        let end = skip_value(b, i);
        self.i = end;
        Some((key, &b[i..end]))
    }
}

pub(crate) fn get<'a>(object: &'a [u8], key: &str) -> Option<&'a [u8]> {
    fields(object).find(|(k, _)| *k == key.as_bytes()).map(|(_, v)| v)
}

pub(crate) fn path<'a>(object: &'a [u8], keys: &[&str]) -> Option<&'a [u8]> {
    keys.iter().try_fold(object, |value, key| get(value, key))
}

/// Raw elements of an array; none of anything else.
pub(crate) fn items(b: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut i = blank(b, 0);
    if b.get(i) != Some(&b'[') {
        return out;
    }
    i = blank(b, i + 1);
    while i < b.len() && b[i] != b']' {
        let end = skip_value(b, i);
        if end == i {
            break;
        }
        out.push(&b[i..end]);
        i = blank(b, end);
        if i < b.len() && b[i] == b',' {
            i = blank(b, i + 1);
        }
    }
    out
}

/// The text of the first content block of a tool's answer, raw.
pub(crate) fn first_text_raw(message: &[u8]) -> Option<&[u8]> {
    first_content(message).and_then(|block| get(block, "text"))
}

/// The first content block of a tool's answer, raw.
pub(crate) fn first_content(message: &[u8]) -> Option<&[u8]> {
    path(message, &["result", "content"]).map(items)?.first().copied()
}

/// The text of the first content block, decoded.
pub(crate) fn first_text(message: &[u8]) -> Option<String> {
    string(first_text_raw(message))
}

/// A whole number, however it is spelled.
pub(crate) fn int(raw: Option<&[u8]>) -> Option<i64> {
    let text = std::str::from_utf8(raw?).ok()?.trim();
    text.parse().ok().or_else(|| format!("{:.0}", text.parse::<f64>().ok()?.trunc()).parse().ok())
}

/// A number that is not negative, or 0.
pub(crate) fn count(raw: Option<&[u8]>) -> usize {
    int(raw).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
}

pub(crate) fn truthy(raw: Option<&[u8]>) -> bool {
    raw == Some(b"true")
}

/// Decoded string; lone surrogates and what is no string give None.
pub(crate) fn string(raw: Option<&[u8]>) -> Option<String> {
    serde_json::from_slice::<String>(raw?).ok()
}

pub(crate) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A raw string (quotes included) of ASCII with no escape can be compared without decoding.
pub(crate) fn is_str(raw: Option<&[u8]>, text: &str) -> bool {
    raw.is_some_and(|r| r.len() == text.len() + 2 && &r[1..r.len() - 1] == text.as_bytes())
}

/// What lies between the quotes of a raw string.
pub(crate) fn unquoted(raw: &[u8]) -> &[u8] {
    raw.strip_prefix(b"\"").and_then(|r| r.strip_suffix(b"\"")).unwrap_or(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were_spelled() {
        let m = br#"{"jsonrpc":"2.0","id":12345678901234567890,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\"}b","n":[1,{"k":"]"}]}}}"#;
        assert_eq!(get(m, "id"), Some(&b"12345678901234567890"[..]));
        assert_eq!(path(m, &["params", "arguments", "text"]), Some(&br#""a\"}b""#[..]));
        assert_eq!(path(m, &["params", "arguments", "n"]).map(|n| items(n).len()), Some(2));
        assert_eq!(get(m, "nope"), None);
    }

    #[test]
    fn deep_nesting_is_passed_over() {
        let m = format!("{{\"a\":{}{},\"b\":7}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(get(m.as_bytes(), "b"), Some(&b"7"[..]));
    }

    #[test]
    fn torn_input_ends_the_fields() {
        for torn in ["{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":\"\\", "[", ""] {
            assert!(fields(torn.as_bytes()).count() <= 1, "{torn}");
        }
    }

    #[test]
    fn numbers_are_read_in_every_spelling() {
        let table = [("7", Some(7)), ("-7", Some(-7)), ("1.0", Some(1)), ("1e2", Some(100)), ("\"7\"", None)];
        for (text, want) in table {
            assert_eq!(int(Some(text.as_bytes())), want, "{text}");
        }
    }
}
