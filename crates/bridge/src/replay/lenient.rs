//! Owns the reading of JSON that came from an agent: nothing in it may make the rest unreadable.

use serde_json::{Map, Value};

use crate::json::RawJson;

/// The tree; lone surrogates, which no text can hold, are left out. What is nested too deeply is its own text.
pub(super) fn tree(json: &RawJson) -> Value {
    if let Ok(value) = serde_json::from_slice(json.bytes()) {
        return value;
    }
    let mended = without_lone_surrogates(json.bytes());
    serde_json::from_slice(&mended).unwrap_or_else(|_| Value::from(json.text()))
}

/// An object's members; none for anything else.
pub(super) fn object(json: &RawJson) -> Map<String, Value> {
    match tree(json) {
        Value::Object(map) => map,
        // Arguments of the "function" kind are a text of JSON.
        Value::String(text) => serde_json::from_str(&text).unwrap_or_default(),
        _ => Map::new(),
    }
}

fn without_lone_surrogates(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let length = match (byte, bytes.get(at + 1)) {
            (b'\\', Some(b'u')) => match (escape(bytes, at), escape(bytes, at + 6)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
                (Some(0xD800..=0xDFFF), _) => {
                    at += 6;
                    continue;
                }
                _ => 6,
            },
            (b'\\', _) => 2,
            _ => 1,
        };
        out.extend_from_slice(bytes.get(at..bytes.len().min(at + length)).unwrap_or_default());
        at += length;
    }
    out
}

/// The code of the escape `\uXXXX` that begins there.
fn escape(bytes: &[u8], at: usize) -> Option<u16> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The first of these members that is a text with something in it.
pub(super) fn text<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| map.get(*name)?.as_str()).filter(|text| !text.is_empty())
}

/// The first of these members that is a text, also an empty one.
pub(super) fn any_text<'a>(map: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| map.get(*name)?.as_str())
}

/// The first of these members that is a finite number, also one that was written as a text.
pub(super) fn number(map: &Map<String, Value>, names: &[&str]) -> Option<f64> {
    let one = |value: &Value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    names.iter().find_map(|name| one(map.get(*name)?)).filter(|number: &f64| number.is_finite())
}

/// The first of these members that is a count.
pub(super) fn count(map: &Map<String, Value>, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| map.get(*name)?.as_u64()).and_then(|count| usize::try_from(count).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_go_and_pairs_stay() {
        let json = RawJson::new(r#"{"a":"x\ud83d y\udc00","b":"\ud83d\ude00","c":"\\ud800","n":1}"#).unwrap();
        let tree = tree(&json);
        assert_eq!(tree, serde_json::json!({"a": "x y", "b": "😀", "c": "\\ud800", "n": 1}));
    }

    #[test]
    fn too_deep_nesting_is_a_text() {
        let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
        assert_eq!(tree(&RawJson::new(deep.clone()).unwrap()), Value::from(deep));
    }
}
