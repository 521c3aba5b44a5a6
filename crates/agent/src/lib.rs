//! Agents: conversations with a model that has tools, on this machine or elsewhere, with MCP servers that behave as said.
//!
//! An [`Agent`] is made of [`AgentOptions`], and is sent prompts. Each is a [`Run`], which tells of itself in [`Event`]s: what
//! servers there are and how they are, what the model says, what it calls, how it ended. Nothing starts before the first
//! prompt, and [`Agent::dispose`] ends all that was started.
//!
//! ```no_run
//! use toolway_agent::{Agent, AgentOptions, Machine, McpServer, McpServers, SendOptions};
//!
//! # async fn example() -> Result<(), toolway_agent::AgentError> {
//! let files = McpServer::command("npx").args(["-y", "@modelcontextprotocol/server-filesystem", "."]);
//! let mut options = AgentOptions::local(Machine::here()?);
//! options.model = Some("gpt-5.1".into());
//! options.mcp_servers = McpServers::new().with("files", files.required());
//! let agent = Agent::create(options)?;
//! let run = agent.send("What is in this folder?", SendOptions::default()).await?;
//! let mut events = run.stream()?;
//! while let Some(event) = events.next().await {
//!     println!("{}", event?.to_json());
//! }
//! agent.dispose().await;
//! # Ok(())
//! # }
//! ```
//!
//! - **Options**: [`AgentOptions`], with [`LocalOptions`] for what belongs to this machine, and [`SendOptions`] for one prompt;
//!   all of them also [from JSON](AgentOptions::from_json).
//! - **Servers**: [`McpServers`] that a program gives, [`SettingSource`]s whose files count, [`CustomTool`]s of the program
//!   itself. [`Generation`] is the set of them that a run has.
//! - **Runtimes**: [`EngineChoice`] is Toolway's own turn loop over a model's API, or an agent of the Agent Client Protocol;
//!   [`Engine`] is what another one implements.
//! - **What is kept**: [`StoreChoice`]; agents and runs are found again by [`Agent::resume`], [`Agent::list`],
//!   [`Agent::get_run`].
//! - **What may be done**: [`PermissionOptions`], [`SandboxOptions`], and a [`Person`] to ask.
//!
//! The page `docs/sdk.md` of the repository is the one to learn from, `docs/agents.md` lists what holds, `docs/models.md` has
//! models and their keys.

mod acp;
mod agent;
mod begin;
mod boxed;
mod catalogue;
mod compose;
mod context;
mod custom_tools;
mod editor;
mod engine;
mod error;
mod event;
mod generation;
mod hooks;
mod id;
mod inline;
mod local;
mod mcp_auth;
mod native;
mod options;
mod person;
mod policy;
mod port;
mod redact;
mod run;
mod runtime;
mod sandbox;
mod sign_in;
mod sources;
mod store;
mod subagent;
mod tools;

pub use acp::{AcpCommand, AcpEngine, AcpPreset, AcpSurroundings, AcpTimeouts};
pub use agent::{Agent, AgentList, RunList};
pub use begin::begin;
pub use compose::{child_target, gateway_circle, server_entries, wait_for_calls};
pub use context::{ContextSources, RuleText, RuleUse, SubagentFile};
pub use custom_tools::{CustomCall, CustomOutput, CustomTool};
pub use editor::{EditorOptions, EditorServer};
pub use engine::{BoxFuture, Checkpoint, Engine, EngineTurn, RunSink, Steering, TurnEnd, TurnStop};
pub use error::{AgentError, Fault};
pub use event::{
    AssistantBlock, Delta, Event, EventKind, RunStatus, ServerReport, SystemInit, ToolCallEvent,
    ToolCallStatus, ToolPair, Truncated, Usage,
};
pub use generation::{
    Front, FrontCall, FrontGate, Generation, Generations, McpCall, McpProgress, McpResult, McpTarget,
    McpTool, Reloaded,
};
pub use hooks::{HookFacts, Hooks, McpServerUse};
pub use id::{AgentId, IdFault, RunId};
pub use inline::{DirectServer, InlineDifference, InlineRecord, McpServer, McpServers, RecordKey};
pub use mcp_auth::{AuthRequest, BeginAuth, McpAuth};
pub use options::{
    AcpOptions, AgentDefinition, AgentOptions, CloudEnv, CloudOptions, CloudRepo, CloudSend, EngineChoice,
    GuardOptions, Limits, LocalOptions, LocalSend, Machine, Mode, ModelChoice, PermissionOptions, Place,
    Prompt, PromptImage, Retries, SandboxOptions, SendOptions, SendPlace, ServerChange, ServerTimeouts,
    SkillsBy, SubagentServers, TOOL_NAMES, Trust, cloud_servers, offers, offers_mcp,
};
pub use person::{AskHost, Person, Question};
pub use policy::{
    Action, After, Answer, ApprovalRequest, Approver, Decision, Gate, GateOptions, PermissionMode,
    PermissionRules, Rule, ToolUse, Verdict,
};
pub use port::{LocalPort, PortAgent};
pub use run::{
    Deltas, EventStream, Observation, Observed, Run, RunFault, RunOperation, RunSource, RunState, Source,
    Steered,
};
pub use runtime::{Artifact, ReloadReport, Runtime, UsageReport};
pub use sandbox::{SANDBOX_COMMAND, Sandbox, SandboxConfig, SandboxMode, SandboxNotes, run_sandboxed};
pub use toolway_auth::{Opener, SignIn, SignInState, SignedOut};

pub use sign_in::{SignIns, Signed, authorizer, server_auth};
pub use sources::Sources;
pub use store::{
    AgentChange, AgentRecord, Begin, Begun, Claim, Cursor, EventRecord, Kept, Page, Presence, RunChange,
    RunRecord, Store, StoreChoice, Writes, memory_store,
};
pub use tools::{
    Arguments, Capabilities, Capability, Tool, ToolContext, ToolImage, ToolOutput, ToolRegistry, ToolSession,
    ToolSetup,
};

// What options and events are made of.
pub use toolway_bridge::RawJson;
pub use toolway_config::SettingSource;
pub use toolway_secret::Secret;
