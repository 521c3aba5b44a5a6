//! Owns the key by which agents are pooled: what one agent can serve without being replaced.

use std::fmt;

use serde::{Deserialize, Serialize};
use toolway_secret::Secret;

use crate::prompt::Digest;

/// What an agent was created with. Two keys that differ in any member need two agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PoolKey {
    /// Whose conversation it is: never shared between sessions, nor between a session and its child.
    pub session: String,
    /// The working directory.
    pub cwd: String,
    /// The model and all that was chosen with it.
    pub model: String,
    /// `local.settingSources`, in their order.
    pub setting_sources: Vec<String>,
    /// `local.autoReview`
    pub auto_review: bool,
    /// `local.sandbox`
    pub sandbox: bool,
    /// `local.transport`
    pub transport: String,
    /// The API key, as its digest.
    pub api_key: Option<Digest>,
    /// The signature of what the bridge exposes.
    pub surface: String,
}

/// A member of a [`PoolKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the members of the key, which are documented there")]
pub enum PoolMember {
    Session,
    Cwd,
    Model,
    SettingSources,
    Safety,
    Transport,
    ApiKey,
    Surface,
}

impl PoolKey {
    /// The digest of an API key: it tells two keys apart and gives neither away.
    pub fn key_digest(key: &Secret) -> Digest {
        Digest::of(key.expose().as_bytes())
    }

    /// The first member in which the other key differs.
    pub fn difference(&self, other: &Self) -> Option<PoolMember> {
        let Self { session, cwd, model, setting_sources, auto_review, sandbox, transport, api_key, surface } =
            self;
        let members = [
            (session == &other.session, PoolMember::Session),
            (cwd == &other.cwd, PoolMember::Cwd),
            (model == &other.model, PoolMember::Model),
            (setting_sources == &other.setting_sources, PoolMember::SettingSources),
            ((auto_review, sandbox) == (&other.auto_review, &other.sandbox), PoolMember::Safety),
            (transport == &other.transport, PoolMember::Transport),
            (api_key == &other.api_key, PoolMember::ApiKey),
            (surface == &other.surface, PoolMember::Surface),
        ];
        members.into_iter().find_map(|(is_same, member)| (!is_same).then_some(member))
    }
}

impl fmt::Display for PoolMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "the session",
            Self::Cwd => "the working directory",
            Self::Model => "the model",
            Self::SettingSources => "the setting sources",
            Self::Safety => "a safety option",
            Self::Transport => "the transport",
            Self::ApiKey => "the API key",
            Self::Surface => "what the bridge exposes",
        })
    }
}
