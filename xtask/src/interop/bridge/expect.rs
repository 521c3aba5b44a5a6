//! What a scenario wants, compared with what came. It knows nothing of what the values are about.

use regex::Regex;
use serde_json::Value;

/// One line for each place where `got` is not as `wanted`.
///
/// Members that are not wanted may be there; `null` wants that nothing is; a list wants as many entries; a text that
/// begins with `~` is a regular expression, and any other one is meant literally; `{"text", "json": x}` wants a
/// text that is JSON for x.
pub(super) fn problems(wanted: &Value, got: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", wanted, got, &mut found);
    found
}

fn compare(path: &str, wanted: &Value, got: &Value, found: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(members), Value::Object(_)) => {
            for (name, wanted) in members {
                if name == "json" && got["json"].is_null() {
                    let text = got["text"].as_str().unwrap_or_default();
                    let parsed = serde_json::from_str(text).unwrap_or_else(|_| text.into());
                    exactly(&format!("{path}.text as JSON"), wanted, &parsed, found);
                } else {
                    compare(&format!("{path}.{name}"), wanted, &got[name], found);
                }
            }
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                compare(&format!("{path}[{index}]"), wanted, got, found);
            }
        }
        (Value::String(pattern), Value::String(got)) if pattern.starts_with('~') => {
            let pattern = pattern.trim_start_matches('~');
            if !Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(got)) {
                found.push(format!("{path}: {got:?} is not like {pattern:?}"));
            }
        }
        (Value::Number(wanted), Value::Number(number)) if wanted.as_f64() == number.as_f64() => {}
        _ => exactly(path, wanted, got, found),
    }
}

fn exactly(path: &str, wanted: &Value, got: &Value, found: &mut Vec<String>) {
    if wanted != got {
        let got = got.to_string();
        let short: String = got.chars().take(800).collect();
        found.push(format!("{path}: wanted {wanted}, got {short}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wanted_must_be_there_and_nothing_else_is_asked() {
        let got =
            json!({ "a": [{ "text": "one two", "n": 1.0 }, "x"], "b": "{\"c\":1}", "t": { "text": "[1]" } });
        for (wanted, problems_wanted) in [
            (json!({ "a": [{ "text": "one two" }, "x"] }), 0),
            (json!({ "a": [{ "text": "~^one" }, "~x"], "missing": null }), 0),
            (json!({ "a": [{ "n": 1 }, "x"], "t": { "json": [1] } }), 0),
            (json!({ "a": [{ "text": "one" }, "x"] }), 1),
            (json!({ "a": [{ "text": "~^two" }, "y"] }), 2),
            (json!({ "a": [{ "text": "~(" }, "x"] }), 1),
            (json!({ "a": [{}] }), 1),
            (json!({ "b": null, "missing": 1, "t": { "json": [2] } }), 3),
            (json!({ "a": { "text": "one two" } }), 1),
        ] {
            assert_eq!(problems(&wanted, &got).len(), problems_wanted, "{wanted}");
        }
    }
}
