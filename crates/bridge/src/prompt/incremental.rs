//! Owns the prompt for an agent that knows the conversation: a line, what the user wrote since, the tail guard.

use super::tail::{self, Occasion};
use super::{Message, MessageBody, Prompt, PromptInput, joined, transcript};

const CONTINUE: &str =
    "Continue. Tools that only the host had in the earlier context are not available to you.";

/// The latest user message for an agent that was sent everything before it.
///
/// If the user wrote several messages in a row that were not sent yet, all of them are: none would reach the agent else.
pub fn incremental(input: &PromptInput<'_>) -> Prompt {
    let latest = latest_messages(input);
    let texts: Vec<String> = latest.iter().map(|message| transcript::latest_text(message)).collect();
    let request = joined(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let tail = tail::guard(input, Occasion::Incremental);
    Prompt {
        text: joined(&[CONTINUE, &request, &tail]),
        images: latest.iter().flat_map(|message| transcript::images(message)).collect(),
        omitted: 0,
    }
}

/// The user messages after the last answer or result that the agent was not sent; at least the latest one.
fn latest_messages<'a>(input: &PromptInput<'a>) -> Vec<&'a Message> {
    let is_answer = |message: &Message| {
        matches!(message.body(), MessageBody::Assistant { .. } | MessageBody::ToolResult { .. })
    };
    let start = input.messages.iter().rposition(is_answer).map_or(0, |place| place + 1).max(input.sent);
    let fresh: Vec<&Message> =
        input.messages.iter().skip(start).filter(|message| message.is_user()).collect();
    if fresh.is_empty() {
        return input.messages.iter().rfind(|message| message.is_user()).into_iter().collect();
    }
    fresh
}
