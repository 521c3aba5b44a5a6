//! Owns what is remembered of a server that a program gave: enough to tell that it is missing or another one, and nothing
//! that could be read back.

use std::fmt::{self, Write as _};

use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::Sha256;

use super::McpServers;

/// What the digests of records are keyed with: a digest tells nothing to who does not have it. It is kept with the
/// store, by the store.
#[derive(Clone, PartialEq, Eq)]
pub struct RecordKey([u8; 32]);

impl RecordKey {
    /// These bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// A new one, that nobody can guess. An error: the system has no randomness.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The bytes, to be kept.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RecordKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordKey")
    }
}

/// What is kept of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InlineRecord {
    /// Its name.
    pub name: String,
    /// `stdio`, `http` or `sse`.
    pub transport: String,
    /// Keyed digest of its whole definition, in hexadecimal digits.
    pub digest: String,
}

/// How the servers that are given now differ from those that were given before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InlineDifference {
    /// Given before, and not now.
    pub missing: Vec<InlineRecord>,
    /// Given again with another definition: their names.
    pub changed: Vec<String>,
}

impl InlineRecord {
    /// What is to be kept of these servers, sorted by name.
    pub fn of(servers: &McpServers, key: &RecordKey) -> Vec<Self> {
        let mut records: Vec<Self> = servers
            .iter()
            .map(|(name, server)| Self {
                name: name.to_owned(),
                transport: server.transport().to_owned(),
                digest: digest(name, server.members(), key),
            })
            .collect();
        records.sort_by(|a, b| a.name.cmp(&b.name));
        records
    }

    /// What has become of the servers that these records tell of.
    pub fn compare(before: &[Self], now: &McpServers, key: &RecordKey) -> InlineDifference {
        let mut difference = InlineDifference::default();
        for record in before {
            match now.get(&record.name) {
                None => difference.missing.push(record.clone()),
                Some(server) if digest(&record.name, server.members(), key) != record.digest => {
                    difference.changed.push(record.name.clone());
                }
                Some(_) => {}
            }
        }
        difference
    }
}

/// Members in the order of their names: who writes them in another order means the same.
fn digest(name: &str, members: &Map<String, Value>, key: &RecordKey) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key.0) else { return String::new() };
    let mut text = Value::String(name.to_owned()).to_string();
    canonical(&Value::Object(members.clone()), &mut text);
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").ok();
        hex
    })
}

fn canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            into.push('{');
            for name in names {
                into.push_str(&Value::String(name.clone()).to_string());
                into.push(':');
                canonical(&members[name], into);
                into.push(',');
            }
            into.push('}');
        }
        Value::Array(items) => {
            into.push('[');
            for item in items {
                canonical(item, into);
                into.push(',');
            }
            into.push(']');
        }
        other => into.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::inline::McpServer;

    fn servers(entries: &[(&str, Value)]) -> McpServers {
        entries
            .iter()
            .map(|(name, value)| (*name, McpServer::from_json(value.as_object().cloned().unwrap())))
            .collect()
    }

    #[test]
    fn what_is_missing_and_what_has_changed_is_told_by_name() {
        let key = RecordKey::new([7; 32]);
        let before = servers(&[
            ("web", json!({"url": "https://h/mcp", "headers": {"Authorization": "Bearer s3cr3t"}})),
            ("db", json!({"command": "fakemcp", "args": ["db"], "env": {"PW": "s3cr3t", "A": "b"}})),
        ]);
        let records = InlineRecord::of(&before, &key);
        let kept = serde_json::to_string(&records).unwrap();
        assert!(!kept.contains("s3cr3t") && !kept.contains("https") && !kept.contains("fakemcp"), "{kept}");
        assert_eq!(InlineRecord::compare(&records, &before, &key), InlineDifference::default());
        let nothing = InlineRecord::compare(&records, &McpServers::new(), &key);
        assert_eq!(nothing.missing.iter().map(|one| &*one.name).collect::<Vec<_>>(), ["db", "web"]);
        let now = servers(&[
            ("db", json!({"env": {"A": "b", "PW": "s3cr3t"}, "args": ["db"], "command": "fakemcp"})),
            ("web", json!({"url": "https://other/mcp"})),
        ]);
        let difference = InlineRecord::compare(&records, &now, &key);
        assert_eq!((difference.missing, difference.changed), (vec![], vec!["web".to_owned()]));
        let other = InlineRecord::of(&before, &RecordKey::new([8; 32]));
        assert_ne!(records[0].digest, other[0].digest);
    }
}
