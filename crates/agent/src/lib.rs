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
mod inline;
mod local;
mod native;
mod options;
mod policy;
mod port;
mod redact;
mod run;
mod runtime;
mod sandbox;
mod store;
mod subagent;
mod tools;

pub use custom_tools::{CustomCall, CustomOutput, CustomTool};
pub use engine::{BoxFuture, Checkpoint, Engine, EngineTurn, RunSink, Steering, TurnEnd, TurnStop};
pub use error::{AgentError, Fault};
pub use event::{
    AssistantBlock, Delta, Event, EventKind, RunStatus, ServerReport, SystemInit, ToolCallEvent,
    ToolCallStatus, ToolPair, Truncated, Usage,
};
pub use generation::{Front, Generation, Generations, McpCall, McpProgress, McpResult, McpTool, Reloaded};
pub use id::{AgentId, IdFault, RunId};
pub use inline::{DirectServer, InlineDifference, InlineRecord, McpServer, McpServers, RecordKey};
pub use options::{
    AcpOptions, AgentDefinition, AgentOptions, CloudEnv, CloudOptions, CloudRepo, CloudSend, EngineChoice,
    GuardOptions, Limits, LocalOptions, LocalSend, Machine, Mode, ModelChoice, PermissionOptions, Place,
    Prompt, PromptImage, Retries, SandboxOptions, SendOptions, SendPlace, ServerChange, ServerTimeouts,
    SubagentServers, Trust,
};
pub use run::{
    Deltas, EventStream, Observation, Observed, Run, RunFault, RunOperation, RunSource, RunState, Source,
    Steered,
};
pub use runtime::{Artifact, ReloadReport, Runtime, UsageReport};
pub use store::{
    AgentChange, AgentRecord, Begin, Begun, Claim, Cursor, EventRecord, Kept, Page, Presence, RunChange,
    RunRecord, Store, StoreChoice, Writes, memory_store,
};
