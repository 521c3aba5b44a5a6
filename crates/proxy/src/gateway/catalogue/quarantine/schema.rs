//! Owns what clients demand of a tool's schemas at their root. Looks no deeper: what a schema says is the server's.

use bytes::Bytes;
use serde_json::Value;

use super::what;
use crate::gateway::catalogue::members::Members;

type Repaired = (Vec<u8>, Vec<String>);

/// Judges an `inputSchema`. Arguments are always an object, so that a root that does not say so can only mean that.
/// `None`: good as it is.
pub(super) fn input(schema: &Value, raw: &Bytes) -> Result<Option<Repaired>, String> {
    let (Value::Object(value), Some(mut members)) = (schema, Members::of(raw)) else {
        return Err(format!("has an inputSchema that is {}, not an object", what(schema)));
    };
    if let Some(twice) = ["type", "properties", "required"].into_iter().find(|name| members.is_twice(name)) {
        return Err(format!("has {twice} twice in its inputSchema"));
    }
    let mut notes = Vec::new();
    match value.get("type") {
        Some(Value::String(kind)) if kind == "object" => {}
        None | Some(Value::Null) => {
            members.remove("type");
            members.set_first("type", "\"object\"");
            notes.push("inputSchema had no type".to_owned());
        }
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {
            members.set("type", "\"object\"");
            notes.push("inputSchema had several types".to_owned());
        }
        Some(other) => return Err(format!("has an inputSchema of type {other}, not \"object\"")),
    }
    match value.get("properties") {
        Some(Value::Object(_)) => {
            let raw = members.get("properties").cloned().unwrap_or_default();
            if let Some(properties) = properties(&raw, value.get("properties"))? {
                members.set("properties", properties);
                notes.push("inputSchema had properties that were true or false".to_owned());
            }
        }
        None | Some(Value::Null) => {
            members.set("properties", "{}");
            notes.push("inputSchema had no properties".to_owned());
        }
        Some(other) => return Err(format!("has properties in its inputSchema that are {}", what(other))),
    }
    match value.get("required") {
        None => {}
        Some(Value::Null) => {
            members.remove("required");
            notes.push("required of inputSchema was null".to_owned());
        }
        Some(Value::Array(names)) if names.iter().all(Value::is_string) => {}
        Some(_) => return Err("has an inputSchema whose required is no array of names".to_owned()),
    }
    Ok(members.is_changed().then(|| (members.json(), notes)))
}

/// `true` and `false` are schemas too, but not for every client.
fn properties(raw: &Bytes, value: Option<&Value>) -> Result<Option<Vec<u8>>, String> {
    let (Some(Value::Object(value)), Some(mut members)) = (value, Members::of(raw)) else { return Ok(None) };
    let fits = |property: &Value| property.is_object() || property.is_boolean();
    if let Some((name, other)) = value.iter().find(|(_, property)| !fits(property)) {
        return Err(format!("has a property {name:?} in its inputSchema that is {}", what(other)));
    }
    members.change_each(|property| match &property[..] {
        b"true" => Some(Bytes::from_static(b"{}")),
        b"false" => Some(Bytes::from_static(b"{\"not\":{}}")),
        _ => None,
    });
    Ok(members.is_changed().then(|| members.json()))
}

/// Every client takes it as an `outputSchema`.
pub(super) fn is_output(schema: &Value) -> bool {
    let properties = schema.get("properties").is_none_or(|properties| {
        properties.as_object().is_some_and(|properties| properties.values().all(Value::is_object))
    });
    let required = schema
        .get("required")
        .is_none_or(|required| required.as_array().is_some_and(|names| names.iter().all(Value::is_string)));
    schema.get("type").is_some_and(|kind| kind == "object") && properties && required
}
