//! Owns what tools do, as kinds, and how strict a run is.

use std::fmt;
use std::path::PathBuf;

/// One thing that a tool is about to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Runs a command line in a shell, in this folder.
    Shell {
        /// The whole text.
        command: String,
        /// Where; `None`: the agent's folder.
        cwd: Option<PathBuf>,
    },
    /// Reads a file or looks into a folder.
    Read(PathBuf),
    /// Writes, creates or deletes a file.
    Write(PathBuf),
    /// Calls a tool of a server.
    Mcp {
        /// The server's name.
        server: String,
        /// The tool's own name.
        tool: String,
        /// The program gave the server itself, or the tool is one of its functions, or the user trusts the server.
        explicit: bool,
    },
    /// Fetches a URL.
    Fetch(String),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell { command, .. } => write!(f, "run {command}"),
            Self::Read(path) => write!(f, "read {}", path.display()),
            Self::Write(path) => write!(f, "write {}", path.display()),
            Self::Mcp { server, tool, .. } => write!(f, "call {tool} of {server}"),
            Self::Fetch(url) => write!(f, "fetch {url}"),
        }
    }
}

/// How strict a run is. What is denied by a rule is denied in each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionMode {
    /// Everything that no rule denies is allowed. What a program's agents have that asks for neither a sandbox nor a
    /// review, and gives neither an allow list nor somebody to ask.
    Unrestricted,
    /// Reads inside the roots, servers that were given explicitly, and what a rule allows; for the rest somebody is
    /// asked, and without anybody to ask it is denied. What the shell has.
    #[default]
    Ask,
}

impl PermissionMode {
    /// The mode of a program's agent that names none, of whether it asks for a sandbox or a review, and gives an allow
    /// list or an approver. A review (`autoReview`) is this allow list with whoever may
    /// answer; nothing here judges calls by a model.
    #[expect(
        clippy::fn_params_excessive_bools,
        reason = "four independent facts, each of which asks for care"
    )]
    pub fn for_program(sandbox: bool, auto_review: bool, has_allow_list: bool, has_approver: bool) -> Self {
        if sandbox || auto_review || has_allow_list || has_approver { Self::Ask } else { Self::Unrestricted }
    }
}
