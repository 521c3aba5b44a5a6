//! One JSON-RPC message over its raw text: members as they were spelled, whatever the depth. No tree is built.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde_json::value::RawValue;

/// A JSON object, with its members as raw JSON text.
#[derive(Debug)]
pub struct Message<'a> {
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Message<'a> {
    /// Parses one object; fails on anything that is not exactly one JSON object in UTF-8.
    pub fn parse(text: &'a [u8]) -> Result<Self> {
        let members = serde_json::from_slice(text).context("not a JSON object")?;
        Ok(Self { members })
    }

    /// Parses a line: one object, or an array of objects.
    pub fn parse_line(text: &'a [u8]) -> Result<Vec<Self>> {
        if text.trim_ascii_start().first() != Some(&b'[') {
            return Ok(vec![Self::parse(text)?]);
        }
        let items: Vec<&RawValue> = serde_json::from_slice(text).context("not a JSON array")?;
        if items.is_empty() {
            bail!("an empty batch");
        }
        items.into_iter().map(|item| Self::parse(item.get().as_bytes())).collect()
    }

    /// A member, spelled as it came.
    pub fn raw(&self, name: &str) -> Option<&'a str> {
        self.members.get(name).map(|value| value.get())
    }

    /// The id, spelled as it came.
    pub fn id(&self) -> Option<&'a str> {
        self.raw("id")
    }

    /// The method, decoded.
    pub fn method(&self) -> Option<String> {
        serde_json::from_str(self.raw("method")?).ok()
    }

    /// A member below `names`, spelled as it came.
    pub fn path(&self, names: &[&str]) -> Option<&'a str> {
        let (first, rest) = names.split_first()?;
        let value = self.raw(first)?;
        if rest.is_empty() {
            return Some(value);
        }
        Message::parse(value.as_bytes()).ok()?.path(rest)
    }

    /// A string below `names`, decoded.
    pub fn string(&self, names: &[&str]) -> Option<String> {
        serde_json::from_str(self.path(names)?).ok()
    }

    /// A request: a method and an id.
    pub fn is_request(&self) -> bool {
        self.raw("method").is_some() && self.id().is_some()
    }

    /// A response: no method, and an id, a result or an error.
    pub fn is_response(&self) -> bool {
        let answers = ["id", "result", "error"];
        self.raw("method").is_none() && answers.iter().any(|name| self.raw(name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_keep_their_spelling_and_null_is_a_value() {
        let text =
            br#"{"jsonrpc":"2.0","id":null,"method":"tools\/call","params":{"n":1.0,"d":{"e":[1e2]}}}"#;
        let message = Message::parse(text).unwrap();
        assert_eq!(message.id(), Some("null"));
        assert_eq!(message.method().as_deref(), Some("tools/call"));
        assert_eq!(message.path(&["params", "d", "e"]), Some("[1e2]"));
        assert!(message.is_request() && !message.is_response());
    }

    #[test]
    fn depth_does_not_matter() {
        let text = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(Message::parse(text.as_bytes()).unwrap().is_response());
    }

    #[test]
    fn what_is_not_a_message_is_refused() {
        for text in ["", "1", "[]", "[1]", "{", "{}{}", "\u{feff}{}"] {
            assert!(Message::parse_line(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(Message::parse_line(b"[{},{}]").unwrap().len(), 2);
    }
}
