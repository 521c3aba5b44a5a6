//! Owns the states of a server, one enumeration for gateway, doctor, shell and agents. Decides nothing.

use std::fmt;

/// How far a server's start had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The definition itself: a fault of the configuration, a variable that is not set.
    Configure,
    /// The command was not found.
    Resolve,
    /// The process could not be started, or ended before it answered.
    Spawn,
    /// The address could not be reached, or what answers there is no MCP server.
    Connect,
    /// No answer, or a bad one, to `initialize` or `server/discover`.
    Initialize,
    /// No answer, or a bad one, to `tools/list`.
    List,
    /// It was connected, and was lost.
    Run,
}

impl Stage {
    /// The word used in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configure => "configure",
            Self::Resolve => "resolve",
            Self::Spawn => "spawn",
            Self::Connect => "connect",
            Self::Initialize => "initialize",
            Self::List => "list",
            Self::Run => "run",
        }
    }
}

/// What a configured server is at the moment. Every entry has one, also those that are never started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// On its way, or a lazy server that nobody has called yet.
    Starting,
    /// Usable.
    Connected,
    /// Not usable; it may be tried again.
    Failed {
        /// How far it came.
        stage: Stage,
        /// What happened, without secrets.
        reason: String,
        /// What to do, in one line.
        hint: Option<String>,
    },
    /// The server wants a login.
    NeedsAuth {
        /// The command that does it.
        hint: String,
    },
    /// A value that only a person can give is missing: the names of the inputs.
    NeedsInput {
        /// Ids of the inputs.
        inputs: Vec<String>,
    },
    /// Nobody has approved this definition yet.
    Untrusted {
        /// The command that does it.
        hint: String,
    },
    /// A policy forbids it.
    Blocked {
        /// Which rule of which file.
        policy: String,
    },
    /// Switched off.
    Disabled {
        /// Where.
        by: String,
    },
    /// Another definition of the same name wins.
    Shadowed {
        /// Where that is.
        by: String,
    },
    /// Known before, and not given now.
    Missing,
}

impl ServerState {
    /// The word used in every output: `starting`, `connected`, `failed`, `needs_auth`, ...
    pub fn name(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::Failed { .. } => "failed",
            Self::NeedsAuth { .. } => "needs_auth",
            Self::NeedsInput { .. } => "needs_input",
            Self::Untrusted { .. } => "untrusted",
            Self::Blocked { .. } => "blocked",
            Self::Disabled { .. } => "disabled",
            Self::Shadowed { .. } => "shadowed",
            Self::Missing => "missing",
        }
    }
}

impl fmt::Display for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting | Self::Connected | Self::Missing => f.write_str(self.name()),
            Self::Failed { stage, reason, .. } => write!(f, "failed ({}): {reason}", stage.name()),
            Self::NeedsAuth { hint } => write!(f, "needs_auth: {hint}"),
            Self::NeedsInput { inputs } => write!(f, "needs_input: {}", inputs.join(", ")),
            Self::Untrusted { hint } => write!(f, "untrusted: {hint}"),
            Self::Blocked { policy } => write!(f, "blocked: {policy}"),
            Self::Disabled { by } => write!(f, "disabled: {by}"),
            Self::Shadowed { by } => write!(f, "shadowed: {by}"),
        }
    }
}
