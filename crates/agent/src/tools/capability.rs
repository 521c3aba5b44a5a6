//! Owns the names by which tools are allowed and denied. No tool is known here.

use std::collections::BTreeSet;

use crate::error::{AgentError, Fault};

/// A tool, or a group of tools, as `tools` and `disallowedTools` name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Commands, and input for those that run.
    Shell,
    /// Files.
    Read,
    /// Whole files.
    Write,
    /// Parts of files.
    Edit,
    /// Files, away.
    Delete,
    /// Search in files.
    Grep,
    /// Search for files.
    Glob,
    /// Folders.
    Ls,
    /// Subagents.
    Task,
    /// The list of what is to do.
    UpdateTodos,
    /// The same, to look at.
    ReadTodos,
    /// Pages.
    WebFetch,
    /// The user.
    AskQuestion,
    /// Tools and resources of servers, and the host's own. Without it no server is started.
    Mcp,
}

impl Capability {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 14] = [
        Self::Shell,
        Self::Read,
        Self::Write,
        Self::Edit,
        Self::Delete,
        Self::Grep,
        Self::Glob,
        Self::Ls,
        Self::Task,
        Self::UpdateTodos,
        Self::ReadTodos,
        Self::WebFetch,
        Self::AskQuestion,
        Self::Mcp,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Read => "read",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Grep => "grep",
            Self::Glob => "glob",
            Self::Ls => "ls",
            Self::Task => "task",
            Self::UpdateTodos => "updateTodos",
            Self::ReadTodos => "readTodos",
            Self::WebFetch => "webFetch",
            Self::AskQuestion => "askQuestion",
            Self::Mcp => "mcp",
        }
    }

    /// The one of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// What an agent may use. Not kept with the agent: whoever resumes it says it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities(BTreeSet<Capability>);

impl Default for Capabilities {
    /// Everything.
    fn default() -> Self {
        Self(Capability::ALL.into_iter().collect())
    }
}

impl Capabilities {
    /// From the lists `tools` (`None`: everything) and `disallowedTools`, which wins.
    ///
    /// # Errors
    /// A name that means nothing; the valid ones are listed.
    pub fn new(tools: Option<&[String]>, disallowed: &[String]) -> Result<Self, AgentError> {
        let mut faults = Vec::new();
        let mut read = |field: &str, names: &[String]| -> BTreeSet<Capability> {
            let named = names.iter().enumerate().map(|(index, name)| {
                Capability::parse(name).ok_or_else(|| Fault {
                    subject: Some(name.clone()),
                    field: format!("{field}[{index}]"),
                    message: format!("there is no tool {name:?}; {}", valid(name)),
                })
            });
            let (good, bad): (Vec<_>, Vec<_>) = named.partition(Result::is_ok);
            faults.extend(bad.into_iter().filter_map(Result::err));
            good.into_iter().filter_map(Result::ok).collect()
        };
        let allowed = tools.map_or_else(|| Self::default().0, |names| read("tools", names));
        let denied = read("disallowedTools", disallowed);
        if !faults.is_empty() {
            return Err(AgentError::Configuration(faults));
        }
        Ok(Self(allowed.difference(&denied).copied().collect()))
    }

    /// Whether it may be used.
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// The same without one.
    #[must_use]
    pub fn without(mut self, capability: Capability) -> Self {
        self.0.remove(&capability);
        self
    }

    /// What may be used, in order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        self.0.iter().copied()
    }
}

/// The hint for a name that means nothing.
fn valid(name: &str) -> String {
    let plain = |text: &str| text.replace(['_', '-'], "").to_lowercase();
    let near = Capability::ALL.into_iter().find(|one| plain(one.name()) == plain(name));
    let near = near.map(|one| format!("did you mean {:?}? ", one.name())).unwrap_or_default();
    let names: Vec<&str> = Capability::ALL.into_iter().map(Capability::name).collect();
    format!("{near}valid names are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: Option<&[&str]>, disallowed: &[&str]) -> Result<Vec<&'static str>, String> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let tools = tools.map(owned);
        Capabilities::new(tools.as_deref(), &owned(disallowed))
            .map(|found| found.iter().map(Capability::name).collect())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn lists_choose_and_denial_wins() {
        assert_eq!(names(Some(&["grep", "read", "mcp"]), &["read"]).unwrap(), ["grep", "mcp"]);
        assert_eq!(names(Some(&[]), &[]).unwrap(), Vec::<&str>::new());
        assert_eq!(names(None, &["mcp", "task"]).unwrap().len(), 12);
        assert_eq!(names(None, &[]).unwrap().len(), 14);
    }

    #[test]
    fn all_unknown_names_are_said_with_the_valid_ones() {
        let error = names(Some(&["bash", "read"]), &["update_todos"]).unwrap_err();
        assert!(error.contains("tools[0]: there is no tool \"bash\""), "{error}");
        assert!(error.contains("disallowedTools[0]"), "{error}");
        assert!(error.contains("did you mean \"updateTodos\"?"), "{error}");
        assert!(error.contains("valid names are shell, read, write"), "{error}");
        assert!(error.starts_with("[validation_error]"), "{error}");
    }

    #[test]
    fn every_name_is_read_back() {
        for one in Capability::ALL {
            assert_eq!(Capability::parse(one.name()), Some(one));
        }
        // What options take is what there is.
        assert_eq!(Capability::ALL.map(Capability::name), crate::options::TOOL_NAMES);
    }
}
