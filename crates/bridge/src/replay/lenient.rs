//! Owns the reading of JSON that came from an agent: nothing in it may make the rest unreadable.

use serde_json::{Map, Value};

use crate::json::RawJson;

/// The tree; lone surrogates, which no text can hold, are left out. What is nested too deeply is its own text.
pub(super) fn tree(json: &RawJson) -> Value {
    json.read().unwrap_or_else(|_| Value::from(json.text()))
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
    fn too_deep_nesting_is_a_text() {
        let deep = format!("{}{}", "[".repeat(400), "]".repeat(400));
        assert_eq!(tree(&RawJson::new(deep.clone()).unwrap()), Value::from(deep));
    }
}
