//! Owns the errors that a host is answered with: codes, texts, and what a program reads of them.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::place::place;
use crate::json::RawJson;

/// Characters of a name that an error gives back.
const NAME: usize = 80;

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Fault {
    /// The line is not JSON (JSON-RPC 2.0, section 5.1).
    pub(super) const PARSE: i64 = -32700;
    /// It is no request.
    pub(super) const INVALID_REQUEST: i64 = -32600;
    /// There is no such method.
    pub(super) const METHOD: i64 = -32601;
    /// The params are not as the method wants them.
    pub(super) const PARAMS: i64 = -32602;
    /// Something failed here.
    pub(super) const INTERNAL: i64 = -32603;
    /// The host speaks a version that is not spoken here, or `initialize` has not been first.
    pub(super) const VERSION: i64 = -32000;
    /// There is no such session, run, or recorded result.
    pub(super) const UNKNOWN: i64 = -32001;
    /// A bound is reached.
    pub(super) const LIMIT: i64 = -32002;
    /// It was refused, or failed, for a reason that lies outside: a file, the system.
    pub(super) const REFUSED: i64 = -32003;

    /// Every code and when it is used, for the schema.
    pub(super) const CODES: [i64; 9] = [
        Self::PARSE,
        Self::INVALID_REQUEST,
        Self::METHOD,
        Self::PARAMS,
        Self::INTERNAL,
        Self::VERSION,
        Self::UNKNOWN,
        Self::LIMIT,
        Self::REFUSED,
    ];

    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// A member of the params is wrong; `wanted` says what was.
    pub(super) fn field(field: &str, wanted: &str) -> Self {
        let named = if field.is_empty() { "params".to_owned() } else { format!("params.{field}") };
        let wanted = cut(wanted, 400);
        Self::new(Self::PARAMS, format!("{named}: {wanted}"))
            .with(json!({ "field": field, "wanted": wanted }))
    }

    /// There is no such thing.
    pub(super) fn unknown(kind: &str, name: &str) -> Self {
        Self::new(Self::UNKNOWN, format!("there is no {kind} {}", shown(name)))
            .with(json!({ "kind": kind, "name": cut(name, NAME) }))
    }

    /// There is no such method.
    pub(super) fn method(name: &str) -> Self {
        Self::new(Self::METHOD, format!("there is no method {}", shown(name)))
    }

    pub(super) fn refused(reason: impl Into<String>) -> Self {
        Self::new(Self::REFUSED, reason)
    }

    pub(super) fn limit(what: &str, most: usize) -> Self {
        Self::new(Self::LIMIT, format!("{what}: at most {most}")).with(json!({ "limit": what, "most": most }))
    }

    /// The response with this id, a JSON text.
    pub(super) fn line(&self, id: &[u8]) -> Vec<u8> {
        let data = self.data.as_ref().map(Value::to_string);
        toolway_wire::error_response(id, self.code, &self.message, data.as_deref())
    }

    pub(super) fn code(&self) -> i64 {
        self.code
    }

    #[cfg(test)]
    pub(super) fn message(&self) -> &str {
        &self.message
    }
}

/// A name in a message: quoted, and not longer than a name is.
fn shown(name: &str) -> String {
    format!("{:?}", cut(name, NAME))
}

/// What a host wrote is not given back whole, however long it is.
fn cut(text: &str, most: usize) -> String {
    let mut cut: String = text.chars().take(most).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    cut
}

/// The params as the method wants them, or which member is wrong and what was wanted.
pub(super) fn read<P: DeserializeOwned>(params: Option<&RawJson>) -> Result<P, Fault> {
    let params = params.cloned().unwrap_or_else(RawJson::empty_object);
    params.read().map_err(|error| {
        let full = error.to_string();
        let wanted = full.rsplit_once(" at line ").map_or(full.as_str(), |(wanted, _)| wanted);
        // The text is one line: the column is the number of bytes that were read.
        Fault::field(&place(params.bytes(), error.column()), wanted)
    })
}

#[cfg(test)]
mod tests {
    use super::super::requests::{CallProgress, DeclareTools};
    use super::*;

    fn fault<P: DeserializeOwned + std::fmt::Debug>(params: &str) -> String {
        let params = RawJson::new(params.as_bytes().to_vec()).unwrap();
        let fault = read::<P>(Some(&params)).unwrap_err();
        assert_eq!(fault.code(), Fault::PARAMS);
        fault.message().to_owned()
    }

    #[test]
    fn a_wrong_field_is_named_with_what_is_wanted() {
        let tools = |params| fault::<DeclareTools>(params);
        assert_eq!(tools(r"{}"), "params: missing field `tools`");
        assert_eq!(
            tools(r#"{"tools":[{"name":"a"},{"name":7}]}"#),
            "params.tools[1].name: invalid type: integer `7`, expected a string"
        );
        assert_eq!(tools(r#"{"tools":[{"description":"x"}]}"#), "params.tools[0]: missing field `name`");
        assert!(
            tools(r#"{"tools":[],"actve":[]}"#)
                .starts_with("params: unknown field `actve`, expected one of `session`, `tools`, `active`")
        );
        assert!(fault::<CallProgress>(r#"{"call":1,"progress":1}"#).starts_with("params.call: "));
    }

    #[test]
    fn raw_members_keep_their_bytes() {
        let params = RawJson::new(
            r#"{"tools":[{"name":"a","parameters":{"maximum":1e400,"x":12345678901234567890123}}]}"#,
        )
        .unwrap();
        let declared: DeclareTools = read(Some(&params)).unwrap();
        assert_eq!(declared.tools[0].parameters.text(), r#"{"maximum":1e400,"x":12345678901234567890123}"#);
    }

    #[test]
    fn a_long_name_is_cut_in_the_text() {
        let long = "x".repeat(100_000);
        let wrong = RawJson::of(&json!({ "session": "s", long.as_str(): 2 }));
        let unread = read::<DeclareTools>(Some(&wrong)).unwrap_err();
        for fault in [Fault::unknown("run", &long), Fault::method(&long), Fault::field("a", &long), unread] {
            let line = fault.line(b"1");
            assert!(line.len() < 2000, "{}", String::from_utf8_lossy(&line));
        }
    }
}
