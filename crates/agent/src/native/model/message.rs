//! Owns the conversation in neutral terms, as it is kept in checkpoints. It must not know how a service writes it.

use serde::{Deserialize, Serialize};

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", content = "content", rename_all = "snake_case")]
pub(crate) enum Message {
    /// What the user says.
    User(Vec<UserPart>),
    /// What the model said: the parts of a [`super::ModelAnswer`].
    Assistant(Vec<AnswerPart>),
    /// What tools answered: one for each call of the message before, in any order.
    Tools(Vec<ToolAnswer>),
}

impl Message {
    /// A text of the user.
    pub(crate) fn user(text: impl Into<String>) -> Self {
        Self::User(vec![UserPart::Text(text.into())])
    }
}

/// A part of what the user or a tool says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UserPart {
    /// Text.
    Text(String),
    /// A picture.
    Image {
        /// `image/png`.
        mime_type: String,
        /// The bytes in base64.
        data: String,
    },
}

/// A part of what the model says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerPart {
    /// Text.
    Text(String),
    /// What it thought, and what its service wants to see again to believe it.
    Thinking {
        /// The text, which may be empty.
        text: String,
        /// The service's seal.
        seal: Option<Seal>,
    },
    /// It calls a tool.
    Call(ModelCall),
}

/// A text that only the service which wrote it understands. Another one never gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Seal {
    /// Which service, by the name of its protocol.
    pub(crate) service: String,
    /// Its text, or the whole block as JSON.
    pub(crate) data: String,
    /// It is a whole block.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) block: bool,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelCall {
    /// Its id. Where the service gives none it is made here.
    pub(crate) id: String,
    /// The tool's name.
    pub(crate) name: String,
    /// The arguments as the model wrote them, which need not be JSON.
    pub(crate) arguments: String,
    /// The service's seal of the thought that led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seal: Option<Seal>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ToolAnswer {
    /// The call's id.
    pub(crate) call_id: String,
    /// The tool's name.
    pub(crate) name: String,
    /// What it says. Pictures are given to models that can see; others get a note in their place.
    pub(crate) content: Vec<UserPart>,
    /// It failed.
    pub(crate) is_error: bool,
}
