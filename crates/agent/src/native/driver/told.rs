//! Owns texts and judgements about what went wrong in a run, for the model and for people. Pure.

use crate::error::AgentError;
use crate::event::Usage;
use crate::native::model::UserPart;
use crate::native::results;
use crate::native::turn_loop::CallDone;

/// A call that gives nothing but an error.
pub(super) fn failed(id: String, text: &str) -> CallDone {
    CallDone {
        id,
        content: vec![UserPart::Text(text.to_owned())],
        is_error: true,
        result: results::error(text),
        is_part: false,
        usage: Usage::default(),
        cost: None,
    }
}

/// A call that did not end in time after it was cancelled.
pub(super) fn cut_off(id: String) -> CallDone {
    failed(id, "The call was cut off. It may have run, wholly or in part, or not at all.")
}

/// A call whose task failed.
pub(super) fn panicked(id: String) -> CallDone {
    failed(id, "The tool failed inside; this is a fault of Toolway. It may have run in part.")
}

/// Whether the conversation is longer than the model reads. Services say so in words alone.
pub(super) fn is_too_long(error: &AgentError) -> bool {
    const WORDS: [&str; 9] = [
        "context length",
        "context_length",
        "context window",
        "maximum context",
        "prompt is too long",
        "too many tokens",
        "input is too long",
        "exceeds the maximum number of tokens",
        "input token count",
    ];
    let AgentError::Model { message } = error else { return false };
    let message = message.to_lowercase();
    WORDS.iter().any(|word| message.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_say_in_their_own_words_that_it_is_too_long() {
        for message in [
            "This model's maximum context length is 128000 tokens",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "Your input exceeds the context window of this model",
            "The input token count (1100000) exceeds the maximum",
        ] {
            assert!(is_too_long(&AgentError::Model { message: message.to_owned() }), "{message}");
        }
        assert!(!is_too_long(&AgentError::Model { message: "no such model".to_owned() }));
        assert!(!is_too_long(&AgentError::Network { message: "context length".to_owned() }));
    }
}
