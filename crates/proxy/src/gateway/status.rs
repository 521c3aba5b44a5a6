//! Owns what the gateway says about each configured entry, and of the tools that it shows. Decides nothing.

use bytes::Bytes;

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
    /// How messages travel to it: `stdio`, `http`, `sse`, `memory`; `None` while it is not connected.
    pub transport: Option<&'static str>,
    /// Its first start has come to an end, good or bad, and its lists, if it has any, are there.
    pub settled: bool,
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

/// A tool that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolStatus {
    /// What clients call it by.
    pub exposed: String,
    /// Its server's name as configured; empty: it is one of the gateway's own.
    pub server: String,
    /// The server's own name of it.
    pub own: String,
    /// Its definition as clients get it, raw.
    pub definition: Bytes,
    /// It is in the list that clients get, and not only to be found by a search.
    pub listed: bool,
}
