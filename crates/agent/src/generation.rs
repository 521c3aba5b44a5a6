//! Owns the servers of a run: one set of them, started together and ended with its last user.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolway_bridge::RawJson;
use toolway_secret::Secret;

use crate::error::AgentError;
use crate::event::ServerReport;
use crate::inline::{DirectServer, InlineRecord};
use crate::options::{AgentDefinition, AgentOptions, SendOptions};

/// A set of running servers. Runs hold it by `Arc`: it ends with the last one.
#[derive(Debug)]
pub struct Generation {}

/// A tool as a model is offered it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpTool {
    /// The name that the model calls. Never split: see [`McpTool::server`].
    pub exposed: String,
    /// The server's name; empty for a tool of the gateway's own.
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

/// A call of a tool.
#[derive(Debug, Clone)]
pub struct McpCall<'a> {
    /// The tool's exposed name.
    pub exposed: &'a str,
    /// A JSON object, with the bytes that the model gave.
    pub arguments: RawJson,
}

/// What a call gave. The model's own faults are results too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpResult {
    /// A `CallToolResult`: `content`, `isError`, `structuredContent`.
    pub content: RawJson,
    /// It says that it is an error.
    pub is_error: bool,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq)]
pub struct McpProgress {
    /// How far.
    pub progress: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// What it is doing.
    pub message: Option<String>,
}

/// Where the servers of a generation are reached over HTTP, by who has the token: by agents behind a protocol.
#[derive(Debug, Clone)]
pub struct Front {
    /// The address.
    pub url: String,
    /// What to send as `Authorization: Bearer`.
    pub token: Secret,
}

/// The generations of one agent: the current one, and how others come to be. Cheap to make: nothing is read or started
/// before the first [`Generations::for_run`].
#[derive(Debug)]
pub struct Generations {}

/// What a reload found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reloaded {
    /// There is a new generation for the next run. False: nothing had been started yet, or files were bad.
    pub is_new: bool,
    /// What is wrong with files. Not empty and not `is_new`: the old servers stay.
    pub diagnostics: Vec<String>,
}

impl Generation {
    /// Every configured server and what it is now.
    pub fn reports(&self) -> Vec<ServerReport> {
        Vec::new()
    }

    /// What the model has now. Servers that come late add to it: ask before every call to the model.
    pub fn tools(&self) -> Arc<Vec<McpTool>> {
        Arc::default()
    }

    /// What is wrong with files, without being fatal.
    pub fn diagnostics(&self) -> Vec<String> {
        Vec::new()
    }

    /// Waits for servers that the first call to the model waits for, and for nothing else.
    pub async fn ready(&self) {}

    /// Calls a tool. Never an error of its own: an unknown tool, a server that is not up, a cancellation are results
    /// that say so.
    pub async fn call(
        &self,
        _call: McpCall<'_>,
        _progress: impl FnMut(McpProgress) + Send,
        _cancel: &CancellationToken,
    ) -> McpResult {
        McpResult { content: RawJson::empty_object(), is_error: true }
    }

    /// Where all but direct servers are reached over loopback HTTP. Opened by the first call; ends with the generation.
    pub async fn front(&self) -> Result<Option<Front>, AgentError> {
        Ok(None)
    }

    /// Servers that agents behind a protocol are given as they are.
    pub fn direct(&self) -> &[DirectServer] {
        &[]
    }

    /// The same servers for a subagent: those that its definition names, and its own. Unknown names are a fault.
    pub async fn for_subagent(
        self: &Arc<Self>,
        _name: &str,
        _definition: &AgentDefinition,
    ) -> Result<Arc<Self>, AgentError> {
        Ok(Arc::clone(self))
    }

    /// Ends the servers that are its own and waits for their end, 5 s at most. Dropping the last `Arc` does the same in
    /// the background.
    pub async fn shutdown(&self) {}
}

impl Generations {
    /// For an agent with these options. `saved_as` names it in the index of saved results: its id.
    pub fn new(_options: &AgentOptions, _saved_as: &str) -> Self {
        Self {}
    }

    /// What was given before and is not given now is reported as missing.
    pub fn missing(&self, _records: Vec<InlineRecord>) {}

    /// The servers of one run: the current generation, made now where there is none; or one of its own where the prompt
    /// brings other servers.
    pub async fn for_run(&self, _send: &SendOptions) -> Result<Arc<Generation>, AgentError> {
        Ok(Arc::new(Generation {}))
    }

    /// Reads all files again. Runs on their way keep what they have.
    pub async fn reload(&self) -> Result<Reloaded, AgentError> {
        Ok(Reloaded::default())
    }

    /// Ends all servers and waits for their end, 5 s at most. The second time nothing.
    pub async fn close(&self) {}
}
