//! Owns the way of a call through hooks, rules and answers, before and after it.

use std::sync::Arc;
use std::time::Duration;

use toolway_bridge::RawJson;
use tokio_util::sync::CancellationToken;

use super::action::{Action, PermissionMode};
use super::answer::Approver;
use super::rule::PermissionRules;
use crate::hooks::{HookFacts, Hooks};

/// A call that is about to be made.
pub struct ToolUse<'a> {
    /// Its id.
    pub call_id: &'a str,
    /// A built-in tool's name, or a tool's own name at its server.
    pub tool: &'a str,
    /// Its server, if it is a server's.
    pub server: Option<&'a McpServerUse>,
    /// Its arguments.
    pub input: RawJson,
    /// What it does with these arguments. Called again when a hook changed them. Empty: nothing that needs permission.
    /// For a server's tool the call itself is added.
    pub actions: &'a (dyn Fn(&RawJson) -> Vec<Action> + Send + Sync),
    /// Whose call it is.
    pub facts: &'a HookFacts,
}

/// The server of a call, as hooks are told about it. Without values of variables and headers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct McpServerUse {
    /// Its name.
    pub name: String,
    /// See [`Action::Mcp`].
    pub explicit: bool,
    /// Its command line, if it is a process.
    pub command: Option<String>,
    /// Its URL, if it is remote.
    pub url: Option<String>,
}

/// Whether a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is, with these arguments.
    Go(RawJson),
    /// It is not; the model gets this text as an error result.
    Refused(String),
}

/// What becomes of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct After {
    /// Another result in place of the server's.
    pub result: Option<RawJson>,
    /// More for the model to read.
    pub context: Vec<String>,
}

/// What stands between a model and its tools. One for each agent's handle.
#[derive(Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}
