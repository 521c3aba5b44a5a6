//! Owns what a host is told of turns.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::agent_port::{AgentModel, Usage};
use crate::host_port::{AssistantBlock, NoticeLevel, StopReason, TurnEvent};
use crate::json::RawJson;

/// The answer to `turn/start`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnStarted {
    /// Its number, never used again in this connection.
    pub(crate) turn: u64,
}

/// The answer to `turn/abort`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnAborted {
    /// There was something to give up.
    pub(crate) aborted: bool,
}

/// The answer to `models/list`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelsShown {
    /// Best first; none, where the agent cannot tell.
    pub(crate) models: Vec<ModelShown>,
}

/// A model that the agent can be asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelShown {
    /// What `turn/start` has as `model`.
    pub(crate) id: String,
    /// For people.
    pub(crate) name: String,
    /// How many tokens it can read at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<u64>,
    /// How many tokens an answer may have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_tokens: Option<u64>,
}

impl From<AgentModel> for ModelShown {
    fn from(model: AgentModel) -> Self {
        let AgentModel { id, name, context_tokens, output_tokens } = model;
        Self { name: if name.is_empty() { id.clone() } else { name }, id, context_tokens, output_tokens }
    }
}

/// The answer to `skill/activate`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SkillGiven {
    /// Content blocks: the skill, or why there is none.
    #[schemars(with = "Vec<Value>")]
    pub(crate) content: RawJson,
    /// There is none.
    pub(crate) is_error: bool,
    /// Name, file, directory, resources and the names of all skills, or null.
    pub(crate) details: Value,
}

/// The notification `turn/event`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnTold {
    /// Of which session.
    pub(crate) session: String,
    /// Which turn.
    pub(crate) turn: u64,
    /// What it says.
    pub(crate) event: TurnShown,
}

/// What a turn says. The last one is always `end`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub(crate) enum TurnShown {
    /// More text.
    Text {
        /// The text.
        text: String,
    },
    /// More thinking.
    Thinking {
        /// The text.
        text: String,
    },
    /// A tool call begins.
    ToolCallStart {
        /// Its place in the message.
        index: usize,
        /// Its id.
        call: String,
        /// The host's name of the tool.
        tool: String,
    },
    /// More of the arguments of the call at that place.
    ToolCallDelta {
        /// Its place in the message.
        index: usize,
        /// A piece of JSON.
        json: String,
    },
    /// The call at that place is whole.
    ToolCallEnd {
        /// Its place in the message.
        index: usize,
        /// Its id.
        call: String,
        /// The host's name of the tool.
        tool: String,
        /// All of them.
        #[schemars(with = "serde_json::Map<String, Value>")]
        arguments: RawJson,
    },
    /// The turn is over.
    End {
        /// Why.
        stop: StopShown,
        /// What went wrong, or why it was given up.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The whole message.
        content: Vec<BlockShown>,
        /// What it used, as far as the agent told.
        usage: UsageShown,
    },
}

/// Why a turn is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StopShown {
    /// The answer is complete.
    Stop,
    /// The host is to run the calls, and to start the next turn with their results.
    ToolUse,
    /// It failed.
    Error,
    /// It was given up.
    Aborted,
}

/// A part of a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub(crate) enum BlockShown {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Thinking.
    Thinking {
        /// The text.
        text: String,
    },
    /// A call for the host: of one of its tools, or a card.
    ToolCall {
        /// Its id.
        call: String,
        /// The host's name of the tool.
        tool: String,
        /// The arguments.
        #[schemars(with = "serde_json::Map<String, Value>")]
        arguments: RawJson,
    },
}

/// How many tokens a turn took.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UsageShown {
    /// Read.
    pub(crate) input: u64,
    /// Written.
    pub(crate) output: u64,
    /// Read from a cache.
    pub(crate) cache_read: u64,
    /// Written to a cache.
    pub(crate) cache_write: u64,
}

impl From<Usage> for UsageShown {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cache_read, cache_write } = usage;
        Self { input, output, cache_read, cache_write }
    }
}

impl From<AssistantBlock> for BlockShown {
    fn from(block: AssistantBlock) -> Self {
        match block {
            AssistantBlock::Text(text) => Self::Text { text },
            AssistantBlock::Thinking(text) => Self::Thinking { text },
            AssistantBlock::ToolCall(call) => {
                Self::ToolCall { call: call.id.to_string(), tool: call.name, arguments: call.arguments }
            }
        }
    }
}

impl From<TurnEvent> for TurnShown {
    fn from(event: TurnEvent) -> Self {
        match event {
            TurnEvent::Text(text) => Self::Text { text },
            TurnEvent::Thinking(text) => Self::Thinking { text },
            TurnEvent::ToolCallStart { index, id, name } => {
                Self::ToolCallStart { index, call: id.to_string(), tool: name }
            }
            TurnEvent::ToolCallDelta { index, json } => Self::ToolCallDelta { index, json },
            TurnEvent::ToolCallEnd { index, call } => Self::ToolCallEnd {
                index,
                call: call.id.to_string(),
                tool: call.name,
                arguments: call.arguments,
            },
            TurnEvent::End(message) => {
                let (stop, reason) = match message.stop {
                    StopReason::Stop => (StopShown::Stop, None),
                    StopReason::ToolUse => (StopShown::ToolUse, None),
                    StopReason::Error(reason) => (StopShown::Error, Some(reason)),
                    StopReason::Aborted(reason) => (StopShown::Aborted, Some(reason)),
                };
                let content = message.content.into_iter().map(BlockShown::from).collect();
                Self::End { stop, reason, content, usage: message.usage.into() }
            }
        }
    }
}

/// The notification `notice`: for the user.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notice {
    /// Of which session.
    pub(crate) session: String,
    /// `info`, `warning` or `error`.
    pub(crate) level: &'static str,
    /// The text.
    pub(crate) text: String,
}

/// The name of a level.
pub(crate) fn level_name(level: NoticeLevel) -> &'static str {
    match level {
        NoticeLevel::Info => "info",
        NoticeLevel::Warning => "warning",
        NoticeLevel::Error => "error",
    }
}

/// The notification `tools/setActive`: the host makes tools that it registered for the bridge active, or inactive.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetActive {
    /// Of which session.
    pub(crate) session: String,
    /// The host's names.
    pub(crate) tools: Vec<String>,
    /// What they are from now on.
    pub(crate) active: bool,
}

/// The notification `entry/append`: the host keeps this in its log, where no model sees it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryAppended {
    /// Of which session.
    pub(crate) session: String,
    /// Its kind.
    pub(crate) entry: String,
    /// What it says.
    #[schemars(with = "Value")]
    pub(crate) data: RawJson,
}

/// The answer to `wrappers/sync`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WrappersShown {
    /// To be registered now.
    pub(crate) register: Vec<String>,
    /// Tools to be made active.
    pub(crate) activate: Vec<String>,
    /// Tools to be made inactive.
    pub(crate) deactivate: Vec<String>,
    /// All that are registered after that: the `wrappers` of turns.
    pub(crate) wrappers: Vec<String>,
    /// For the user.
    pub(crate) warnings: Vec<String>,
}
