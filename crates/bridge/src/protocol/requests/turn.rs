//! Owns the params of the `turn/*` methods, and of what else a host with turns tells.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{DisplayMode, main_session, no_system, object};
use crate::json::RawJson;
use crate::prompt::{HostSystem, InstructionFile, Message};

/// `turn/start`: the agent is to answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StartTurn {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The whole conversation, oldest first, with the results of the last turn's calls at its end.
    pub(crate) messages: Vec<Message>,
    /// The host's system prompt.
    #[serde(default = "no_system")]
    pub(crate) system: HostSystem,
    /// Files of instructions that stand in the system prompt.
    #[serde(default)]
    pub(crate) instruction_files: Vec<InstructionFile>,
    /// The host's names of the tools that this turn's model is told of. They decide what can be shown as a card.
    #[serde(default)]
    pub(crate) context_tools: Vec<String>,
    /// The names under which the host has registered wrappers for cards.
    #[serde(default)]
    pub(crate) wrappers: Vec<String>,
    /// In which mode the agent is to answer.
    #[serde(default)]
    pub(crate) mode: TurnMode,
    /// The model, as the agent names it.
    pub(crate) model: String,
    /// The folder in which the agent works: an absolute path.
    pub(crate) cwd: String,
    /// Which settings of its own the agent loads [default: as the settings say]. An empty list is none.
    #[serde(default)]
    pub(crate) setting_sources: Option<Vec<String>>,
    /// The most tokens of a bootstrap prompt, at four characters each.
    #[serde(default)]
    pub(crate) budget_tokens: Option<usize>,
    /// How the host shows things.
    #[serde(default)]
    pub(crate) display: DisplayMode,
}

/// In which mode an agent answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TurnMode {
    /// It does the work.
    #[default]
    Agent,
    /// It makes a plan.
    Plan,
}

/// `turn/abort`: the host gives a turn up, or the calls that came of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AbortTurn {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// Which turn.
    pub(crate) turn: u64,
}

/// `session/tell`: something happened in the host.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TellSession {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// What happened.
    pub(crate) event: SessionEvent,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SessionEvent {
    /// The history is about to be replaced by a summary.
    Compaction,
    /// The user went to another place in the tree of the conversation.
    TreeNavigation,
    /// The agent's own configuration changed.
    AgentConfiguration,
    /// The host's side of the bridge is loaded anew.
    AdapterReload,
    /// The session ends.
    SessionShutdown,
}

/// `skill/activate`: the host's own tool of that kind was called.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ActivateSkill {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The arguments of the call, as the model wrote them.
    #[serde(deserialize_with = "object")]
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub(crate) arguments: RawJson,
}

/// `wrappers/sync`: which wrappers for cards the host is to have now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SyncWrappers {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// When.
    pub(crate) moment: Moment,
    /// A model of the agent is selected.
    #[serde(default = "super::yes")]
    pub(crate) agent_model: bool,
    /// The names of the host's active tools.
    pub(crate) active: Vec<String>,
    /// Names that belong to somebody else in the host.
    #[serde(default)]
    pub(crate) foreign: Vec<String>,
    /// How the host shows things.
    #[serde(default)]
    pub(crate) display: DisplayMode,
}

/// When wrappers are looked after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Moment {
    /// A session began, and nothing is registered.
    SessionStart,
    /// The agent is about to start on a prompt.
    BeforeAgentStart,
    /// Another model was selected.
    ModelSelect,
    /// A turn starts.
    TurnStart,
}
