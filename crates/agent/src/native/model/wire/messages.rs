//! Reads Anthropic's messages: blocks one after another, each with its beginning, its pieces and its end.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::message::{AnswerPart, Seal};
use super::super::{ModelAnswer, ModelEvent, ModelStop};
use super::{Draft, Events, ReadFault, Reader, parsed, service_fault};
use crate::event::Usage;

#[derive(Debug)]
pub(super) struct Messages {
    tag: String,
    blocks: BTreeMap<u64, Block>,
    tokens: Told,
    told: bool,
    stop: Option<String>,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thinking { text: String, seal: String },
    Redacted(String),
    Call { draft: Draft, given: String, ended: bool },
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    delta: Option<Piece>,
    message: Option<Start>,
    usage: Option<Told>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Start {
    usage: Option<Told>,
}

#[derive(Deserialize)]
struct Begin<'a> {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Piece {
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Told {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    thinking_tokens: Option<u64>,
}

impl Told {
    /// Numbers are told more than once, each time of the whole answer.
    fn take(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = newer.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            newer.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens_details = newer.output_tokens_details.or(self.output_tokens_details.take());
    }

    fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            reasoning: self.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens),
        }
    }
}

impl Reader for Messages {
    fn frame(&mut self, data: &str, out: &mut Events) -> Result<Option<ModelAnswer>, ReadFault> {
        let frame: Frame<'_> = parsed(data)?;
        if let Some(tokens) = frame.usage.or_else(|| frame.message.and_then(|start| start.usage)) {
            self.told = true;
            self.tokens.take(tokens);
        }
        match frame.kind.as_str() {
            "content_block_start" => {
                if let Some(raw) = frame.content_block {
                    self.begin(frame.index, raw, out)?;
                }
            }
            "content_block_delta" => {
                if let Some(piece) = frame.delta {
                    self.piece(frame.index, piece, out);
                }
            }
            "content_block_stop" => {
                if let Some(Block::Call { ended, .. }) = self.blocks.get_mut(&frame.index) {
                    *ended = true;
                }
            }
            "message_delta" => {
                self.stop = frame.delta.and_then(|piece| piece.stop_reason).or(self.stop.take());
            }
            "message_stop" => return Ok(Some(self.answer())),
            "error" => return Err(service_fault(&frame.error.unwrap_or_default())),
            _ => {}
        }
        Ok(None)
    }
}

impl Messages {
    pub(super) fn new(tag: String) -> Self {
        Self { tag, blocks: BTreeMap::new(), tokens: Told::default(), told: false, stop: None }
    }

    fn begin(&mut self, index: u64, raw: &RawValue, out: &mut Events) -> Result<(), ReadFault> {
        let begin: Begin<'_> = parsed(raw.get())?;
        let block = match begin.kind.as_str() {
            "text" => {
                if !begin.text.is_empty() {
                    out.push_back(ModelEvent::Text(begin.text.clone()));
                }
                Block::Text(begin.text)
            }
            "thinking" => {
                if !begin.thinking.is_empty() {
                    out.push_back(ModelEvent::Thinking(begin.thinking.clone()));
                }
                Block::Thinking { text: begin.thinking, seal: begin.signature }
            }
            "redacted_thinking" => Block::Redacted(raw.get().to_owned()),
            "tool_use" => {
                let mut draft = Draft::new(&begin.id, &begin.name);
                draft.push("", out);
                let given = begin.input.map(|input| input.get().to_owned()).unwrap_or_default();
                Block::Call { draft, given, ended: false }
            }
            _ => return Ok(()),
        };
        self.blocks.insert(index, block);
        Ok(())
    }

    fn piece(&mut self, index: u64, piece: Piece, out: &mut Events) {
        match self.blocks.get_mut(&index) {
            Some(Block::Text(text)) => {
                if let Some(more) = piece.text {
                    text.push_str(&more);
                    out.push_back(ModelEvent::Text(more));
                }
            }
            Some(Block::Thinking { text, seal }) => {
                seal.push_str(&piece.signature.unwrap_or_default());
                if let Some(more) = piece.thinking {
                    text.push_str(&more);
                    out.push_back(ModelEvent::Thinking(more));
                }
            }
            Some(Block::Call { draft, .. }) => draft.push(&piece.partial_json.unwrap_or_default(), out),
            Some(Block::Redacted(_)) | None => {}
        }
    }

    fn answer(&mut self) -> ModelAnswer {
        let stop = self.stop.take().unwrap_or_default();
        let cut = matches!(stop.as_str(), "max_tokens" | "model_context_window_exceeded");
        let seal = |data: String, block: bool| Some(Seal { service: self.tag.clone(), data, block });
        let blocks = std::mem::take(&mut self.blocks);
        let parts: Vec<AnswerPart> = blocks
            .into_values()
            .filter_map(|block| match block {
                Block::Text(text) => (!text.is_empty()).then_some(AnswerPart::Text(text)),
                Block::Thinking { text, seal: signature } => {
                    let seal = if signature.is_empty() { None } else { seal(signature, false) };
                    Some(AnswerPart::Thinking { text, seal })
                }
                Block::Redacted(whole) => {
                    Some(AnswerPart::Thinking { text: String::new(), seal: seal(whole, true) })
                }
                Block::Call { draft, ended, .. } if cut && !(ended && draft.is_whole()) => None,
                Block::Call { mut draft, given, .. } => {
                    if draft.arguments.is_empty() {
                        draft.arguments = given;
                    }
                    Some(AnswerPart::Call(draft.call()))
                }
            })
            .collect();
        let calls = parts.iter().any(|part| matches!(part, AnswerPart::Call(_)));
        let text = |part: &AnswerPart| match part {
            AnswerPart::Text(text) => Some(text.clone()),
            _ => None,
        };
        let stop = match stop.as_str() {
            "refusal" => ModelStop::Refused(parts.iter().filter_map(text).collect()),
            "max_tokens" | "model_context_window_exceeded" => ModelStop::MaxTokens,
            _ if calls => ModelStop::Calls,
            "" | "end_turn" | "stop_sequence" | "tool_use" => ModelStop::End,
            other => ModelStop::Other(other.to_owned()),
        };
        ModelAnswer { parts, usage: self.told.then(|| self.tokens.usage()), stop }
    }
}
