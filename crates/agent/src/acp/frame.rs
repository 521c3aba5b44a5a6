//! Owns the form of messages: one line of JSON-RPC 2.0. Values stay the bytes they came with.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use toolway_bridge::RawJson;

/// A message of the agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// It wants an answer under this id.
    Request { id: RawJson, method: String, params: RawJson },
    /// It wants none.
    Notification { method: String, params: RawJson },
    /// It answers the request with this number.
    Answer { id: u64, outcome: Result<RawJson, RpcError> },
    /// It is no message of the protocol.
    Odd,
}

/// Why a request was not served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<serde_json::Value>,
}

pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
pub(crate) const INTERNAL: i64 = -32603;
pub(crate) const AUTH_REQUIRED: i64 = -32000;
pub(crate) const NOT_FOUND: i64 = -32002;

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Message and data in one text, for people.
    pub(crate) fn text(&self) -> String {
        let detail = match &self.data {
            None | Some(serde_json::Value::Null) => None,
            Some(serde_json::Value::String(text)) => Some(text.clone()),
            Some(value) => ["message", "details", "error"]
                .iter()
                .find_map(|name| Some(value.get(name)?.as_str()?.to_owned()))
                .or_else(|| Some(value.to_string())),
        };
        let whole = match detail {
            Some(detail) if !detail.is_empty() && detail != self.message => {
                format!("{}: {detail}", self.message)
            }
            _ => self.message.clone(),
        };
        whole.get(..whole.floor_char_boundary(MOST)).unwrap_or_default().to_owned()
    }
}

/// So much of an error's text is shown, in bytes.
const MOST: usize = 2000;

#[derive(Deserialize)]
struct Read<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReadError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    data: Option<serde_json::Value>,
}

impl Frame {
    /// Reads a line.
    pub(crate) fn read(line: &[u8]) -> Self {
        let Ok(read) = serde_json::from_slice::<Read<'_>>(line) else { return Self::Odd };
        let raw =
            |value: Option<&RawValue>| value.and_then(|value| RawJson::new(value.get().to_owned()).ok());
        let params = || raw(read.params).unwrap_or_else(RawJson::empty_object);
        match (read.method.as_deref(), raw(read.id)) {
            (Some(method), Some(id)) if is_id(&id) => {
                Self::Request { id, method: method.to_owned(), params: params() }
            }
            (Some(method), None) => Self::Notification { method: method.to_owned(), params: params() },
            (None, Some(id)) => {
                let Ok(id) = id.text().trim_matches('"').parse() else { return Self::Odd };
                let outcome = match read.error {
                    Some(error) => Err(fault(error)),
                    None => Ok(raw(read.result).unwrap_or_else(RawJson::empty_object)),
                };
                Self::Answer { id, outcome }
            }
            (Some(_), Some(_)) | (None, None) => Self::Odd,
        }
    }
}

fn is_id(id: &RawJson) -> bool {
    !matches!(id.bytes().first(), None | Some(b'{' | b'[' | b't' | b'f'))
}

fn fault(error: &RawValue) -> RpcError {
    match serde_json::from_str::<ReadError>(error.get()) {
        Ok(ReadError { code, message, data }) => RpcError { code, message, data },
        Err(_) => RpcError::new(INTERNAL, "an error of an unknown form"),
    }
}

#[derive(Serialize)]
struct Call<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Reply<'a> {
    jsonrpc: &'static str,
    id: &'a RawJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

/// A request with a number, or a notification.
pub(crate) fn call(id: Option<u64>, method: &str, params: &impl Serialize) -> Bytes {
    serde_json::to_vec(&Call { jsonrpc: "2.0", id, method, params }).unwrap_or_default().into()
}

/// An answer.
pub(crate) fn reply(id: &RawJson, outcome: Result<serde_json::Value, RpcError>) -> Bytes {
    let (result, error) = match outcome {
        Ok(value) => (to_raw_value(&value).ok(), None),
        Err(error) => (None, Some(error)),
    };
    serde_json::to_vec(&Reply { jsonrpc: "2.0", id, result, error }).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::new(text.to_owned()).unwrap()
    }

    #[test]
    fn messages_are_told_apart() {
        let table = [
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{"n":1.10}}"#,
                Frame::Request {
                    id: raw("\"a\""),
                    method: "fs/read_text_file".to_owned(),
                    params: raw(r#"{"n":1.10}"#),
                },
            ),
            (
                r#"{"method":"session/update"}"#,
                Frame::Notification { method: "session/update".to_owned(), params: raw("{}") },
            ),
            (r#"{"id":7,"result":null}"#, Frame::Answer { id: 7, outcome: Ok(raw("{}")) }),
            (r#"{"id":"7","result":[1]}"#, Frame::Answer { id: 7, outcome: Ok(raw("[1]")) }),
            (
                r#"{"id":7,"error":{"code":-1,"message":"no"}}"#,
                Frame::Answer { id: 7, outcome: Err(RpcError::new(-1, "no")) },
            ),
            (r#"{"id":{},"method":"x"}"#, Frame::Odd),
            (r#"{"id":"other","result":1}"#, Frame::Odd),
            ("[]", Frame::Odd),
            ("starting up ...", Frame::Odd),
            ("{}", Frame::Odd),
            ("", Frame::Odd),
        ];
        for (line, expected) in table {
            assert_eq!(Frame::read(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn an_errors_detail_is_shown_with_its_message() {
        let mut error = RpcError::new(-32603, "Internal error");
        error.data = Some(serde_json::json!({"details": "no such model"}));
        assert_eq!(error.text(), "Internal error: no such model");
    }

    #[test]
    fn an_answer_repeats_the_id_as_it_came() {
        let bytes = reply(&raw("1.0"), Ok(serde_json::Value::Null));
        assert_eq!(bytes, r#"{"jsonrpc":"2.0","id":1.0,"result":null}"#);
    }
}
