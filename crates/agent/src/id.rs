//! Owns the ids of agents and runs. They are opaque but for their first letters, which tell where an agent lives.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

const LOCAL: &str = "agent-";
const CLOUD: &str = "bc-";
const RUN: &str = "run-";

/// The id of an agent: `agent-<uuid>` on this machine, `bc-<uuid>` in the cloud.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

impl AgentId {
    /// A new one for this machine.
    pub fn local() -> Self {
        Self(format!("{LOCAL}{}", Uuid::new_v4()))
    }

    /// The one for this machine that belongs to a digest of at least 16 bytes.
    pub(crate) fn of_digest(digest: &[u8]) -> Self {
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(digest).for_each(|(own, given)| *own = *given);
        Self(format!("{LOCAL}{}", uuid::Builder::from_random_bytes(bytes).into_uuid()))
    }

    /// Whether it names an agent in the cloud.
    pub fn is_cloud(&self) -> bool {
        self.0.starts_with(CLOUD)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The id of a run: `run-<uuid>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// A new one.
    pub fn random() -> Self {
        Self(format!("{RUN}{}", Uuid::new_v4()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is no id of that kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no id of {kind}: it should look like {shape}")]
pub struct IdFault {
    text: String,
    kind: &'static str,
    shape: &'static str,
}

fn has_uuid(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| rest.len() == 36 && Uuid::try_parse(rest).is_ok())
}

impl FromStr for AgentId {
    type Err = IdFault;

    fn from_str(text: &str) -> Result<Self, IdFault> {
        if has_uuid(text, LOCAL) || has_uuid(text, CLOUD) {
            return Ok(Self(text.to_owned()));
        }
        Err(IdFault { text: text.to_owned(), kind: "an agent", shape: "agent-<uuid> or bc-<uuid>" })
    }
}

impl FromStr for RunId {
    type Err = IdFault;

    fn from_str(text: &str) -> Result<Self, IdFault> {
        if has_uuid(text, RUN) {
            return Ok(Self(text.to_owned()));
        }
        Err(IdFault { text: text.to_owned(), kind: "a run", shape: "run-<uuid>" })
    }
}

macro_rules! text_forms {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $type {
            type Error = IdFault;

            fn try_from(text: String) -> Result<Self, IdFault> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(id: $type) -> Self {
                id.0
            }
        }
    };
}

text_forms!(AgentId);
text_forms!(RunId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_apart_by_their_first_letters() {
        let id = AgentId::local();
        assert_eq!(id.as_str().parse(), Ok(id.clone()));
        assert!(!id.is_cloud());
        let cloud: AgentId = "bc-00000000-0000-4000-8000-000000000000".parse().unwrap();
        assert!(cloud.is_cloud());
        assert!(RunId::random().as_str().parse::<AgentId>().is_err());
    }

    #[test]
    fn a_path_is_no_id() {
        for text in ["agent-", "agent-../../etc/passwd", "", "agent-00000000000040008000000000000000"] {
            assert!(text.parse::<AgentId>().is_err(), "{text}");
        }
    }
}
