//! Owns the end of a conversation: the results that the host brings, and whether the user said something after them.
//! Pure.

use crate::call::{CallId, HostResult};
use crate::prompt::{Message, MessageBody};

/// The end of a conversation.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The results at the end, in order. Not those of earlier calls: an answer followed them.
    pub(super) results: Vec<(CallId, HostResult)>,
    /// The user wrote something after them.
    pub(super) steering: bool,
}

impl Tail {
    /// Reads from the end: user messages first, then results, until anything else.
    pub(super) fn of(messages: &[Message]) -> Self {
        let users = messages.iter().rev().take_while(|message| message.is_user()).count();
        let mut results: Vec<_> = messages.iter().rev().skip(users).map_while(result).collect();
        results.reverse();
        Self { steering: users > 0 && !results.is_empty(), results }
    }
}

fn result(message: &Message) -> Option<(CallId, HostResult)> {
    match message.body() {
        MessageBody::ToolResult { tool_call_id, content, is_error, .. } => {
            let result = HostResult { content: content_of(content), is_error: *is_error };
            Some((CallId::new(tool_call_id), result))
        }
        _ => None,
    }
}
