//! Owns the digests of tool definitions as they were approved: what has changed since, and what is held back for it.
//! Pure; `disk` keeps them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

/// SHA-256 over the meaning of a definition: not over the order of members, white space, `_meta` or icons.
pub type Digest = [u8; 32];

/// What is different from what was approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// A tool of that name was not there.
    New,
    /// Its definition is another one.
    Changed,
    /// It is gone.
    Gone,
}

/// Approved digests of one server's tools, by the server's own names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pins {
    approved: BTreeMap<String, Digest>,
}

impl Pins {
    /// Approves what a server shows now, all of it. What is gone stays approved, for servers whose tools come and go.
    pub fn approve(&mut self, digests: &BTreeMap<String, Digest>) {
        self.approved.extend(digests.iter().map(|(name, digest)| (name.clone(), *digest)));
    }

    /// Remembers tools that were not there before; what has changed stays as it was approved. Says whether there
    /// were any.
    pub fn remember(&mut self, digests: &BTreeMap<String, Digest>) -> bool {
        let before = self.approved.len();
        for (name, digest) in digests {
            self.approved.entry(name.clone()).or_insert(*digest);
        }
        self.approved.len() > before
    }

    /// The tool was approved with another definition.
    pub fn is_changed(&self, own: &str, digest: &Digest) -> bool {
        self.approved.get(own).is_some_and(|approved| approved != digest)
    }

    /// Nothing was ever approved.
    pub fn is_empty(&self) -> bool {
        self.approved.is_empty()
    }

    /// The differences to what a server shows now, by name.
    pub fn compare(&self, digests: &BTreeMap<String, Digest>) -> Vec<(String, Difference)> {
        let now = digests.iter().filter_map(|(name, digest)| match self.approved.get(name) {
            None => Some((name.clone(), Difference::New)),
            Some(approved) if approved != digest => Some((name.clone(), Difference::Changed)),
            Some(_) => None,
        });
        let gone = self.approved.keys().filter(|name| !digests.contains_key(*name));
        let mut found: Vec<_> = now.chain(gone.map(|name| (name.clone(), Difference::Gone))).collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    /// As JSON: names to digests in hexadecimal.
    pub(super) fn to_json(&self) -> Value {
        self.approved.iter().map(|(name, digest)| (name.clone(), Value::from(hex(digest)))).collect()
    }

    /// From [`to_json`](Self::to_json); `None`: it is something else.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let digests = value.as_object()?.iter();
        let approved = digests.map(|(name, digest)| Some((name.clone(), unhex(digest.as_str()?)?)));
        Some(Self { approved: approved.collect::<Option<_>>()? })
    }
}

/// The digest of a definition.
pub(super) fn digest(definition: &Map<String, Value>) -> Digest {
    let mut out = Vec::new();
    for name in sorted(definition).filter(|name| !["_meta", "icons"].contains(name)) {
        push(&Value::from(name), &mut out);
        push(definition.get(name).unwrap_or(&Value::Null), &mut out);
    }
    Sha256::digest(&out).into()
}

fn sorted(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.into_iter()
}

/// Each value has one spelling, and no two spellings can be joined to a third. Depth is bounded by the parser's.
fn push(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            out.push(b'{');
            for name in sorted(map) {
                push(&Value::from(name), out);
                push(map.get(name).unwrap_or(&Value::Null), out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                push(item, out);
            }
            out.push(b']');
        }
        scalar => {
            out.extend_from_slice(scalar.to_string().as_bytes());
            out.push(b',');
        }
    }
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

fn unhex(text: &str) -> Option<Digest> {
    let mut digest = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(definition: &str) -> Digest {
        digest(serde_json::from_str::<Value>(definition).unwrap().as_object().unwrap())
    }

    #[test]
    fn a_digest_is_of_the_meaning() {
        let first = of(r#"{"name":"a","inputSchema":{"x":1,"y":[1,2]},"_meta":{"t":1}}"#);
        assert_eq!(
            first,
            of(r#"{ "inputSchema" : {"y":[1, 2],"x":1}, "name":"\u0061","_meta":{"t":2},"icons":[]}"#)
        );
        for other in [
            r#"{"name":"a","inputSchema":{"x":1,"y":[2,1]}}"#,
            r#"{"name":"a","inputSchema":{"x":1,"y":[1,2]},"description":"now with a hook"}"#,
            r#"{"name":"a","inputSchema":{"x":"1","y":[1,2]}}"#,
            r#"{"name":"a","inputSchema":{"x":1,"y":[12]}}"#,
        ] {
            assert_ne!(first, of(other), "{other}");
        }
    }

    #[test]
    fn changes_are_told_and_held_until_approved() {
        let mut pins = Pins::default();
        let first = BTreeMap::from([("a".to_owned(), [1; 32]), ("b".to_owned(), [2; 32])]);
        assert!(pins.is_empty() && pins.remember(&first) && !pins.remember(&first));
        let then = BTreeMap::from([("a".to_owned(), [9; 32]), ("c".to_owned(), [3; 32])]);
        let differences = [
            ("a".to_owned(), Difference::Changed),
            ("b".to_owned(), Difference::Gone),
            ("c".to_owned(), Difference::New),
        ];
        assert_eq!(pins.compare(&then), differences);
        pins.remember(&then);
        assert!(pins.is_changed("a", &[9; 32]) && !pins.is_changed("c", &[3; 32]));
        pins.approve(&then);
        assert_eq!(pins.compare(&then), [("b".to_owned(), Difference::Gone)]);
        assert_eq!(Pins::from_json(&pins.to_json()), Some(pins));
        assert_eq!(Pins::from_json(&serde_json::json!({"a": "zz"})), None);
    }
}
