//! Tests of changes, without files.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::*;
use crate::json::RawJson;

/// Any tree, with keys of the file among its own.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from), object(inner),]
    })
}

fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("tools".to_owned()),
        Just("bridge".to_owned()),
        Just("enabled".to_owned()),
        ".{0,3}"
    ];
    proptest::collection::vec((key, inner), 0..5)
        .prop_map(|members| Value::Object(members.into_iter().collect::<Map<String, Value>>()))
}

/// The same change, made on the tree. `None` where something is in its way.
fn by_tree(mut file: Value, value: Option<bool>) -> Option<Value> {
    let mut place = file.as_object_mut()?;
    for key in ["tools", "bridge"] {
        if value.is_none() && !place.contains_key(key) {
            return Some(file);
        }
        place = place.entry(key).or_insert_with(|| json!({})).as_object_mut()?;
    }
    match value {
        Some(value) => place.insert("enabled".to_owned(), json!(value)),
        None => place.shift_remove("enabled"),
    };
    Some(file)
}

proptest! {
    #[test]
    fn a_change_of_the_text_is_the_change_of_the_tree(
        file in object(tree()),
        value in any::<Option<bool>>(),
        is_pretty in any::<bool>(),
    ) {
        let path = ["tools", "bridge", "enabled"];
        let change = match value {
            Some(value) => SettingChange::set(&path, RawJson::of(&json!(value))).unwrap(),
            None => SettingChange::remove(&path),
        };
        let text = if is_pretty { serde_json::to_string_pretty(&file).unwrap() } else { file.to_string() };
        let changed = change.apply(&text);
        match by_tree(file, value) {
            Some(expected) => {
                let changed = changed.unwrap();
                let tree: Value = serde_json::from_str(&changed).unwrap();
                // Also in the order of its members.
                prop_assert_eq!(tree.to_string(), expected.to_string());
                // Once more changes nothing.
                prop_assert_eq!(change.apply(&changed).unwrap(), changed);
            }
            None => prop_assert!(changed.is_err()),
        }
    }
}

#[test]
fn of_members_of_one_name_the_last_is_changed_and_all_are_removed() {
    let twice = r#"{"tools":{"manifest":1,"manifest":true,"x":0}}"#;
    let set = SettingChange::set(&["tools", "manifest"], RawJson::of(&json!(false))).unwrap();
    let squeezed = |text: String| text.replace(['\n', ' '], "");
    assert_eq!(squeezed(set.apply(twice).unwrap()), r#"{"tools":{"manifest":1,"manifest":false,"x":0}}"#);
    let remove = SettingChange::remove(&["tools", "manifest"]);
    assert_eq!(squeezed(remove.apply(twice).unwrap()), r#"{"tools":{"x":0}}"#);
}
