//! Owns the params of the `prompt/*` methods.

use schemars::JsonSchema;
use serde::Deserialize;

use super::main_session;
use crate::prompt::{HostSystem, InstructionFile, Message};

/// `prompt/next`: what the agent is to be sent now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NextPrompt {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The run of the agent [default: what a run would have that is opened now].
    #[serde(default)]
    pub(crate) run: Option<String>,
    /// The host's system prompt.
    #[serde(default = "no_system")]
    pub(crate) system: HostSystem,
    /// Files of instructions that stand in the system prompt.
    #[serde(default)]
    pub(crate) instruction_files: Vec<InstructionFile>,
    /// The conversation, oldest first, with the latest user message.
    pub(crate) messages: Vec<Message>,
    /// What the agent is made with.
    #[serde(default)]
    pub(crate) agent: AgentKey,
    /// The host plans.
    #[serde(default)]
    pub(crate) plan_mode: bool,
    /// The most tokens of a bootstrap prompt, at four characters each.
    #[serde(default)]
    pub(crate) budget_tokens: Option<usize>,
}

pub(super) fn no_system() -> HostSystem {
    HostSystem::Text(String::new())
}

/// What tells one agent from another, besides settings and surface.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentKey {
    /// The working directory.
    #[serde(default)]
    pub(crate) cwd: String,
    /// The model and all that was chosen with it.
    #[serde(default)]
    pub(crate) model: String,
    /// Any text that changes with the credentials; kept as a digest only.
    #[serde(default)]
    pub(crate) identity: String,
}

/// `prompt/sent`: the agent has accepted a prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PromptSent {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// Which prompt.
    pub(crate) ticket: u64,
}

/// `prompt/reset`: something happened after which the agent needs everything anew.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ResetPrompts {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// What happened.
    pub(crate) cause: ResetCause,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ResetCause {
    /// A prompt could not be sent.
    SendError,
    /// The host compacted the conversation.
    Compaction,
    /// The user went to another place in the tree of the conversation.
    TreeNavigation,
    /// The connection to the agent is gone.
    DeadTransport,
}

/// `prompt/section`: one part of a prompt, for hosts that put their prompts together themselves.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct PromptSection {
    /// Which session.
    #[serde(default = "main_session")]
    pub(crate) session: String,
    /// The run of the agent [default: what a run would have that is opened now].
    #[serde(default)]
    pub(crate) run: Option<String>,
    /// Which part.
    pub(crate) section: Section,
    /// For `system`: the host's system prompt.
    #[serde(default)]
    pub(crate) system: Option<HostSystem>,
    /// For `system`: files of instructions that stand in it.
    #[serde(default)]
    pub(crate) instruction_files: Vec<InstructionFile>,
    /// The host plans.
    #[serde(default)]
    pub(crate) plan_mode: bool,
}

/// A part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Section {
    /// What can be called and what cannot.
    Boundary,
    /// The surfaces of this run; empty where the settings switch it off.
    Manifest,
    /// The end of a bootstrap prompt.
    TailGuard,
    /// The end of an incremental prompt.
    IncrementalTailGuard,
    /// The catalogue of skills; empty where there is none.
    Skills,
    /// The host's system prompt as the agent reads it.
    System,
}
