//! Reads chat completions: one choice in pieces, calls by their index, then usage and `[DONE]`.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::message::AnswerPart;
use super::super::{ModelAnswer, ModelEvent, ModelStop};
use super::{Draft, Events, ReadFault, Reader, argument_text, parsed, service_fault};
use crate::event::Usage;

#[derive(Debug, Default)]
pub(super) struct Chat {
    text: String,
    thinking: String,
    refusal: String,
    /// By the index that the service gave.
    calls: Vec<(u64, Draft)>,
    finish: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Told>,
    x_groq: Option<Groq>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Groq {
    usage: Option<Told>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    content: Option<Value>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<CallPiece<'a>>>,
}

#[derive(Deserialize)]
struct CallPiece<'a> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Told {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    completion_tokens_details: Option<Details>,
}

#[derive(Deserialize, Default)]
struct Details {
    #[serde(rename = "cached_tokens")]
    cached: Option<u64>,
    #[serde(rename = "cache_write_tokens")]
    kept: Option<u64>,
    #[serde(rename = "reasoning_tokens")]
    reasoned: Option<u64>,
}

impl Told {
    fn usage(self) -> Usage {
        let read = self.prompt_tokens_details.unwrap_or_default();
        let written = self.completion_tokens_details.unwrap_or_default();
        let cached = (read.cached.unwrap_or(0), read.kept.unwrap_or(0));
        Usage {
            input: self.prompt_tokens.unwrap_or(0).saturating_sub(cached.0).saturating_sub(cached.1),
            output: self.completion_tokens.unwrap_or(0),
            cache_read: cached.0,
            cache_write: cached.1,
            reasoning: written.reasoned,
        }
    }
}

impl Reader for Chat {
    fn frame(&mut self, data: &str, out: &mut Events) -> Result<Option<ModelAnswer>, ReadFault> {
        if data == "[DONE]" {
            return Ok(Some(self.answer()));
        }
        let frame: Frame<'_> = parsed(data)?;
        if let Some(error) = frame.error.filter(|error| !error.is_null()) {
            return Err(service_fault(&error));
        }
        if let Some(tokens) = frame.usage.or_else(|| frame.x_groq.and_then(|groq| groq.usage)) {
            self.usage = Some(tokens.usage());
        }
        if let Some(choice) = frame.choices.unwrap_or_default().into_iter().next() {
            if let Some(piece) = choice.delta {
                self.piece(piece, out);
            }
            self.finish = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish.take());
        }
        Ok(None)
    }

    fn end(&mut self) -> Option<ModelAnswer> {
        self.finish.is_some().then(|| self.answer())
    }
}

impl Chat {
    fn piece(&mut self, piece: Piece<'_>, out: &mut Events) {
        let (text, thought) = content(piece.content.as_ref());
        let thinking = piece.reasoning_content.or(piece.reasoning).unwrap_or(thought);
        if !thinking.is_empty() {
            self.thinking.push_str(&thinking);
            out.push_back(ModelEvent::Thinking(thinking));
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            out.push_back(ModelEvent::Text(text));
        }
        self.refusal.push_str(&piece.refusal.unwrap_or_default());
        for call in piece.tool_calls.unwrap_or_default() {
            self.call(&call, out);
        }
    }

    fn call(&mut self, piece: &CallPiece<'_>, out: &mut Events) {
        let id = piece.id.as_deref().unwrap_or_default();
        let name = piece.function.as_ref().and_then(|function| function.name.as_deref()).unwrap_or_default();
        let place = match piece.index {
            // Some give every call the index 0: another id is another call.
            Some(index) => self
                .calls
                .iter()
                .rposition(|(known, draft)| *known == index && (id.is_empty() || draft.id == id)),
            None if id.is_empty() => self.calls.len().checked_sub(1),
            None => self.calls.iter().rposition(|(_, draft)| draft.id == id),
        };
        let place = place.unwrap_or_else(|| {
            let index = piece.index.unwrap_or(self.calls.len() as u64);
            self.calls.push((index, Draft::new(id, "")));
            self.calls.len() - 1
        });
        let Some((_, draft)) = self.calls.get_mut(place) else {
            return;
        };
        if draft.name.is_empty() {
            name.clone_into(&mut draft.name);
        }
        let arguments = piece.function.as_ref().and_then(|function| function.arguments);
        draft.push(&arguments.map(argument_text).unwrap_or_default(), out);
    }

    fn answer(&mut self) -> ModelAnswer {
        let this = std::mem::take(self);
        let finish = this.finish.unwrap_or_default();
        let mut drafts: Vec<Draft> = this.calls.into_iter().map(|(_, draft)| draft).collect();
        if finish == "length" && drafts.last().is_some_and(|draft| !draft.is_whole()) {
            drafts.pop();
        }
        let stop = match finish.as_str() {
            _ if !this.refusal.is_empty() => ModelStop::Refused(this.refusal.clone()),
            "content_filter" => ModelStop::Refused("a content filter of the service".to_owned()),
            "length" => ModelStop::MaxTokens,
            _ if !drafts.is_empty() => ModelStop::Calls,
            "" | "stop" | "tool_calls" | "function_call" | "eos" => ModelStop::End,
            other => ModelStop::Other(other.to_owned()),
        };
        let mut parts = Vec::new();
        if !this.thinking.is_empty() {
            parts.push(AnswerPart::Thinking { text: this.thinking, seal: None });
        }
        if !this.text.is_empty() {
            parts.push(AnswerPart::Text(this.text));
        }
        parts.extend(drafts.into_iter().map(|draft| AnswerPart::Call(draft.call())));
        ModelAnswer { parts, usage: this.usage, stop }
    }
}

/// Text and thinking of a content, which is a text or a list of parts.
fn content(content: Option<&Value>) -> (String, String) {
    let (mut text, mut thinking) = (String::new(), String::new());
    match content {
        Some(Value::String(whole)) => text.push_str(whole),
        Some(Value::Array(parts)) => {
            for part in parts {
                collect(part, "text", &mut text);
                match part.get("thinking") {
                    Some(Value::Array(inner)) => {
                        for part in inner {
                            collect(part, "text", &mut thinking);
                        }
                    }
                    _ => collect(part, "thinking", &mut thinking),
                }
            }
        }
        _ => {}
    }
    (text, thinking)
}

fn collect(part: &Value, member: &str, into: &mut String) {
    into.push_str(part.get(member).and_then(Value::as_str).unwrap_or_default());
}
