//! Owns the messages of a host's conversation. It must not know how a prompt shows them.

mod form;

use form::Written;

use super::digest::Digest;
use crate::json::RawJson;

/// A message of the conversation, with the digest of the form in which it came.
///
/// It reads and writes JSON: an object with a `role`. Members that are not named in [`MessageBody`] count for the digest
/// and are not kept. A role that is not known is kept as [`MessageBody::Other`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    body: MessageBody,
    digest: Digest,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageBody {
    /// `user`: what the user wrote, also images.
    User {
        /// Texts and images.
        content: Vec<Block>,
    },
    /// `assistant`: what the agent answered.
    Assistant {
        /// Texts, thinking and tool calls.
        content: Vec<Block>,
    },
    /// `toolResult`: what a tool gave back.
    ToolResult {
        /// The id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// Texts and images.
        content: Vec<Block>,
        /// The tool failed.
        is_error: bool,
    },
    /// `custom`: something that an extension of the host put into the conversation.
    Custom {
        /// The extension's own name for this kind.
        custom_type: String,
        /// Texts and images.
        content: Vec<Block>,
    },
    /// `bashExecution`: a command that the user ran.
    BashExecution {
        /// The command.
        command: String,
        /// What it printed.
        output: String,
        /// How it ended, if it ended by itself.
        exit_code: Option<i64>,
        /// The user kept it out of the model's sight.
        excluded: bool,
    },
    /// `branchSummary`: what happened on a branch that was left.
    BranchSummary {
        /// The summary.
        summary: String,
    },
    /// `compactionSummary`: what stands for messages that are gone.
    CompactionSummary {
        /// The summary.
        summary: String,
    },
    /// Any other role.
    Other {
        /// The role.
        role: String,
        /// What could be read of its content.
        content: Vec<Block>,
    },
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// `text`
    Text(String),
    /// `image`
    Image {
        /// Base64.
        data: String,
        /// Media type.
        mime_type: String,
    },
    /// `thinking`, which no prompt repeats.
    Thinking(String),
    /// `toolCall`
    ToolCall {
        /// The id of the call.
        id: String,
        /// The tool's name, as the host knows it.
        name: String,
        /// The arguments, byte for byte.
        arguments: RawJson,
    },
    /// Any other type.
    Other(String),
}

impl Message {
    /// A message of this content; its digest is that of its JSON form.
    pub fn new(body: MessageBody) -> Self {
        let text = serde_json::to_string(&Written::of(&body)).unwrap_or_default();
        Self { digest: Digest::of(text.as_bytes()), body }
    }

    /// A user message of one text.
    pub fn user(text: &str) -> Self {
        Self::new(MessageBody::User { content: vec![Block::Text(text.to_owned())] })
    }

    /// An assistant message of one text.
    pub fn assistant(text: &str) -> Self {
        Self::new(MessageBody::Assistant { content: vec![Block::Text(text.to_owned())] })
    }

    /// What it says.
    pub fn body(&self) -> &MessageBody {
        &self.body
    }

    /// The digest of the bytes in which it came.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The user wrote it.
    pub fn is_user(&self) -> bool {
        matches!(self.body, MessageBody::User { .. })
    }
}
