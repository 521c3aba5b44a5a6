//! Tests of `schema`.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn judged(text: &str) -> Result<(), OddSchema> {
    check(&RawJson::new(text.to_owned()).unwrap())
}

#[test]
fn schemas_of_objects_are_taken_whatever_else_they_say() {
    for text in [
        r#"{"type":"object"}"#,
        r#" { "type" : "object" , "properties" : { } } "#,
        r#"{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"]}"#,
        r#"{"$schema":"x","description":"a \"}\" \\","type":"object","additionalProperties":false}"#,
        r#"{"anyOf":[{"type":"string"},null,1,true],"type":"object"}"#,
        r##"{"type":"object","$ref":"#/$defs/x","$defs":{"x":true}}"##,
        r#"{"\u0074ype":"\u006fbject"}"#,
        r#"{"type":"object","properties":{"type":{"type":"number"}}}"#,
        r#"{"type":"object","required":[]}"#,
        r#"{"type":"object","default":1e300,"maximum":9007199254740993123456,"x":"\ud83d\ude00"}"#,
        r#"{"type":"object","type":"object"}"#,
    ] {
        assert_eq!(judged(text), Ok(()), "{text}");
    }
}

#[test]
fn each_odd_schema_has_its_reason() {
    let deep = format!(r#"{{"type":"object","x":{}{}}}"#, "[".repeat(20_000), "]".repeat(20_000));
    for (text, odd) in [
        ("true", OddSchema::NotAnObject),
        ("null", OddSchema::NotAnObject),
        (r#""object""#, OddSchema::NotAnObject),
        (r#"[{"type":"object"}]"#, OddSchema::NotAnObject),
        ("{}", OddSchema::RootType),
        (r#"{"type":"string"}"#, OddSchema::RootType),
        (r#"{"type":["object"]}"#, OddSchema::RootType),
        (r#"{"type":["object","null"]}"#, OddSchema::RootType),
        (r#"{"type":null}"#, OddSchema::RootType),
        (r#"{"type":{"type":"object"}}"#, OddSchema::RootType),
        (r#"{"Type":"object"}"#, OddSchema::RootType),
        (r#"{"anyOf":[{"type":"object"}]}"#, OddSchema::RootType),
        (r##"{"$ref":"#/$defs/x","$defs":{"x":{"type":"object"}}}"##, OddSchema::RootType),
        (r#"{"properties":{"type":{"type":"object"}}}"#, OddSchema::RootType),
        (r#"{"type":"object","type":"string"}"#, OddSchema::RootType),
        (r#"{"type":"string","type":"object"}"#, OddSchema::RootType),
        (r#"{"type":"object","properties":null}"#, OddSchema::Properties),
        (r#"{"type":"object","properties":[]}"#, OddSchema::Properties),
        (r#"{"type":"object","properties":{"a":true}}"#, OddSchema::Properties),
        (r#"{"type":"object","required":null}"#, OddSchema::Required),
        (r#"{"type":"object","required":"a"}"#, OddSchema::Required),
        (r#"{"type":"object","required":["a",1]}"#, OddSchema::Required),
        (r#"{"type":"object","required":[["a"]]}"#, OddSchema::Required),
        (&deep, OddSchema::Depth),
        (r#"{"type":"object","description":"\ud800"}"#, OddSchema::Value),
        (r#"{"type":"object","\udc00":1}"#, OddSchema::Value),
        (r#"{"type":"object","properties":{"a":{"default":[1e400]}}}"#, OddSchema::Value),
        (r#"{"type":"object","required":["\ud800x"]}"#, OddSchema::Value),
    ] {
        assert_eq!(judged(text), Err(odd), "{}", text.get(..80).unwrap_or(text));
    }
}

/// Any tree, with the members that are looked at among its keys.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!("object")),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let key = prop_oneof![
            Just("type".to_owned()),
            Just("properties".to_owned()),
            Just("required".to_owned()),
            ".{0,4}"
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The same judgement, made on the tree.
fn by_tree(schema: &Value) -> bool {
    let Some(root) = schema.as_object() else { return false };
    let objects = |value: &Value| value.as_object().is_some_and(|all| all.values().all(Value::is_object));
    let texts = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    root.get("type") == Some(&json!("object"))
        && root.get("properties").is_none_or(objects)
        && root.get("required").is_none_or(texts)
}

proptest! {
    #[test]
    fn bytes_are_judged_as_trees_are(schema in tree(), is_pretty in any::<bool>()) {
        let text = if is_pretty { serde_json::to_string_pretty(&schema).unwrap() } else { schema.to_string() };
        prop_assert_eq!(judged(&text).is_ok(), by_tree(&schema), "{}", text);
    }

    #[test]
    fn objects_are_judged_as_trees_are(
        members in proptest::collection::vec((prop_oneof![Just("properties"), Just("required"), Just("x")], tree()), 0..3),
    ) {
        let mut root = serde_json::Map::from_iter([("type".to_owned(), json!("object"))]);
        root.extend(members.into_iter().map(|(key, value)| (key.to_owned(), value)));
        let schema = Value::Object(root);
        prop_assert_eq!(judged(&schema.to_string()).is_ok(), by_tree(&schema), "{}", schema);
    }
}
