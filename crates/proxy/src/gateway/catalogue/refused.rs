//! Owns what is said of a definition that no client is shown. Decides nothing.

use std::fmt;

use crate::gateway::lists::ListKind;

/// A definition that is kept from clients, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Of which list.
    pub kind: ListKind,
    /// Whose.
    pub server: String,
    /// Its own name or address; `#3` where it has none, counted from 1.
    pub name: String,
    /// The reason, which follows the name: `has no inputSchema`.
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} of {:?} {}", self.kind.noun(), self.name, self.server, self.reason)
    }
}
