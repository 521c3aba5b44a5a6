//! Owns what is to be said about a settings file. The values that stand in it are never repeated.

use std::fmt;

/// Something that does not count as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The path of the key, `tools.bridge.enabled`; empty if it is about the whole file.
    pub key: String,
    /// What became of it, in one sentence without a full stop.
    pub message: String,
}

impl Warning {
    /// About a key.
    pub(crate) fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self { key: key.into(), message: message.into() }
    }

    /// About the file.
    pub(crate) fn file(message: impl Into<String>) -> Self {
        Self::new("", message)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.key, self.message)
        }
    }
}
