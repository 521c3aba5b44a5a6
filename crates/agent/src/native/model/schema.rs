//! Owns what must be changed of JSON that servers and models wrote before a service takes it: schemas whose root is not a
//! plain object, arguments that are no object, numbers that the library would round. No I/O.

use serde_json::{Map, Value, json};
use toolway_bridge::RawJson;

/// Keywords that services refuse at the root of a tool's schema.
const CHOICES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// A tool's schema with an object at its root. What is offered as choices there becomes one object with the members of
/// all; the tool's server still checks what it gets.
pub(super) fn schema(raw: &RawJson) -> Value {
    let Value::Object(mut root) = raw.tree() else {
        return json!({ "type": "object", "properties": {} });
    };
    root.remove("$schema");
    let mut properties = match root.remove("properties") {
        Some(Value::Object(properties)) => properties,
        _ => Map::new(),
    };
    for keyword in CHOICES {
        let Some(Value::Array(choices)) = root.remove(keyword) else {
            continue;
        };
        for choice in choices {
            let Value::Object(mut choice) = choice else {
                continue;
            };
            if let Some(Value::Object(more)) = choice.remove("properties") {
                for (name, member) in more {
                    properties.entry(name).or_insert(member);
                }
            }
            if keyword == "allOf" {
                require(&mut root, choice.remove("required"));
            }
        }
    }
    for keyword in ["enum", "const", "not"] {
        root.remove(keyword);
    }
    root.insert("type".to_owned(), "object".into());
    root.insert("properties".to_owned(), Value::Object(properties));
    Value::Object(root)
}

fn require(root: &mut Map<String, Value>, more: Option<Value>) {
    let Some(Value::Array(more)) = more else {
        return;
    };
    let required = root.entry("required").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(required) = required {
        for name in more {
            if !required.contains(&name) {
                required.push(name);
            }
        }
    }
}

/// A call's arguments as they go back to the model that wrote them. What is no object is told as one, and numbers that
/// 64 bits do not hold are told as texts, for here they would be rounded.
pub(super) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(&with_long_numbers_as_texts(text)) {
        Ok(Value::Object(members)) => Value::Object(members),
        _ => json!({ "invalid_arguments": text }),
    }
}

fn with_long_numbers_as_texts(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_text, mut escaped) = (false, false);
    let mut number = String::new();
    for letter in text.chars() {
        if in_text {
            out.push(letter);
            (in_text, escaped) = match letter {
                _ if escaped => (true, false),
                '\\' => (true, true),
                '"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        if letter.is_ascii_digit()
            || matches!(letter, '-' | '+' | '.' | 'e' | 'E') && is_number(&number, letter)
        {
            number.push(letter);
            continue;
        }
        finish(&mut out, &mut number);
        in_text = letter == '"';
        out.push(letter);
    }
    finish(&mut out, &mut number);
    out
}

fn is_number(so_far: &str, letter: char) -> bool {
    letter == '-' || !so_far.is_empty()
}

fn finish(out: &mut String, number: &mut String) {
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    let whole = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let fits =
        if whole { number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok() } else { digits <= 17 };
    if fits || number.is_empty() {
        out.push_str(number);
    } else {
        out.push('"');
        out.push_str(number);
        out.push('"');
    }
    number.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_stay_exact_as_texts() {
        let text = r#"{"a":123456789012345678901234567890,"b":18446744073709551615,"c":-5e3,"d":"9\"99999999999999999999999","e":[0.1,1.2345678901234567890]}"#;
        let value = arguments(text);
        assert_eq!(value["a"], "123456789012345678901234567890");
        assert_eq!(value["b"], 18_446_744_073_709_551_615_u64);
        assert_eq!(value["c"], -5000.0);
        assert_eq!(value["d"], "9\"99999999999999999999999");
        assert_eq!(value["e"], json!([0.1, "1.2345678901234567890"]));
    }

    #[test]
    fn arguments_that_are_no_object_are_told_as_one() {
        assert_eq!(arguments(""), json!({}));
        assert_eq!(arguments("[1]"), json!({ "invalid_arguments": "[1]" }));
        assert_eq!(arguments("{\"a\": tru"), json!({ "invalid_arguments": "{\"a\": tru" }));
    }

    #[test]
    fn a_schema_with_choices_at_its_root_becomes_one_object() {
        let raw = RawJson::of(&json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "anyOf": [
                { "properties": { "id": { "type": "integer" } }, "required": ["id"] },
                { "properties": { "name": { "$ref": "#/$defs/n" } }, "required": ["name"] },
            ],
            "allOf": [{ "properties": { "k": {} }, "required": ["k"] }],
            "$defs": { "n": { "type": "string", "pattern": "^a{1,3}$" } },
        }));
        let expected = json!({
            "$defs": { "n": { "type": "string", "pattern": "^a{1,3}$" } },
            "required": ["k"],
            "type": "object",
            "properties": { "id": { "type": "integer" }, "name": { "$ref": "#/$defs/n" }, "k": {} },
        });
        assert_eq!(schema(&raw), expected);
        assert_eq!(schema(&RawJson::of(&json!(true))), json!({ "type": "object", "properties": {} }));
        let plain = json!({ "type": "object", "properties": { "a": { "oneOf": [{}, {}], "x-own": 1 } } });
        assert_eq!(schema(&RawJson::of(&plain)), plain);
    }
}
