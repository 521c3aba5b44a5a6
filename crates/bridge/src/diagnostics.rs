//! Owns diagnostic events: typed, with allow-listed fields, off by default. A sink that fails costs nothing.
//!
//! What an event can carry is what its type has: ids that lead nowhere, counts, tool names. There is no field for an
//! address, an argument, a result or a reason.

mod sinks;

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::call::RejectionKind;
use crate::profile::Profile;
use sinks::Sinks;
pub use sinks::{DiagnosticSink, DiagnosticsConfig};

/// Something that happened to a run or to one of its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The run, if there is one.
    pub run_id: Option<String>,
    /// The bridge is on.
    pub enabled: bool,
    /// How many tools the run exposes.
    pub exposed_tool_count: usize,
    /// How many of its calls have no answer.
    pub pending_count: usize,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// A run was opened.
    RunCreated,
    /// No run was opened.
    RunSkipped(SkipReason),
    /// What the run exposes: real names and MCP names.
    ToolsExposed {
        /// Both names of each tool.
        pairs: Vec<(String, String)>,
    },
    /// Calls of the run were given up together.
    RunCancelled {
        /// Those that the host had not been handed.
        queued_count: usize,
        /// All of them.
        cancelled_request_count: usize,
    },
    /// The run is over.
    RunDisposed,
    /// A call came.
    RequestQueued(CallFields),
    /// A call has a result; `true`: one that says that the tool failed.
    RequestResolved(CallFields, bool),
    /// A call ended without a result.
    RequestRejected(CallFields, RejectionKind),
    /// A client introduced itself.
    McpInitialized,
    /// A client was given the list of tools.
    McpToolsList {
        /// How many there are.
        tool_count: usize,
    },
}

/// Why no run was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The bridge is off.
    Disabled,
    /// No tool is exposed.
    NoExposedTools,
}

/// What is told of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallFields {
    /// The bridge's own id.
    pub bridge_call_id: String,
    /// The id by which the host knows it.
    pub host_call_id: String,
    /// The tool's real name.
    pub host_tool_name: String,
    /// The tool's MCP name.
    pub mcp_tool_name: String,
    /// A hash of the MCP request id.
    pub mcp_request_id: String,
}

/// An event as a line has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<&'a str>,
    enabled: bool,
    exposed_tool_count: usize,
    pending_count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<SkipReason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pairs: Option<&'a [(String, String)]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancelled_request_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_count: Option<usize>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    call: Option<&'a CallFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejection_kind: Option<&'static str>,
}

impl Event {
    /// The event's name.
    pub fn name(&self) -> &'static str {
        match self.kind {
            EventKind::RunCreated => "run_created",
            EventKind::RunSkipped(_) => "run_skipped",
            EventKind::ToolsExposed { .. } => "tools_exposed",
            EventKind::RunCancelled { .. } => "run_cancelled",
            EventKind::RunDisposed => "run_disposed",
            EventKind::RequestQueued(_) => "request_queued",
            EventKind::RequestResolved(..) => "request_resolved",
            EventKind::RequestRejected(..) => "request_rejected",
            EventKind::McpInitialized => "mcp_initialized",
            EventKind::McpToolsList { .. } => "mcp_tools_list",
        }
    }

    /// The event as a JSON object, in one line.
    pub fn to_json(&self) -> String {
        let Self { run_id, enabled, exposed_tool_count, pending_count, kind } = self;
        let mut line = Line {
            event: self.name(),
            run_id: run_id.as_deref(),
            enabled: *enabled,
            exposed_tool_count: *exposed_tool_count,
            pending_count: *pending_count,
            reason: None,
            pairs: None,
            queued_count: None,
            cancelled_request_count: None,
            tool_count: None,
            call: None,
            is_error: None,
            rejection_kind: None,
        };
        match kind {
            EventKind::RunCreated | EventKind::RunDisposed | EventKind::McpInitialized => {}
            EventKind::RunSkipped(reason) => line.reason = Some(*reason),
            EventKind::ToolsExposed { pairs } => line.pairs = Some(pairs),
            EventKind::RunCancelled { queued_count, cancelled_request_count } => {
                line.queued_count = Some(*queued_count);
                line.cancelled_request_count = Some(*cancelled_request_count);
            }
            EventKind::RequestQueued(call) => line.call = Some(call),
            EventKind::RequestResolved(call, is_error) => {
                line.call = Some(call);
                line.is_error = Some(*is_error);
            }
            EventKind::RequestRejected(call, kind) => {
                line.call = Some(call);
                line.rejection_kind = Some(match kind {
                    RejectionKind::Cancelled => "cancelled",
                    RejectionKind::Error => "error",
                });
            }
            EventKind::McpToolsList { tool_count } => line.tool_count = Some(*tool_count),
        }
        // Nothing in it can fail to be written.
        serde_json::to_string(&line).unwrap_or_default()
    }
}

/// What stands for an MCP request id: small numbers say little, but a client may put anything in.
pub(crate) fn hashed_request(profile: &Profile, request: &[u8]) -> String {
    let digest = Sha256::digest(request);
    let [a, b, c, d, ..] = <[u8; 32]>::from(digest);
    format!("{}{a:02x}{b:02x}{c:02x}{d:02x}", profile.request_prefix)
}

/// Where events go. Off by default. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Diagnostics(Option<Arc<Sinks>>);

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diagnostics").field("on", &self.is_on()).finish_non_exhaustive()
    }
}

impl Diagnostics {
    /// To these sinks, and to memory.
    pub fn new(config: DiagnosticsConfig) -> Self {
        Self(Some(Arc::new(Sinks::new(config))))
    }

    /// Somebody listens.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// The last events, oldest first: for the report.
    pub fn last(&self) -> Vec<Event> {
        self.0.as_ref().map(|sinks| sinks.last()).unwrap_or_default()
    }

    /// Waits until what was told so far is written, at most so long. For the end of a process.
    pub async fn flush(&self, most: std::time::Duration) {
        if let Some(sinks) = &self.0 {
            sinks.flush(most).await;
        }
    }

    /// Something happened. Costs nothing while nobody listens, and never waits.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        if let Some(sinks) = &self.0 {
            sinks.emit(event());
        }
    }
}

#[cfg(test)]
mod tests;
