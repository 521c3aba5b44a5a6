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
        MessageBody::ToolResult { tool_call_id, is_error, .. } => {
            let content = message.result_content()?;
            Some((CallId::new(tool_call_id), HostResult { content, is_error: *is_error }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(json: &str) -> Vec<Message> {
        serde_json::from_str(json).unwrap()
    }

    fn ids(tail: &Tail) -> Vec<&str> {
        tail.results.iter().map(|(id, _)| id.as_str()).collect()
    }

    #[test]
    fn results_at_the_end_are_read_in_order_also_before_what_the_user_said() {
        let calls = r#"{"role":"user","content":"q"},{"role":"assistant","content":[]},
            {"role":"toolResult","toolCallId":"a","toolName":"read","content":[{"type":"text","text":"A"}],"isError":false},
            {"role":"toolResult","toolCallId":"b","toolName":"read","content":"plain","isError":true}"#;
        let tail = Tail::of(&messages(&format!("[{calls}]")));
        assert_eq!((ids(&tail), tail.steering), (vec!["a", "b"], false));
        assert_eq!(tail.results[0].1, HostResult::text("A"));
        assert_eq!((tail.results[1].1.content.text(), tail.results[1].1.is_error), ("\"plain\"", true));

        let tail = Tail::of(&messages(&format!(r#"[{calls},{{"role":"user","content":"stop"}}]"#)));
        assert_eq!((ids(&tail), tail.steering), (vec!["a", "b"], true));
    }

    #[test]
    fn earlier_results_are_not_the_end() {
        let tail = Tail::of(&messages(
            r#"[{"role":"toolResult","toolCallId":"a","toolName":"read","content":[]},
            {"role":"assistant","content":"done"},{"role":"user","content":"next"}]"#,
        ));
        assert_eq!(tail, Tail::default());
    }

    #[test]
    fn a_block_of_an_unknown_kind_keeps_its_bytes() {
        let content = r#"[{"type":"resource","uri":"x://1","n":9007199254740993}]"#;
        let tail = Tail::of(&messages(&format!(
            r#"[{{"role":"toolResult","toolCallId":"a","toolName":"read","content":{content}}}]"#
        )));
        assert_eq!(tail.results[0].1.content.text(), content);
    }
}
