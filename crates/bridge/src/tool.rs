//! Owns what a host says of its tools: definitions, where they come from, which of them are active.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;

/// A tool of the host, as its registry has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostTool {
    /// The real name, as the host knows it.
    pub name: String,
    /// What it does; may be empty.
    #[serde(default)]
    pub description: String,
    /// Rules for its use that the host adds to prompts.
    #[serde(default)]
    pub guidelines: Vec<String>,
    /// JSON Schema of its arguments.
    #[serde(default = "RawJson::empty_object")]
    pub parameters: RawJson,
    /// Who registered it.
    #[serde(default)]
    pub provenance: Provenance,
}

/// Where a tool comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// `builtin`, `extension`, the name of a package.
    #[serde(default)]
    pub source: String,
    /// The file that defines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// `user`, `project`, `temporary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

/// The host's registry at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTools {
    /// All tools, in the order of their registration.
    pub all: Vec<HostTool>,
    /// The names of those that are active; a name without a tool is of no consequence.
    pub active: Vec<String>,
}
