//! Reads responses: items by their place in the output, in pieces and then whole, and a last event with the state.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::super::message::{AnswerPart, Seal};
use super::super::{ModelAnswer, ModelEvent, ModelStop};
use super::{Draft, Events, ReadFault, Reader, parsed, service_fault};
use crate::event::Usage;

#[derive(Debug)]
pub(super) struct Responses {
    tag: String,
    items: BTreeMap<u64, Item>,
    refusal: String,
}

#[derive(Debug)]
enum Item {
    Text(String),
    Thinking { text: String, seal: Option<String> },
    Call(Draft),
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    output_index: u64,
    #[serde(default)]
    delta: String,
    item: Option<Value>,
    response: Option<Response>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    output: Vec<Value>,
    usage: Option<Told>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<Cached>,
    output_tokens_details: Option<Reasoned>,
}

#[derive(Deserialize)]
struct Cached {
    #[serde(default)]
    cached_tokens: u64,
}

#[derive(Deserialize)]
struct Reasoned {
    reasoning_tokens: Option<u64>,
}

impl Told {
    fn usage(&self) -> Usage {
        let cached = self.input_tokens_details.as_ref().map_or(0, |details| details.cached_tokens);
        Usage {
            input: self.input_tokens.saturating_sub(cached),
            output: self.output_tokens,
            cache_read: cached,
            cache_write: 0,
            reasoning: self.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens),
        }
    }
}

impl Reader for Responses {
    fn frame(&mut self, data: &str, out: &mut Events) -> Result<Option<ModelAnswer>, ReadFault> {
        if data == "[DONE]" {
            return Ok(None);
        }
        let frame: Frame = parsed(data)?;
        let place = frame.output_index;
        match frame.kind.as_str() {
            "response.output_item.added" | "response.output_item.done" => {
                let whole = frame.kind.ends_with("done");
                if let Some(item) = &frame.item {
                    self.item(place, item, whole);
                }
            }
            "response.output_text.delta" => {
                let item = self.items.entry(place).or_insert_with(|| Item::Text(String::new()));
                if let Item::Text(text) = item {
                    text.push_str(&frame.delta);
                }
                out.push_back(ModelEvent::Text(frame.delta));
            }
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                let empty = || Item::Thinking { text: String::new(), seal: None };
                if let Item::Thinking { text, .. } = self.items.entry(place).or_insert_with(empty) {
                    text.push_str(&frame.delta);
                }
                out.push_back(ModelEvent::Thinking(frame.delta));
            }
            "response.refusal.delta" => self.refusal.push_str(&frame.delta),
            "response.function_call_arguments.delta" => {
                if let Some(Item::Call(draft)) = self.items.get_mut(&place) {
                    draft.push(&frame.delta, out);
                }
            }
            "response.completed" | "response.incomplete" => {
                let response = frame
                    .response
                    .ok_or_else(|| ReadFault::Malformed("the last event has no response".to_owned()))?;
                return Ok(Some(self.answer(response)));
            }
            "response.failed" => {
                let error = frame.response.and_then(|response| response.error).unwrap_or_default();
                return Err(service_fault(&error));
            }
            "error" => {
                let whole = serde_json::from_str(data).unwrap_or_default();
                return Err(service_fault(frame.error.as_ref().unwrap_or(&whole)));
            }
            _ => {}
        }
        Ok(None)
    }
}

impl Responses {
    pub(super) fn new(tag: String) -> Self {
        Self { tag, items: BTreeMap::new(), refusal: String::new() }
    }

    /// An item that begins, or one that is whole and replaces what came of it in pieces.
    fn item(&mut self, place: u64, item: &Value, whole: bool) {
        let word = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
        match word("type") {
            "function_call" => {
                let mut draft = match self.items.remove(&place) {
                    Some(Item::Call(draft)) => draft,
                    _ => Draft::new(word("call_id"), word("name")),
                };
                if !word("arguments").is_empty() {
                    word("arguments").clone_into(&mut draft.arguments);
                }
                self.items.insert(place, Item::Call(draft));
            }
            "reasoning" if whole => {
                let told = match self.items.remove(&place) {
                    Some(Item::Thinking { text, .. }) => text,
                    _ => String::new(),
                };
                let text = if told.is_empty() { texts(item, "summary") } else { told };
                let seal = Some(word("encrypted_content")).filter(|seal| !seal.is_empty()).map(str::to_owned);
                self.items.insert(place, Item::Thinking { text, seal });
            }
            "message" if whole => {
                let (text, refusal) = (texts(item, "content"), texts_of(item, "content", "refusal"));
                if !refusal.is_empty() {
                    self.refusal = refusal;
                }
                if !text.is_empty() {
                    self.items.insert(place, Item::Text(text));
                }
            }
            _ => {}
        }
    }

    fn answer(&mut self, response: Response) -> ModelAnswer {
        if self.items.is_empty() {
            for (place, item) in (0..).zip(&response.output) {
                self.item(place, item, true);
            }
        }
        let reason = response.incomplete_details.map(|details| details.reason).unwrap_or_default();
        let cut = reason == "max_output_tokens";
        let items = std::mem::take(&mut self.items);
        let parts: Vec<AnswerPart> = items
            .into_values()
            .filter_map(|item| match item {
                Item::Text(text) => (!text.is_empty()).then_some(AnswerPart::Text(text)),
                Item::Thinking { text, seal } => {
                    let seal = seal.map(|data| Seal { service: self.tag.clone(), data, block: false });
                    let empty = text.is_empty() && seal.is_none();
                    (!empty).then_some(AnswerPart::Thinking { text, seal })
                }
                Item::Call(draft) if cut && !draft.is_whole() => None,
                Item::Call(draft) => Some(AnswerPart::Call(draft.call())),
            })
            .collect();
        let refusal = std::mem::take(&mut self.refusal);
        let stop = match reason.as_str() {
            _ if !refusal.is_empty() => ModelStop::Refused(refusal),
            "content_filter" => ModelStop::Refused("a content filter of the service".to_owned()),
            "max_output_tokens" => ModelStop::MaxTokens,
            "" if parts.iter().any(|part| matches!(part, AnswerPart::Call(_))) => ModelStop::Calls,
            "" => ModelStop::End,
            other => ModelStop::Other(other.to_owned()),
        };
        ModelAnswer { parts, usage: response.usage.map(|tokens| tokens.usage()), stop }
    }
}

fn texts(item: &Value, list: &str) -> String {
    texts_of(item, list, "text")
}

fn texts_of(item: &Value, list: &str, member: &str) -> String {
    let parts = item.get(list).and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| part.get(member)?.as_str()).collect()
}
