//! Agents: conversations with a model that has tools, on this machine or elsewhere, with MCP servers that behave as said.

mod acp;
mod agent;
mod catalogue;
mod compose;
mod context;
mod custom_tools;
mod engine;
mod error;
mod event;
mod generation;
mod hooks;
mod id;
mod local;
mod native;
mod options;
mod policy;
mod port;
mod redact;
mod run;
mod runtime;
mod sandbox;
mod sources;
mod store;
mod subagent;
mod tools;

pub use context::{ContextSources, RuleText, RuleUse, SubagentFile};
pub use engine::{Checkpoint, Engine, EngineTurn, RunSink, TurnEnd, TurnStop};
pub use error::{AgentError, Fault};
pub use event::{
    AssistantBlock, Delta, Event, EventKind, RunStatus, ServerReport, SystemInit, ToolCallEvent,
    ToolCallStatus, ToolPair, Truncated, Usage,
};
pub use generation::{Generation, McpTool};
pub use hooks::{HookFacts, Hooks, McpServerUse};
pub use id::{AgentId, IdFault, RunId};
pub use options::{Limits, ModelChoice, Prompt, PromptImage};
pub use policy::{
    Action, After, Answer, ApprovalRequest, Approver, Decision, Gate, GateOptions, PermissionMode,
    PermissionRules, Rule, ToolUse, Verdict,
};
pub use sources::Sources;
