//! Owns the values of one call on its way: what the host is asked to run, what it gives back, how a call ends else.

use std::fmt;
use std::sync::Arc;

use crate::json::RawJson;

/// The id of a host tool call: `<run prefix><32 hex>-t<n>`, at most 64 characters, random for each run.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(Arc<str>);

impl CallId {
    /// The longest that other providers take.
    pub const MAX: usize = 64;

    /// An id that somebody wrote: any text, also one that was never given out.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A call that the host is to execute, once, through its ordinary path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostCall {
    /// The host tool-call id.
    pub id: CallId,
    /// The real name of the tool.
    pub tool: String,
    /// The name by which the agent called it.
    pub mcp_name: String,
    /// The arguments: an object, byte for byte as the agent sent it.
    pub arguments: RawJson,
}

/// What a host tool gave back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostResult {
    /// A list of content blocks, or any other value.
    pub content: RawJson,
    /// The tool failed.
    pub is_error: bool,
}

impl HostResult {
    /// One text.
    pub fn text(text: &str) -> Self {
        Self { content: text_block(text), is_error: false }
    }

    /// One text that says why the tool failed.
    pub fn error(text: &str) -> Self {
        Self { content: text_block(text), is_error: true }
    }
}

fn text_block(text: &str) -> RawJson {
    RawJson::of(&serde_json::json!([{"type": "text", "text": text}]))
}

/// How a call ended that has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectionKind {
    /// Somebody gave it up: client, host, run, session, process.
    Cancelled,
    /// It failed: the deadline, a handler that threw.
    Error,
}

/// Why a call has no result. The reason is for the agent, and is in no diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Given up, or failed.
    pub kind: RejectionKind,
    /// What the agent reads.
    pub reason: String,
}
