//! Owns what the loop knows of the tools of a step: their names, and how their calls are shown and ordered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toolway_bridge::RawJson;

/// The tools of a step, by the names that the model calls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offer {
    pub(crate) tools: BTreeMap<String, Offered>,
    pub(crate) resolve: Resolve,
    /// Finds servers that may have a tool of a name which is not among these: one that is on its way, or failed.
    pub(crate) absent: Resolve,
}

/// Finds what a call of a tool that calls others is really for.
#[derive(Clone, Default)]
pub(crate) struct Resolve(pub(crate) Option<Arc<ResolveFn>>);

/// By name and arguments; `None`: it is for the tool itself.
pub(crate) type ResolveFn = dyn Fn(&str, &RawJson) -> Option<Resolved> + Send + Sync;

/// What a call is really for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) offered: Offered,
    /// The arguments that are shown.
    pub(crate) arguments: RawJson,
}

impl fmt::Debug for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolve").field(&self.0.is_some()).finish()
    }
}

impl Resolve {
    /// What a call is really for.
    pub(super) fn of(&self, name: &str, arguments: &RawJson) -> Option<Resolved> {
        self.0.as_ref().and_then(|resolve| resolve(name, arguments))
    }
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Its calls may run beside others: they only read, or who has it puts them in order.
    pub(crate) together: bool,
    /// How it is shown.
    pub(crate) shown: Shown,
}

/// How a tool's calls are shown in events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// By its own name, with its arguments.
    Own,
    /// As `mcp`, with server, tool and arguments.
    Mcp {
        /// The server's name.
        server: String,
        /// The tool's own name.
        tool: String,
    },
}

impl Offer {
    /// What the model is told about a name that is none of them.
    pub(crate) fn unknown(&self, name: &str) -> String {
        const SHOWN: usize = 60;
        let mut text = if self.tools.is_empty() {
            format!("There is no tool {name:?}: you have no tools in this conversation. Answer in text.")
        } else {
            format!("There is no tool {name:?}. ")
        };
        if let Some(near) = self.near(name) {
            text.push_str("Did you mean ");
            text.push_str(near);
            text.push_str("? ");
        }
        if !self.tools.is_empty() {
            let names: Vec<&str> = self.tools.keys().take(SHOWN).map(String::as_str).collect();
            text.push_str("There are: ");
            text.push_str(&names.join(", "));
            if self.tools.len() > SHOWN {
                text.push_str(", and more");
            }
            text.push('.');
        }
        text
    }

    /// A name that differs in case, in separators or in a prefix alone.
    fn near(&self, name: &str) -> Option<&str> {
        let plain = |text: &str| -> String {
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        };
        let wanted = plain(name);
        if wanted.is_empty() {
            return None;
        }
        let same = self.tools.keys().find(|known| plain(known) == wanted);
        let by_own_name = || {
            let mut found = self.tools.iter().filter(|(_, offered)| match &offered.shown {
                Shown::Mcp { tool, .. } => plain(tool) == wanted,
                Shown::Own => false,
            });
            match (found.next(), found.next()) {
                (Some((known, _)), None) => Some(known),
                _ => None,
            }
        };
        same.or_else(by_own_name).map(String::as_str)
    }
}
