//! Owns changes in JSON, with or without comments. Everything but the member stays byte for byte.

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::json;
use serde_json::Value as Json;

use crate::problem::Problem;
use crate::tree::jsonc_options;

use super::Change;

/// The text with the changes made. The data is known to fit them.
pub(super) fn apply(text: &str, changes: &[Change]) -> Result<String, Problem> {
    let root = CstRootNode::parse(text, &jsonc_options(true))
        .map_err(|error| Problem::error(format!("cannot be read: {error}")))?;
    if root.value().is_none() {
        root.set_value(json!({}));
    }
    for change in changes {
        make(&root, change)?;
    }
    Ok(root.to_string())
}

fn make(root: &CstRootNode, change: &Change) -> Result<(), Problem> {
    let Some((last, above)) = change.path().split_last() else { return Ok(()) };
    let mut object = root.object_value().ok_or_else(no_object)?;
    for name in above {
        object = match (object.object_value(name), change) {
            (Some(inner), _) => inner,
            (None, Change::Set { .. }) => object.object_value_or_create(name).ok_or_else(no_object)?,
            (None, Change::Remove { .. }) => return Ok(()),
        };
    }
    match change {
        Change::Set { value, .. } => set(&object, last, value),
        Change::Remove { .. } => {
            if let Some(property) = object.get(last) {
                property.remove();
            }
        }
    }
    Ok(())
}

fn no_object() -> Problem {
    Problem::error("is no object, so it has no members that could be changed")
}

fn set(object: &CstObject, name: &str, value: &Json) {
    let value = input(value);
    match object.get(name) {
        Some(property) => property.set_value(value),
        None => {
            object.append(name, value);
        }
    }
}

fn input(value: &Json) -> CstInputValue {
    match value {
        Json::Null => CstInputValue::Null,
        Json::Bool(value) => CstInputValue::Bool(*value),
        Json::Number(number) => CstInputValue::Number(number.to_string()),
        Json::String(text) => CstInputValue::String(text.clone()),
        Json::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Json::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}
