//! Owns the shape in which a replayed turn stands in a session: an assistant message with tool calls, and their results.

use serde_json::{Value, json};

use super::card::Card;
use crate::call::CallId;

/// The messages of a turn that only shows what the agent did: one of the assistant that ends with "tool use", and one
/// result for each card.
pub fn replayed_turn(cards: &[(CallId, Card)]) -> Vec<Value> {
    if cards.is_empty() {
        return Vec::new();
    }
    let calls: Vec<Value> = cards.iter().map(|(id, card)| card.tool_call(id.as_str())).collect();
    let message = json!({"role": "assistant", "content": calls, "stopReason": "toolUse"});
    let results = cards.iter().map(|(id, card)| card.tool_result(id.as_str()));
    std::iter::once(message).chain(results).collect()
}

/// The final answer of a turn: its last text part that has something in it.
pub fn final_answer<'a>(parts: impl DoubleEndedIterator<Item = &'a str>) -> Option<&'a str> {
    parts.rev().find(|part| !part.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_with_something_in_it_is_the_answer() {
        assert_eq!(final_answer(["a", "b", " \n"].into_iter()), Some("b"));
        assert_eq!(final_answer([""].into_iter()), None);
        assert!(replayed_turn(&[]).is_empty());
    }
}
