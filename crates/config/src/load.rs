//! Owns the way from options to entries: which files are read, in which order, and what comes out of them.

use std::path::PathBuf;

use crate::entry::{Entry, FileReport};
use crate::policy::Policy;
use crate::problem::Problem;
use crate::source::SettingSource;

/// What is to be loaded.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Which sources; none by default.
    pub sources: Vec<SettingSource>,
    /// Files named by the user. If there is one, then no source is read; the administrator's policy holds all the same.
    /// Of equal names that of the later file wins.
    pub files: Vec<PathBuf>,
    /// Definitions given by a program: the map that stands under `mcpServers`.
    pub inline: serde_json::Map<String, serde_json::Value>,
    /// The same, for one run only: stands above all.
    pub per_send: serde_json::Map<String, serde_json::Value>,
    /// Whether projects and plugins must be approved.
    pub trust: TrustMode,
    /// The team's document where `TOOLWAY_TEAM_CONFIG` is a URL, as the caller fetched it, or why it could not.
    pub team_document: Option<Result<Vec<u8>, String>>,
}

/// Whether projects and plugins must be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustMode {
    /// Yes, by content: see `TrustStore`.
    #[default]
    Ask,
    /// The program that names the sources has approved them.
    Given,
}

/// What came out of all files.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    /// All entries, also those that lost, those that stand highest first.
    pub entries: Vec<Entry>,
    /// All that is wrong, in the order of the files.
    pub problems: Vec<Problem>,
    /// The files that were looked at.
    pub files: Vec<FileReport>,
    /// What the administrator allows.
    pub policy: Policy,
}

impl Resolved {
    /// The entry of that name that is not shadowed, if there is one.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        use crate::entry::Standing::{Invalid, Shadowed};
        let named = || self.entries.iter().filter(|entry| entry.name == name);
        let lost = |entry: &&Entry| matches!(entry.standing, Shadowed { .. } | Invalid);
        named().find(|entry| !lost(entry)).or_else(|| named().next())
    }
}
