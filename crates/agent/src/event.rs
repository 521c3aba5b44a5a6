//! Owns what a run tells: messages that are kept, and the finer deltas that are not. No I/O.

mod json;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use toolway_bridge::RawJson;

use crate::id::{AgentId, RunId};

/// One message of a run. The first of every run is [`EventKind::System`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whose.
    pub agent_id: AgentId,
    /// Of which run.
    pub run_id: RunId,
    /// What.
    pub kind: EventKind,
}

/// What a message says. In JSON the name of the kind is its `type`, in snake case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// `system`, subtype `init`: what the run starts with.
    System(Box<SystemInit>),
    /// What the user said.
    User {
        /// The text.
        text: String,
    },
    /// What the model said, as whole blocks.
    Assistant {
        /// In order.
        content: Vec<AssistantBlock>,
    },
    /// What the model thought.
    Thinking {
        /// The text.
        text: String,
        /// How long it took.
        thinking_duration_ms: Option<u64>,
    },
    /// A tool call began or ended.
    ToolCall(ToolCallEvent),
    /// The run's status changed, or somebody is told about it.
    Status {
        /// What it is now.
        status: RunStatus,
        /// Why.
        message: Option<String>,
    },
    /// The id of the run's request, for whoever looks after it. Kept, and not sent to live readers.
    Request {
        /// The id.
        request_id: String,
    },
    /// A note about the work: what a subagent does, a compaction, a server that came or went.
    Task {
        /// A word for it.
        status: Option<String>,
        /// For people.
        text: Option<String>,
    },
    /// Tokens of the run so far.
    Usage(Usage),
}

/// A part of what the model said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssistantBlock {
    /// Text.
    Text(String),
    /// It calls a tool.
    ToolUse {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
        /// Its arguments.
        input: RawJson,
    },
}

/// A tool call. Calls of MCP tools have the name `mcp`, arguments `{providerIdentifier, toolName, args}` and a result
/// `{content, isError}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallEvent {
    /// Its id, the same at its start and its end.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// How far it is.
    pub status: ToolCallStatus,
    /// Its arguments, where they are small enough.
    pub args: Option<RawJson>,
    /// Its result, where it is small enough.
    pub result: Option<RawJson>,
    /// Which of them were left out because of their size.
    pub truncated: Truncated,
}

/// How far a tool call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// It runs.
    Running,
    /// It ended well.
    Completed,
    /// It failed.
    Error,
}

/// Which fields of a tool call were left out because of their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Truncated {
    /// The arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub args: bool,
    /// The result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub result: bool,
}

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunStatus {
    /// It is being prepared.
    Creating,
    /// It runs.
    Running,
    /// It ended well.
    Finished,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
    /// It was given up: its process died, or another run was forced in its place.
    Expired,
}

impl RunStatus {
    /// Nothing follows.
    pub fn is_terminal(self) -> bool {
        !matches!(self, Self::Creating | Self::Running)
    }
}

/// What a run starts with.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SystemInit {
    /// The model, as it was named.
    pub model: Option<String>,
    /// The runtime: `native`, `acp`, `cloud`.
    pub runtime: String,
    /// The folder it works in.
    pub cwd: Option<String>,
    /// Built-in tools that the model has.
    pub tools: Vec<String>,
    /// Tools of servers that the model has.
    pub mcp_tools: Vec<ToolPair>,
    /// Every configured server, whatever its state.
    pub mcp_servers: Vec<ServerReport>,
    /// What is wrong with files or options, without being fatal: file, place and what to do.
    pub diagnostics: Vec<String>,
}

/// A tool by the pair that names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolPair {
    /// The server's name.
    pub server: String,
    /// The tool's own name.
    pub tool: String,
}

/// What is known of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its name.
    pub name: String,
    /// Where it is configured: `inline`, `project`, `user`, ..., or `custom`.
    pub source: String,
    /// The file and line, where there is one.
    pub place: Option<String>,
    /// `stdio`, `http` or `sse`; for a remote server that is connected, what was really used.
    pub transport: Option<String>,
    /// `connected`, `starting`, `failed`, `needs_auth`, `blocked`, `disabled`, `shadowed`, `missing`, ...
    pub state: String,
    /// Why, and what to do.
    pub reason: Option<String>,
    /// How many tools the model has of it.
    pub tools: usize,
}

/// Tokens. `input` does not include what was read from or written to a cache; `total` is the sum of all but reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Read.
    pub input: u64,
    /// Written, reasoning included.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
    /// Of the output, what was reasoning, where it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}

impl Usage {
    /// All tokens.
    pub fn total(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().fold(0, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = match (self.reasoning, other.reasoning) {
            (None, None) => None,
            (one, other) => Some(one.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
    }
}

/// What happens between messages. Told to whoever listens at that moment, and not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A piece of thinking ended.
    ThinkingCompleted {
        /// How long it took.
        duration_ms: u64,
    },
    /// The model begins a tool call: arguments are still coming.
    PartialToolCall {
        /// Its id.
        call_id: String,
        /// Its name.
        name: String,
        /// The arguments' text so far, not yet JSON.
        arguments: String,
    },
    /// A tool starts.
    ToolCallStarted(ToolCallEvent),
    /// A tool tells of its progress.
    ToolCallProgress {
        /// Its id.
        call_id: String,
        /// What it said.
        message: String,
    },
    /// A shell command wrote something.
    ShellOutput {
        /// The call's id.
        call_id: String,
        /// `stdout` or `stderr`.
        stream: &'static str,
        /// The text.
        text: String,
    },
    /// A tool ended. Sizes do not matter here.
    ToolCallCompleted(ToolCallEvent),
    /// The agent never told how a tool ended. [`Delta::ToolCallCompleted`] comes next all the same, as of one that failed,
    /// so that every call has an end.
    ToolCallUntold {
        /// The call's id.
        call_id: String,
    },
    /// A call to the model begins.
    StepStarted {
        /// Counted from 1 in each run.
        step: u32,
    },
    /// A call to the model and the tools that it asked for are done.
    StepCompleted {
        /// Counted from 1 in each run.
        step: u32,
    },
    /// A turn of the model ended.
    TurnEnded(Usage),
    /// Text of the user went in, at the start or by steering.
    UserMessageAppended(String),
    /// Older messages are being replaced by a summary.
    SummaryStarted,
    /// They have been: tokens before and after, as estimated.
    SummaryCompleted {
        /// Before.
        before: u64,
        /// After.
        after: u64,
    },
}
