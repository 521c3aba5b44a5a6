//! Owns the servers of a run: one set of them, started together and ended with its last user.

use std::sync::Arc;

use toolway_bridge::RawJson;

use crate::event::ServerReport;

/// A set of running servers. Runs hold it by `Arc`: it ends with the last one.
#[derive(Debug)]
pub struct Generation {}

/// A tool as a model is offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpTool {
    /// The name that the model calls. Never split: see [`McpTool::server`].
    pub exposed: String,
    /// The server's name.
    pub server: Arc<str>,
    /// The tool's own name.
    pub tool: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments, an object schema.
    pub input_schema: RawJson,
    /// It says that it only reads.
    pub read_only: bool,
}

impl Generation {
    /// Every configured server and what it is now.
    pub fn reports(&self) -> Vec<ServerReport> {
        Vec::new()
    }
}
