//! Owns what a host is told of prompts and of the display.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::json::RawJson;

/// The answer to `prompt/next`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptShown {
    /// `bootstrap`: everything. `incremental`: what is new.
    pub(crate) kind: &'static str,
    /// The agent that was sent prompts so far must not be used any more.
    pub(crate) new_agent: bool,
    /// Why everything is sent.
    pub(crate) reason: Option<String>,
    /// The text.
    pub(crate) text: String,
    /// The images of the latest user message.
    pub(crate) images: Vec<ImageShown>,
    /// Messages that are left out because of the budget.
    pub(crate) omitted_messages: usize,
    /// For `prompt/sent`.
    pub(crate) ticket: u64,
}

/// An image that goes along with a prompt.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImageShown {
    /// Base64.
    pub(crate) data: String,
    /// Its media type.
    pub(crate) mime_type: String,
}

/// The answer to `prompt/section`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SectionShown {
    /// The text; empty where there is none.
    pub(crate) text: String,
}

/// The answer to `display/tool`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolTaken {
    /// The event was about a tool.
    pub(crate) tool: bool,
    /// It was about a call over the bridge, which the host shows already.
    pub(crate) own: bool,
}

/// The notification `display/show`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DisplayShown {
    /// Of which session.
    pub(crate) session: String,
    /// Of which run, if one was named.
    pub(crate) run: Option<String>,
    /// What to show, in order.
    pub(crate) items: Vec<DisplayItem>,
}

/// Something to show.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
pub(crate) enum DisplayItem {
    /// A tool call with a recorded result, which `replay/take` gives, once.
    Card {
        /// The id of the tool call.
        id: String,
        /// The wrapper that shows it.
        tool: String,
        /// What it is.
        title: String,
        /// One line on what it did.
        summary: String,
        /// The arguments of the tool call.
        #[schemars(with = "serde_json::Map<String, Value>")]
        arguments: RawJson,
        /// The tool failed.
        is_error: bool,
    },
    /// A text for a thinking block, with its line break.
    Trace {
        /// `completed`, `inactive`, `pending`, `output` or `incomplete`.
        trace: &'static str,
        /// The text.
        text: String,
    },
}

/// The answer to `replay/take`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordShown {
    /// `false`: the id is none of a replay, the real tool is to run.
    pub(crate) recorded: bool,
    /// Content blocks.
    pub(crate) content: Value,
    /// What a renderer gets beside the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
    /// The tool had failed: the wrapper fails with the content's text.
    pub(crate) is_error: bool,
}
