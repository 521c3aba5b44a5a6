//! Owns a conversation in a neutral form: what was said, called and answered. It knows no model's wire form and no I/O.

use serde::{Deserialize, Serialize};

/// One message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "role")]
pub enum Message {
    /// From the user, or from the loop in the user's place.
    User {
        /// Who really wrote it.
        origin: UserOrigin,
        /// In order.
        parts: Vec<UserPart>,
    },
    /// From the model.
    Assistant {
        /// In order.
        parts: Vec<AssistantPart>,
    },
    /// What the calls of the assistant's message before it gave, one for each call, in the calls' order.
    Results {
        /// In order.
        results: Vec<CallResult>,
    },
}

/// Who wrote a message of the user's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserOrigin {
    /// The user, to begin a run.
    Prompt,
    /// The user, in the middle of a run.
    Steering,
    /// The loop: a summary of what was before.
    Summary,
    /// The loop: something that the model has to know.
    Notice,
}

/// A part of a message of the user's side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "type")]
pub enum UserPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// `image/png`.
        mime_type: String,
        /// The bytes in base64.
        data: String,
    },
}

/// A part of a message of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase", tag = "type")]
pub enum AssistantPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// What it thought. Some models want it back with its signature.
    Thinking {
        /// The text.
        text: String,
        /// What the model's service signed it with.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// It calls a tool.
    Call {
        /// The call's id, unique in the conversation.
        id: String,
        /// The name as the model said it.
        name: String,
        /// The arguments: the text of a JSON object, always. What the model wrote is replaced by `{}` where it is none.
        arguments: String,
        /// What the model's service wants back with the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    /// The call's id.
    pub call_id: String,
    /// The tool's name as the model said it.
    pub name: String,
    /// The text.
    pub text: String,
    /// Pictures: mime type and base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<(String, String)>,
    /// The tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}
