//! Takes what the library reads for services whose protocol is not read here. Arguments are its JSON, not the model's
//! text; an end without a reason is one that the service never sent.

use genai::chat::{ChatStreamEvent, ContentPart, StopReason, StreamEnd, ToolCall, Usage as Told};

use uuid::Uuid;

use super::super::message::{AnswerPart, ModelCall, Seal};
use super::super::{ModelAnswer, ModelEvent, ModelStop};
use super::{Draft, Events, ReadFault, Reader};
use crate::event::Usage;

#[derive(Debug)]
pub(super) struct Library {
    tag: String,
    thinking: String,
    /// Ids of the calls in their order. Some services give none, and the library's count begins anew in every event.
    ids: Vec<String>,
}

impl Library {
    pub(super) fn new(tag: String) -> Self {
        Self { tag, thinking: String::new(), ids: Vec::new() }
    }

    fn answer(&mut self, end: StreamEnd) -> Option<ModelAnswer> {
        let reason = end.captured_stop_reason?;
        let seal = |data: String| Some(Seal { service: self.tag.clone(), data, block: false });
        let mut ids = std::mem::take(&mut self.ids).into_iter();
        let mut parts = Vec::new();
        let thinking = std::mem::take(&mut self.thinking);
        if !thinking.is_empty() {
            parts.push(AnswerPart::Thinking { text: thinking, seal: None });
        }
        for part in end.captured_content.unwrap_or_default() {
            match part {
                ContentPart::Text(text) if !text.is_empty() => parts.push(AnswerPart::Text(text)),
                ContentPart::ThoughtSignature(data) => {
                    parts.push(AnswerPart::Thinking { text: String::new(), seal: seal(data) });
                }
                ContentPart::ToolCall(told) => {
                    let id = ids.next().unwrap_or_else(|| own_id(&told.call_id));
                    parts.push(AnswerPart::Call(call(id, told, &self.tag)));
                }
                _ => {}
            }
        }
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let stop = match reason {
            StopReason::ContentFilter(word) => ModelStop::Refused(word),
            StopReason::MaxTokens(_) => ModelStop::MaxTokens,
            _ if calls => ModelStop::Calls,
            StopReason::Completed(_) | StopReason::ToolCall(_) | StopReason::StopSequence(_) => {
                ModelStop::End
            }
            StopReason::Other(word) => ModelStop::Other(word),
        };
        Some(ModelAnswer { parts, usage: end.captured_usage.map(|told| usage(&told)), stop })
    }
}

/// The library makes `call#name#count` where a service gave no id, and leaves such ids out of what it sends back. They
/// become different ones of the same form.
fn own_id(told: &str) -> String {
    match told.strip_prefix("call#").and_then(|rest| rest.rsplit_once('#')) {
        Some((name, _)) => format!("call#{name}#{}", Uuid::new_v4().as_fields().0),
        None => Draft::new(told, "").id,
    }
}

fn call(id: String, told: ToolCall, tag: &str) -> ModelCall {
    let seal = told.thought_signatures.filter(|seals| !seals.is_empty()).and_then(|seals| {
        let data = serde_json::to_string(&seals).ok()?;
        Some(Seal { service: tag.to_owned(), data, block: false })
    });
    let arguments = match told.fn_arguments {
        serde_json::Value::String(text) => text,
        serde_json::Value::Null => "{}".to_owned(),
        value => value.to_string(),
    };
    ModelCall { id, name: told.fn_name, arguments, seal }
}

fn usage(told: &Told) -> Usage {
    let count = |number: Option<i32>| number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0);
    let details = told.prompt_tokens_details.as_ref();
    let cache_read = count(details.and_then(|details| details.cached_tokens));
    let cache_write = count(details.and_then(|details| details.cache_creation_tokens));
    let reasoning = told.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    Usage {
        input: count(told.prompt_tokens).saturating_sub(cache_read).saturating_sub(cache_write),
        output: count(told.completion_tokens),
        cache_read,
        cache_write,
        reasoning: reasoning.map(|tokens| count(Some(tokens))),
    }
}

impl Reader for Library {
    fn event(&mut self, event: ChatStreamEvent, out: &mut Events) -> Result<Option<ModelAnswer>, ReadFault> {
        match event {
            ChatStreamEvent::Chunk(chunk) => out.push_back(ModelEvent::Text(chunk.content)),
            ChatStreamEvent::ReasoningChunk(chunk) => {
                self.thinking.push_str(&chunk.content);
                out.push_back(ModelEvent::Thinking(chunk.content));
            }
            ChatStreamEvent::ToolCallChunk(chunk) => {
                let id = own_id(&chunk.tool_call.call_id);
                self.ids.push(id.clone());
                let call = call(id, chunk.tool_call, &self.tag);
                out.push_back(ModelEvent::CallDelta {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments,
                });
            }
            ChatStreamEvent::End(end) => return Ok(self.answer(end)),
            ChatStreamEvent::Start
            | ChatStreamEvent::Heartbeat
            | ChatStreamEvent::ThoughtSignatureChunk(_) => {}
        }
        Ok(None)
    }
}
