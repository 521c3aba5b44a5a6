//! Owns what a host offers to the bridge, as a trait, and what it tells and is told. It knows neither agent nor calls'
//! way.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::agent_port::{AgentMode, Usage};
use crate::call::CallId;
use crate::json::RawJson;
use crate::prompt::{HostSystem, InstructionFile, Message};
use crate::skills::SkillList;
use crate::tool::HostTools;

/// A host: a session, a registry of tools, the only path on which these are run, a log and a user.
///
/// Implemented by hosts in this process, and by the protocol for hosts in other languages; called by the coordinator, from
/// its one task. No method may wait: one that has to do more than note something down does that elsewhere.
///
/// What goes the other way: the host asks for turns and tells [`HostEvent`]s by the coordinator's handle; what a turn says
/// comes as [`TurnEvent`]s on its stream.
pub trait HostPort: Send + Sync + 'static {
    /// The registry now: all tools, and which are active.
    fn tools(&self) -> HostTools;

    /// Makes tools active or inactive. Only for tools that the adapter itself registered.
    fn set_active(&self, names: &[String], active: bool);

    /// Stops a call that the host was handed: whoever waited for it does so no longer. At most once for each call.
    fn abort_call(&self, id: &CallId, reason: &str);

    /// Keeps an entry in the session log that no model sees.
    fn append_entry(&self, kind: &str, data: RawJson);

    /// Tells the user.
    fn notify(&self, level: NoticeLevel, text: &str);
}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeLevel {
    /// For information.
    Info,
    /// Something is not as the user meant it.
    Warning,
    /// Something failed.
    Error,
}

/// What a host tells of its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostEvent {
    /// The session's history is about to be replaced by a summary: agents are busy no more, and none is used again.
    Compaction,
    /// The user went to another place of the session's tree.
    TreeNavigation,
    /// The agent's own configuration changed: it reads it again, where it can.
    AgentConfiguration,
    /// The adapter is loaded anew: every call is rejected, every agent is let go.
    AdapterReload,
    /// The session ends.
    SessionShutdown,
}

/// What a host asks a turn for.
#[derive(Debug, Clone)]
pub struct TurnRequest {
    /// The whole conversation, oldest first, with the results of the last turn's calls at its end.
    pub messages: Vec<Message>,
    /// The host's system prompt.
    pub system: HostSystem,
    /// The files of instructions that the host put into it.
    pub instruction_files: Vec<InstructionFile>,
    /// The skills of the session that a model may have.
    pub skills: SkillList,
    /// The names of the tools that this turn's model is told of. They decide what can be shown as a card.
    pub context_tools: Vec<String>,
    /// The names of the wrappers by which the adapter shows what the agent did, as far as they are registered. None of
    /// them: it is shown as text.
    pub wrappers: Vec<String>,
    /// In which mode the agent is to answer.
    pub mode: AgentMode,
    /// The agent's model.
    pub model: String,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// Which settings of its own the agent loads, if not those of the user file. An empty list is none.
    pub setting_sources: Option<Vec<String>>,
    /// The most tokens of a bootstrap prompt, `None` for no limit.
    pub budget_tokens: Option<usize>,
    /// Cancelled when the host gives the turn up, or the calls that came of it.
    pub abort: CancellationToken,
}

/// What a turn says, in order. The last one is always [`TurnEvent::End`], after which the stream closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEvent {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// A tool call begins.
    ToolCallStart {
        /// Its place in the message.
        index: usize,
        /// Its id.
        id: CallId,
        /// The real name of the tool.
        name: String,
    },
    /// Text of the arguments of the call at that place.
    ToolCallDelta {
        /// Its place in the message.
        index: usize,
        /// More of the JSON.
        json: String,
    },
    /// The call at that place is whole.
    ToolCallEnd {
        /// Its place in the message.
        index: usize,
        /// The call.
        call: ToolCall,
    },
    /// The turn is over: the whole message.
    End(AssistantMessage),
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssistantMessage {
    /// Texts, thinking and calls, in order.
    pub content: Vec<AssistantBlock>,
    /// Why it ended.
    pub stop: StopReason,
    /// What it used, as far as the agent told.
    pub usage: Usage,
}

/// A part of an assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssistantBlock {
    /// Text.
    Text(String),
    /// Thinking.
    Thinking(String),
    /// A call that the host is to run: one of its own tools, or a card that shows what the agent did.
    ToolCall(ToolCall),
}

/// A tool call of an assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// Its id.
    pub id: CallId,
    /// The real name of the tool.
    pub name: String,
    /// The arguments: an object.
    pub arguments: RawJson,
}

/// Why a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    /// The answer is complete.
    Stop,
    /// The host is to run the calls, and to ask for the next turn with their results.
    ToolUse,
    /// It failed.
    Error(String),
    /// The host gave it up.
    Aborted(String),
}
