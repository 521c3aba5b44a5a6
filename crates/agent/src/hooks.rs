//! Owns hooks: programs of the user's, the project's or the administrator's that see tool calls before and after they
//! are made. It knows no rules and no models.

mod file;
mod message;
mod process;
mod sequence;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use toolway_bridge::{RawJson, Scrubber};
use toolway_config::Problem;

/// Whose call a hook is told about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HookFacts {
    /// The agent's id.
    pub conversation_id: String,
    /// The run's id.
    pub generation_id: String,
    /// The model.
    pub model: String,
    /// The agent's folder.
    pub cwd: PathBuf,
    /// The roots it works in.
    pub roots: Vec<PathBuf>,
}

/// The server of a call, as hooks are told about it. Without values of variables and headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpServerUse {
    /// Its name.
    pub name: String,
    /// The program gave it itself, or it is the program's own functions, or the user trusts it.
    pub explicit: bool,
    /// Its command line, if it is a process.
    pub command: Option<String>,
    /// Its URL, if it is remote.
    pub url: Option<String>,
}

/// A call as hooks see it.
#[derive(Clone, Copy)]
pub(crate) struct HookCall<'a> {
    pub(crate) facts: &'a HookFacts,
    pub(crate) call_id: &'a str,
    /// A built-in tool's name, or a tool's own name at its server.
    pub(crate) tool: &'a str,
    pub(crate) server: Option<&'a McpServerUse>,
    pub(crate) input: &'a RawJson,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HookEvent {
    PreToolUse,
    PostToolUse,
    BeforeMcpExecution,
    AfterMcpExecution,
}

impl HookEvent {
    const ALL: [Self; 4] =
        [Self::PreToolUse, Self::PostToolUse, Self::BeforeMcpExecution, Self::AfterMcpExecution];

    fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "preToolUse",
            Self::PostToolUse => "postToolUse",
            Self::BeforeMcpExecution => "beforeMCPExecution",
            Self::AfterMcpExecution => "afterMCPExecution",
        }
    }
}

/// One hook.
#[derive(Debug, Clone)]
struct Hook {
    event: HookEvent,
    /// What it runs; an error: why it cannot be used. Such a one is here only if it is to fail closed.
    command: Result<String, String>,
    /// For which tools; `None`: all.
    matcher: Option<Regex>,
    timeout: Duration,
    fail_closed: bool,
    /// Where it runs.
    cwd: PathBuf,
    /// Variables beside the machine's.
    env: BTreeMap<OsString, OsString>,
    /// File and line.
    place: String,
}

/// The hooks of the chosen sources, in the order in which they run: the administrator's, the project's, the user's, those
/// of plugins.
#[derive(Debug, Clone, Default)]
pub struct Hooks {
    all: Arc<[Hook]>,
    diagnostics: Arc<[Problem]>,
    /// The machine's variables.
    env: Arc<BTreeMap<OsString, OsString>>,
    /// See [`toolway_transport::ChildConfig::supervise`].
    supervise: Option<PathBuf>,
    scrubber: Arc<Scrubber>,
}

impl Hooks {
    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether any of them runs after calls.
    pub(crate) fn hears(&self) -> bool {
        let after = |event| matches!(event, HookEvent::AfterMcpExecution | HookEvent::PostToolUse);
        self.all.iter().any(|hook| after(hook.event))
    }

    /// What is wrong with the files, with file and place.
    pub fn diagnostics(&self) -> &[Problem] {
        &self.diagnostics
    }
}
