//! Owns when two entries of Toolway's own form are the same server: by all that they mean, not by how they are spelled.
//! Pure.

use serde_json::Value as Json;

use crate::dialect::Dialect;
use crate::origin::ORIGIN;

use super::placeholders::{each_text, translate};
use super::reading::{Members, read};
use super::shapes;

/// The entry with one spelling for each thing, as it stands in a file of Toolway's own.
pub(super) fn normal(own: &Members) -> Members {
    let mut rest = own.clone();
    let mut normal = match read("", own, &shapes::OWN) {
        Ok(reading) => {
            rest.retain(|name, _| reading.unknown.contains(name));
            reading.own
        }
        Err(_) => Members::new(),
    };
    if let (Some(seconds), false) =
        (rest.get("startupTimeoutSec").and_then(Json::as_u64), rest.contains_key("startupTimeoutMs"))
    {
        rest.shift_remove("startupTimeoutSec");
        rest.insert("startupTimeoutMs".to_owned(), seconds.saturating_mul(1000).into());
    }
    normal.extend(rest);
    normal
}

/// What the entry means, for comparison: placeholders in one dialect where that is possible, nothing that says nothing,
/// and neither the switch nor what is remembered of clients.
pub(super) fn meaning(own: &Members, dialect: Dialect) -> Members {
    let mut meaning = normal(own);
    meaning.shift_remove(ORIGIN);
    meaning.shift_remove("enabled");
    let url = meaning.get("url").and_then(Json::as_str).unwrap_or_default();
    let may_be_sse = url.trim_end_matches('/').ends_with("/sse");
    if meaning.get("type").and_then(Json::as_str) == Some("http") && !may_be_sse {
        meaning.shift_remove("type");
    }
    meaning.retain(|_, value| !is_empty(value));
    in_one_spelling(&mut meaning, dialect);
    meaning
}

/// Texts that mean the same become equal.
pub(super) fn in_one_spelling(own: &mut Members, dialect: Dialect) {
    each_text::<()>(own, &mut |_, field, text| {
        *text = match translate(text, dialect, Dialect::Toolway, field) {
            // One spelling for `${env:X}` and `${X}`.
            Ok(translated) => translated.replace("${env:", "${"),
            Err(_) => format!("{}:{text}", dialect.name()),
        };
        Ok(())
    })
    .unwrap_or_default();
}

/// Whether a value says nothing.
pub(super) fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}
