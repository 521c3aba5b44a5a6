//! Owns what the gateway says about each configured entry. Decides nothing.

use super::state::ServerState;

/// One configured entry, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its name as configured.
    pub name: String,
    /// Where it is configured.
    pub source: String,
    /// What it is.
    pub state: ServerState,
    /// A lazy server that nobody has called yet, or that runs only when called.
    pub lazy: bool,
    /// Negotiated protocol revision.
    pub protocol: Option<String>,
    /// Tools that are shown.
    pub tools: usize,
    /// Prompts, resources and templates.
    pub prompts: usize,
    /// Resources and templates together.
    pub resources: usize,
    /// Tools that are not shown, with the reason.
    pub hidden_tools: Vec<(String, String)>,
    /// Tools whose definition differs from the approved one.
    pub changed_tools: Vec<String>,
    /// Rough cost of the shown tools in a model's context.
    pub tokens: usize,
    /// Copies that run, and how many clients they serve.
    pub instances: usize,
    /// Remarks: lists that were cut, names that were shortened.
    pub notes: Vec<String>,
}
