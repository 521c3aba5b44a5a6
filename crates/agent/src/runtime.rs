//! Owns what an agent's handle stands on, as a trait: on this machine, or elsewhere. It knows neither engines nor stores.

use std::fmt;

use crate::engine::BoxFuture;
use crate::error::AgentError;
use crate::event::Usage;
use crate::id::{AgentId, RunId};
use crate::options::{Prompt, SendOptions};
use crate::run::Run;

/// One agent, wherever it lives. Implemented by the local runtime; called by [`crate::Agent`] alone.
pub trait Runtime: Send + Sync + fmt::Debug + 'static {
    /// `native`, `acp`, ...
    fn name(&self) -> &'static str;

    /// Whose.
    fn agent(&self) -> &AgentId;

    /// The model that the next prompt goes to, where none is named with it.
    fn model(&self) -> Option<crate::options::ModelChoice>;

    /// Begins a run. Nothing of the agent was started, read or connected before the first one.
    fn send(&self, prompt: Prompt, options: SendOptions) -> BoxFuture<'_, Result<Run, AgentError>>;

    /// Reads files again, for the runs to come.
    fn reload(&self) -> BoxFuture<'_, Result<ReloadReport, AgentError>>;

    /// Begins to end everything, and does not wait.
    fn close(&self);

    /// Ends everything. Bounded; the second time it waits for the first.
    fn dispose(&self) -> BoxFuture<'_, ()>;

    /// Files that the agent made for its user elsewhere.
    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<Artifact>, AgentError>>;

    /// The bytes of one of them.
    fn artifact(&self, path: String) -> BoxFuture<'_, Result<Vec<u8>, AgentError>>;

    /// Tokens of one run, or of all.
    fn usage(&self, run: Option<RunId>) -> BoxFuture<'_, Result<UsageReport, AgentError>>;
}

/// What a reload found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReloadReport {
    /// Runs to come have what was read. Otherwise everything stays as it was: before the first prompt, where there is
    /// nothing to read again, or because of what `diagnostics` says.
    pub reloaded: bool,
    /// What is wrong: file, place and what to do.
    pub diagnostics: Vec<String>,
}

/// A file that an agent made for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Its path.
    pub path: String,
    /// How large it is.
    pub bytes: u64,
}

/// Tokens of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageReport {
    /// Of all runs that are reported.
    pub usage: Usage,
    /// What they cost in US dollars, where that is known of every one that is reported.
    pub cost: Option<f64>,
    /// Each of them, the oldest first.
    pub runs: Vec<(RunId, Usage)>,
}
