//! Owns what a server offers, as it said it: raw definitions, pages joined. Understands none of them.

use std::time::Duration;

use bytes::Bytes;

/// One of the four kinds of list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
}

impl ListKind {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// The request that lists it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The member of the result that holds the definitions.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// The member that tells one definition from another.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Everything that one server offers. Each definition is valid JSON, byte for byte as the server sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawLists {
    /// Tools, in the server's order.
    pub tools: Vec<Bytes>,
    /// Prompts.
    pub prompts: Vec<Bytes>,
    /// Resources.
    pub resources: Vec<Bytes>,
    /// Resource templates.
    pub templates: Vec<Bytes>,
    /// What was left out and why, for people: `tools/list: the cursor "x" came twice; 40 tools were kept`.
    pub notes: Vec<String>,
    /// How long it may be kept, where the server said so (`ttlMs`, from 2026-07-28 on): the shortest of all pages.
    pub ttl: Option<Duration>,
    /// The server said that another user may see something else (`cacheScope: "private"`).
    pub private: bool,
}

impl RawLists {
    /// The definitions of one kind.
    pub fn of(&self, kind: ListKind) -> &[Bytes] {
        match kind {
            ListKind::Tools => &self.tools,
            ListKind::Prompts => &self.prompts,
            ListKind::Resources => &self.resources,
            ListKind::Templates => &self.templates,
        }
    }
}
