//! Owns what an agent offers to the bridge, as two traits and their values. It knows neither host nor coordinator.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use toolway_secret::Secret;

use crate::prompt::{Digest, PromptImage};
use crate::replay::AgentToolEvent;

/// Makes agents. Implemented by each kind of agent runtime (a native turn loop, an agent behind a protocol); called by
/// the coordinator, which alone decides when an agent is made anew.
pub trait AgentPort: Send + Sync + 'static {
    /// What it makes.
    type Agent: Agent;

    /// A new agent with no memory. The coordinator bounds the time it may take.
    fn create(&self, options: AgentOptions)
    -> impl Future<Output = Result<Self::Agent, AgentFailure>> + Send;

    /// The digest of the credentials that agents are made with now, if there are any. Agents made with others are not
    /// used again.
    fn identity(&self) -> Option<Digest>;

    /// These credentials themselves, and whatever else no text that is shown may repeat. Well-known shapes of keys are taken
    /// out of texts without being named here.
    fn secrets(&self) -> Vec<Secret> {
        Vec::new()
    }

    /// The models that agents can be made with now, best first; none where that cannot be told.
    fn models(&self) -> impl Future<Output = Result<Vec<AgentModel>, AgentFailure>> + Send {
        std::future::ready(Ok(Vec::new()))
    }
}

/// A model that an agent can be made with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentModel {
    /// The name by which [`AgentOptions::model`] has it.
    pub id: String,
    /// Its name for people; the id where there is no other.
    pub name: String,
    /// How many tokens it can read at once, where that is known.
    pub context_tokens: Option<u64>,
    /// How many tokens an answer may have, where that is known.
    pub output_tokens: Option<u64>,
}

/// One agent: it is sent prompts, one at a time, and tells what it does. Implemented beside [`AgentPort`]; called by one
/// task of the coordinator. Methods take `&self`, since a cancellation comes while a prompt is on its way.
pub trait Agent: Send + Sync + 'static {
    /// Hands over a prompt. Ends when the agent accepted it; what follows comes by [`Agent::next`].
    fn send(&self, prompt: AgentPrompt) -> impl Future<Output = Result<(), AgentFailure>> + Send;

    /// The next event, `None` when the connection to the agent is dead. Must not lose an event when it is dropped.
    fn next(&self) -> impl Future<Output = Option<AgentEvent>> + Send;

    /// Stops what it does now. An [`AgentEvent::Ended`] follows: one for each prompt that was accepted, so none where it
    /// was told already.
    fn cancel(&self) -> impl Future<Output = ()> + Send;

    /// Reads its own configuration again, where it can.
    fn reload(&self) -> impl Future<Output = Result<(), AgentFailure>> + Send {
        std::future::ready(Ok(()))
    }

    /// Ends it: process, connections, memory.
    fn dispose(self) -> impl Future<Output = ()> + Send;
}

/// What an agent is made with.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// The folder it works in.
    pub cwd: PathBuf,
    /// The model, as the agent names it.
    pub model: String,
    /// Which of its own settings it loads, unchanged: empty is none, `["all"]` is all.
    pub setting_sources: Vec<String>,
    /// MCP servers beside those of its own settings: the bridge's, or none.
    pub mcp_servers: Vec<InlineServer>,
    /// How long it is to wait for MCP servers, both the bridge's and its own.
    pub timeouts: McpTimeouts,
    /// Safety options of the agent's own that are switched on. One that is off is not passed at all.
    pub safety: Vec<SafetyOption>,
    /// It is to speak HTTP/1 to its service.
    pub http1: bool,
}

/// An MCP server that is handed to an agent with its making.
#[derive(Debug, Clone)]
pub struct InlineServer {
    /// Its key among the agent's servers.
    pub key: &'static str,
    /// Its address, of type `http`. Whoever has it can call the host's tools.
    pub url: Secret,
}

/// How long an agent waits for its MCP servers. There is a third rule: nothing else that it waits for is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpTimeouts {
    /// For the answer to a tool call.
    pub tool: Duration,
    /// For connecting, initialising and listing.
    pub connect: Duration,
}

/// A safety option of the agent's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SafetyOption {
    /// The agent reviews what it is about to do.
    AutoReview,
    /// The agent runs its own commands in a sandbox.
    Sandbox,
}

/// In which mode an agent answers a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum AgentMode {
    /// It does the work.
    #[default]
    Agent,
    /// It makes a plan.
    Plan,
}

/// What an agent is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPrompt {
    /// The text.
    pub text: String,
    /// The images of the latest user message.
    pub images: Vec<PromptImage>,
    /// The mode.
    pub mode: AgentMode,
}

/// What an agent tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEvent {
    /// More text of its answer.
    Text(String),
    /// More of its thinking.
    Thinking(String),
    /// One of its tools did something.
    Tool(AgentToolEvent),
    /// A turn of its model ended: the record of what it used.
    TurnEnded(Usage),
    /// A step of its run ended, with the tools that it knows to be completed by then.
    Step(Vec<AgentToolEvent>),
    /// It is done with the prompt.
    Ended(AgentEnd),
}

/// How many tokens a turn took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Read.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

/// How an agent is done with a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentEnd {
    /// It answered. The final text, for agents that tell no deltas.
    Finished(Option<String>),
    /// It failed.
    Failed(AgentFailure),
    /// It was cancelled.
    Cancelled,
}

/// Why an agent did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFailure {
    /// What went wrong; shown to the user, scrubbed.
    pub message: String,
}

impl AgentFailure {
    /// A failure with that message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl fmt::Display for AgentFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for AgentFailure {}
