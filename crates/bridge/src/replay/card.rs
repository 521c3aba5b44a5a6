//! Owns what is shown of one completed tool: a card, which the host takes for a tool call with a recorded result.

use serde::Serialize;
use serde_json::{Value, json};

use crate::json::RawJson;

/// A recorded tool call: what the host shows of it. Nothing in it can be executed by the adapter.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// The wrapper that shows it: `read`, `bash`, `grep`, `find`, `ls`, `edit`, `write`, or the display tool.
    pub tool: String,
    /// What it is, for traces.
    pub title: String,
    /// One line on what it did; empty after an error.
    pub summary: String,
    /// The arguments of the tool call.
    pub args: RawJson,
    /// The recorded result.
    pub content: Vec<CardBlock>,
    /// What a renderer needs beside the text.
    pub details: Option<Details>,
    /// The tool failed: the wrapper throws the text.
    pub is_error: bool,
}

impl Card {
    /// The text of the result.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            CardBlock::Text { text } => Some(text.as_str()),
            CardBlock::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The tool call block of an assistant message.
    pub fn tool_call(&self, id: &str) -> Value {
        json!({"type": "toolCall", "id": id, "name": self.tool, "arguments": self.args.tree()})
    }

    /// The message with its result.
    pub fn tool_result(&self, id: &str) -> Value {
        let mut message = json!({
            "role": "toolResult",
            "toolCallId": id,
            "toolName": self.tool,
            "content": self.content,
            "isError": self.is_error,
        });
        if let (Some(map), Some(details)) = (message.as_object_mut(), &self.details) {
            map.insert("details".to_owned(), serde_json::to_value(details).unwrap_or_default());
        }
        message
    }

    /// How much memory it takes, roughly.
    pub(super) fn weight(&self) -> usize {
        let blocks = self.content.iter().map(|block| match block {
            CardBlock::Text { text } => text.len(),
            CardBlock::Image { data, .. } => data.len(),
        });
        let details = self.details.as_ref().map_or(0, Details::weight);
        512 + self.args.bytes().len() + blocks.sum::<usize>() + details
    }
}

/// A block of a card's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum CardBlock {
    /// Text.
    Text {
        /// Within the limits, without secrets.
        text: String,
    },
    /// An image.
    Image {
        /// Base64.
        data: String,
        /// Its type, as its first bytes say.
        #[serde(rename = "mimeType")]
        mime_type: &'static str,
    },
}

/// What a renderer gets beside the text of a card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "variant", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Details {
    /// A tool that the host has no look for.
    Activity(Activity),
    /// A replacement in a file.
    NativeEdit {
        /// The file, relative to the working directory where it is in it.
        path: String,
        /// The difference, at most as long as an expanded card shows.
        diff: String,
        /// Lines that were added.
        lines_added: usize,
        /// Lines that were removed.
        lines_removed: usize,
    },
    /// A file that was written.
    NativeWrite {
        /// The file, relative to the working directory where it is in it.
        path: String,
        /// Lines of the file.
        lines: usize,
        /// The content is short enough to be coloured.
        coloured: bool,
    },
    /// An image that was made.
    GenerateImage(Activity),
    /// A tool that nobody here knows.
    GenericFallback(Activity),
}

impl Details {
    fn weight(&self) -> usize {
        match self {
            Self::Activity(it) | Self::GenerateImage(it) | Self::GenericFallback(it) => {
                it.expanded_text.len()
                    + it.collapsed_text.as_ref().map_or(0, String::len)
                    + it.diff.as_ref().map_or(0, String::len)
            }
            Self::NativeEdit { diff, .. } => diff.len(),
            Self::NativeWrite { .. } => 0,
        }
    }
}

/// The parts of a neutral card.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// The agent's name of the tool.
    pub source_tool_name: String,
    /// What it is.
    pub title: String,
    /// One line on what it did; empty after an error.
    pub summary: String,
    /// What a collapsed card shows below the summary; nothing where the summary is enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapsed_text: Option<String>,
    /// What an expanded card shows.
    pub expanded_text: String,
    /// The file it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The difference it made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// The arguments of a neutral card.
pub(super) fn neutral_args(title: &str, summary: &str) -> RawJson {
    RawJson::of(&json!({"activityTitle": title, "activitySummary": summary}))
}
