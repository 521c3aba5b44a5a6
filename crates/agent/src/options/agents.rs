//! Owns the definition of a subagent as a program gives it.

use crate::inline::McpServers;

/// A subagent: what it is for, and what it has.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentDefinition {
    /// When it is to be used, for the model.
    pub description: String,
    /// What it is told.
    pub prompt: String,
    /// Its model; `None`: that of its parent.
    pub model: Option<String>,
    /// The servers that it has; `None`: all of its parent's.
    pub mcp_servers: Option<Vec<SubagentServers>>,
}

/// Servers of a subagent.
#[derive(Debug, Clone, PartialEq)]
pub enum SubagentServers {
    /// One of its parent's, by name.
    Named(String),
    /// Its own: they live and die with it.
    Inline(McpServers),
}
