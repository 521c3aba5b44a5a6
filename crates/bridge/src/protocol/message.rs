//! Owns the envelope: what a line of the host is, and the lines that go to it. Knows no method.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolway_wire::{Id, push_string};

use super::fault::Fault;
use crate::json::RawJson;

/// A request or a notification of the host.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Its id; a notification has none and gets no answer.
    pub(super) id: Option<Id>,
    pub(super) method: String,
    pub(super) params: Option<RawJson>,
}

/// What is wrong with a line, and the id to answer with.
#[derive(Debug)]
pub(super) struct BadLine {
    pub(super) id: Id,
    pub(super) fault: Fault,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// `null` is a value here: an id of null is not a missing one.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn null() -> Id {
    Id::from_json(b"null").unwrap_or_else(|| Id::from_number(0))
}

/// Reads a line that has something on it.
pub(super) fn read_line(line: &[u8]) -> Result<Incoming, Box<BadLine>> {
    let bad = |id: Id, code, text: &str| Box::new(BadLine { id, fault: Fault::new(code, text) });
    // Our own text: serde's column is of no help to whoever sees no line, and its words may quote the line.
    let line = std::str::from_utf8(line)
        .map_err(|_| bad(null(), Fault::PARSE, "the line is not JSON in UTF-8"))?
        .trim_matches(|blank: char| blank.is_ascii_whitespace());
    if line.starts_with('[') && serde_json::from_str::<&RawValue>(line).is_ok() {
        return Err(bad(
            null(),
            Fault::INVALID_REQUEST,
            "batches are not taken: send each message on a line of its own",
        ));
    }
    let envelope: Envelope<'_> = serde_json::from_str(line).map_err(|error| {
        if error.is_data() {
            return bad(
                null(),
                Fault::INVALID_REQUEST,
                "a message is an object with members of JSON-RPC 2.0",
            );
        }
        bad(null(), Fault::PARSE, "the line is not JSON in UTF-8")
    })?;
    let id = envelope.id.map(|raw| {
        Id::from_json(raw.get().as_bytes())
            .ok_or_else(|| bad(null(), Fault::INVALID_REQUEST, "id: a string, a number or null is wanted"))
    });
    let id = id.transpose()?;
    let owner = || id.clone().unwrap_or_else(null);
    if envelope.jsonrpc.is_none_or(|version| version.get() != "\"2.0\"") {
        return Err(bad(owner(), Fault::INVALID_REQUEST, "jsonrpc: \"2.0\" is wanted"));
    }
    let Some(method) = envelope.method else {
        let answer = envelope.result.is_some() || envelope.error.is_some();
        let text = if answer {
            "nothing was asked: calls are answered by call/result"
        } else {
            "method: a string is wanted"
        };
        // The id is that of an answer; an error with it could be taken for ours.
        let id = if answer { null() } else { owner() };
        return Err(bad(id, Fault::INVALID_REQUEST, text));
    };
    let method: String = serde_json::from_str(method.get())
        .map_err(|_| bad(owner(), Fault::INVALID_REQUEST, "method: a string is wanted"))?;
    let params = envelope.params.map(|raw| RawJson::new(raw.get().as_bytes().to_vec()));
    let params =
        params.transpose().map_err(|_| bad(owner(), Fault::PARSE, "the line is not JSON in UTF-8"))?;
    if params.as_ref().is_some_and(|params| !params.is_object()) {
        return Err(Box::new(BadLine { id: owner(), fault: Fault::field("", "an object is wanted") }));
    }
    Ok(Incoming { id, method, params })
}

/// The answer to a request.
pub(super) fn answer(id: &Id, result: &impl Serialize) -> Bytes {
    let mut line = Vec::with_capacity(128);
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    line.extend_from_slice(id.raw());
    line.extend_from_slice(b",\"result\":");
    match serde_json::to_writer(&mut line, result) {
        Ok(()) => line.push(b'}'),
        Err(error) => {
            line =
                Fault::new(Fault::INTERNAL, format!("the answer cannot be written: {error}")).line(id.raw());
        }
    }
    line.into()
}

/// A notification to the host.
pub(super) fn notification(method: &str, params: &impl Serialize) -> Bytes {
    let mut line = Vec::with_capacity(128);
    line.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
    push_string(method, &mut line);
    line.extend_from_slice(b",\"params\":");
    if serde_json::to_writer(&mut line, params).is_err() {
        line.extend_from_slice(b"{}");
    }
    line.push(b'}');
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(line: &str) -> String {
        let bad = read_line(line.as_bytes()).unwrap_err();
        format!("{} {} {}", bad.id, bad.fault.code(), bad.fault.message())
    }

    #[test]
    fn ids_of_any_kind_come_back_as_they_were_spelled() {
        for id in ["1", "\"a\\u0062\"", "1.50", "-7e3", "null", "123456789012345678901234567890"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
            let incoming = read_line(line.as_bytes()).unwrap();
            let answer = answer(&incoming.id.unwrap(), &serde_json::json!({"a": 1}));
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1}}}}"#);
            assert_eq!(String::from_utf8(answer.to_vec()).unwrap(), expected);
        }
        assert!(read_line(br#"{"jsonrpc":"2.0","method":"x"}"#).unwrap().id.is_none());
    }

    #[test]
    fn what_is_no_request_is_told_why() {
        for (line, told) in [
            ("{\"a\":", "null -32700 the line is not JSON in UTF-8"),
            ("hello", "null -32700 the line is not JSON in UTF-8"),
            (
                "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}]",
                "null -32600 batches are not taken: send each message on a line of its own",
            ),
            ("5", "null -32600 a message is an object with members of JSON-RPC 2.0"),
            ("{\"id\":4,\"method\":\"x\"}", "4 -32600 jsonrpc: \"2.0\" is wanted"),
            ("{\"jsonrpc\":\"1.0\",\"id\":4,\"method\":\"x\"}", "4 -32600 jsonrpc: \"2.0\" is wanted"),
            ("{\"jsonrpc\":\"2.0\",\"id\":4}", "4 -32600 method: a string is wanted"),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"x\",\"params\":[1]}",
                "4 -32602 params: an object is wanted",
            ),
            ("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":5}", "4 -32600 method: a string is wanted"),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"x\"}",
                "null -32600 id: a string, a number or null is wanted",
            ),
            (
                "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{}}",
                "null -32600 nothing was asked: calls are answered by call/result",
            ),
        ] {
            assert_eq!(wrong(line), told, "{line}");
        }
        let params = read_line(br#"{"jsonrpc":"2.0","id":4,"method":"x","params":[1]}"#).unwrap_err();
        assert_eq!(
            params.fault,
            Fault::field("", "an object is wanted"),
            "with data, like every other wrong param"
        );
        assert_eq!(read_line(b"{\"a\":\"\xff\"}").unwrap_err().fault.code(), Fault::PARSE);
    }
}
