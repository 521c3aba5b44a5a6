//! Owns what only Codex does: the names of variables stand in the place of secrets, in the file and in headers. Here
//! headers are in Toolway's own dialect, since Codex has no placeholders. Pure.

use serde_json::{Map, Value as Json};

use crate::dialect::{Dialect, Field};
use crate::template::{Piece, parse};

use super::placeholders::literal;
use super::reading::Members;

const BEARER: &str = "Bearer ";

/// Headers from `http_headers` (already read), `bearer_token_env_var` and `env_http_headers`.
pub(super) fn read(rest: &mut Members, own: &mut Members) -> Result<(), String> {
    let mut headers = match own.get("headers") {
        Some(Json::Object(headers)) => headers.clone(),
        _ => Map::new(),
    };
    for (_, value) in &mut headers {
        if let Some(text) = value.as_str() {
            *value = literal(text, Dialect::Toolway, Field::Headers)
                .ok_or("has a header that cannot be kept")?
                .into();
        }
    }
    if !own.contains_key("url") {
        return Ok(());
    }
    if let Some(Json::String(name)) = rest.get("bearer_token_env_var").cloned() {
        let taken = headers.keys().any(|header| header.eq_ignore_ascii_case("authorization"));
        if !taken {
            rest.shift_remove("bearer_token_env_var");
            headers.insert("Authorization".to_owned(), format!("{BEARER}${{{name}}}").into());
        }
    }
    if let Some(Json::Object(names)) = rest.shift_remove("env_http_headers") {
        for (header, name) in names {
            let name = name.as_str().ok_or("has a name in env_http_headers that is no text")?;
            headers.insert(header, format!("${{{name}}}").into());
        }
    }
    if !headers.is_empty() {
        own.insert("headers".to_owned(), headers.into());
    }
    Ok(())
}

/// Sorts the headers by where their values come from. A header that Codex cannot have is left out.
pub(super) fn write(own: &Members, out: &mut Members) {
    out.shift_remove("http_headers");
    let Some(headers) = own.get("headers").and_then(Json::as_object) else { return };
    let (mut plain, mut named) = (Members::new(), Members::new());
    for (header, value) in headers {
        let pieces = parse(value.as_str().unwrap_or_default(), Dialect::Toolway, Field::Headers);
        match pieces.as_deref() {
            Ok([]) => plain.insert(header.clone(), "".into()),
            Ok([Piece::Literal(text)]) => plain.insert(header.clone(), text.as_str().into()),
            Ok([Piece::Variable { name, default: None }]) => {
                named.insert(header.clone(), name.as_str().into())
            }
            Ok([Piece::Literal(bearer), Piece::Variable { name, default: None }])
                if bearer == BEARER && header == "Authorization" =>
            {
                out.insert("bearer_token_env_var".to_owned(), name.as_str().into())
            }
            _ => None,
        };
    }
    for (name, headers) in [("http_headers", plain), ("env_http_headers", named)] {
        if !headers.is_empty() {
            out.insert(name.to_owned(), headers.into());
        }
    }
}
