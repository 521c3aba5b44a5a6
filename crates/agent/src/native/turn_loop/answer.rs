//! Owns what becomes of a model's answer: shown as it comes, and taken into the conversation once it is whole.

use std::time::Duration;

use toolway_bridge::RawJson;

use super::ends::{millis, tokens_of};
use super::{CONTINUATIONS, Effect, Phase, TurnLoop};
use crate::engine::TurnStop;
use crate::error::AgentError;
use crate::event::{AssistantBlock, Delta, EventKind};
use crate::native::model::{AnswerPart, ModelAnswer, ModelCall, ModelStop};

/// Arguments that grow are shown again when they have grown by so much.
const SHOW_ALL_BELOW: usize = 2048;

impl TurnLoop {
    pub(super) fn text(&mut self, text: String) {
        if !matches!(self.phase, Phase::Answering) {
            return;
        }
        self.end_thinking();
        self.shown.text.push_str(&text);
        let ended = self.watch.push(&text);
        self.delta(Delta::Text(text));
        self.stop_if(ended);
    }

    pub(super) fn thinking(&mut self, text: String) {
        if !matches!(self.phase, Phase::Answering) {
            return;
        }
        self.shown.thought_from.get_or_insert(self.now);
        self.shown.thinking.push_str(&text);
        let ended = self.watch.push(&text);
        self.delta(Delta::Thinking(text));
        self.stop_if(ended);
    }

    pub(super) fn call_delta(&mut self, id: String, name: String, arguments: String) {
        if !matches!(self.phase, Phase::Answering) {
            return;
        }
        self.end_thinking();
        let ended = self.watch.arguments(arguments.len());
        let (last_id, last_size) = &self.partial_call;
        let grown = arguments.len() > last_size + last_size / 4;
        if arguments.len() < SHOW_ALL_BELOW || grown || *last_id != id {
            self.partial_call = (id.clone(), arguments.len());
            self.delta(Delta::PartialToolCall { call_id: id, name, arguments });
        }
        self.stop_if(ended);
    }

    /// Ends the run when the answer should not go on, or when it alone passes the limit of tokens.
    fn stop_if(&mut self, ended: Option<String>) {
        let writing = tokens_of(self.watch.written(), self.conversation.ratio);
        let over = || self.spend.over_tokens(&self.limits, writing);
        if let Some(reason) = ended.or_else(over) {
            self.stop(TurnStop::Limit(reason));
        }
    }

    pub(super) fn end_thinking(&mut self) {
        let (Some(from), None) = (self.shown.thought_from, self.shown.thought_for) else { return };
        let time = self.now.saturating_sub(from);
        self.shown.thought_for = Some(time);
        self.delta(Delta::ThinkingCompleted { duration_ms: millis(Some(time)).unwrap_or(0) });
    }

    pub(super) fn answered(&mut self, answer: ModelAnswer) {
        if !matches!(self.phase, Phase::Answering) {
            return;
        }
        self.end_thinking();
        let ModelAnswer { mut parts, usage, stop } = answer;
        match usage {
            Some(usage) => self.spend.add(usage),
            None => self.spend.guess(tokens_of(self.watch.written(), self.conversation.ratio)),
        }
        parts.retain(|part| !matches!(part, AnswerPart::Text(text) if text.is_empty()));
        if let ModelStop::Refused(_) = &stop {
            parts.retain(|part| !matches!(part, AnswerPart::Call(_)));
        }
        let says = |part: &AnswerPart| match part {
            AnswerPart::Text(text) => !text.trim().is_empty(),
            AnswerPart::Thinking { .. } => false,
            AnswerPart::Call(_) => true,
        };
        if !parts.iter().any(says) && !matches!(stop, ModelStop::Refused(_)) {
            self.empty(&stop);
            return;
        }
        let calls = self.take_parts(&mut parts);
        self.conversation.push_answer(parts);
        self.event(EventKind::Usage(self.spend.usage()));
        if let Some(usage) = usage {
            self.delta(Delta::TurnEnded(usage));
        }
        self.effects.push_back(Effect::Checkpoint);
        match stop {
            ModelStop::Refused(reason) => self.end(TurnStop::Refused(reason)),
            ModelStop::MaxTokens => self.cut(calls),
            _ if !calls.is_empty() => self.begin_calls(calls),
            ModelStop::Other(word) => {
                self.note("model", format!("the model's service ended the answer with {word:?}"));
                self.step_done(Some(TurnStop::Finished));
            }
            ModelStop::End | ModelStop::Calls => self.step_done(Some(TurnStop::Finished)),
        }
    }

    /// Tells of the parts, gives the calls ids of their own, and returns them.
    fn take_parts(&mut self, parts: &mut [AnswerPart]) -> Vec<ModelCall> {
        let thought_for = self.shown.thought_for.take();
        let mut thought = millis(thought_for);
        let mut blocks = Vec::new();
        let mut calls = Vec::new();
        let mut said = String::new();
        for part in parts {
            match part {
                AnswerPart::Text(text) => {
                    said.push_str(text);
                    blocks.push(AssistantBlock::Text(text.clone()));
                }
                AnswerPart::Thinking { text, .. } => {
                    self.tell(&mut blocks);
                    if !text.is_empty() {
                        let thinking_duration_ms = thought.take();
                        self.event(EventKind::Thinking { text: text.clone(), thinking_duration_ms });
                    }
                }
                AnswerPart::Call(call) => {
                    call.id = self.conversation.claim_id(&call.id);
                    blocks.push(AssistantBlock::ToolUse {
                        id: call.id.clone(),
                        name: call.name.clone(),
                        input: shown_arguments(&call.arguments),
                    });
                    calls.push(call.clone());
                }
            }
        }
        self.tell(&mut blocks);
        if !said.trim().is_empty() {
            self.said = Some(said);
        }
        calls
    }

    fn tell(&mut self, blocks: &mut Vec<AssistantBlock>) {
        if !blocks.is_empty() {
            self.event(EventKind::Assistant { content: std::mem::take(blocks) });
        }
    }

    /// The step is over.
    pub(super) fn step_done(&mut self, stop: Option<TurnStop>) {
        self.delta(Delta::StepCompleted { step: self.step });
        self.boundary(stop);
    }

    /// An answer with nothing in it. After results of tools it means that there is nothing to add.
    fn empty(&mut self, stop: &ModelStop) {
        if matches!(stop, ModelStop::End | ModelStop::Calls) && self.step > 1 {
            self.event(EventKind::Usage(self.spend.usage()));
            self.effects.push_back(Effect::Checkpoint);
            self.step_done(Some(TurnStop::Finished));
        } else if self.attempt < self.attempts && !matches!(stop, ModelStop::MaxTokens) {
            self.attempt += 1;
            let (count, all) = (self.attempt, self.attempts);
            self.note("retry", format!("the model answered nothing, and is asked again ({count} of {all})"));
            self.ask(Duration::from_millis(200 << count.min(6)), false);
        } else {
            let message = match stop {
                ModelStop::MaxTokens => {
                    "the model used all of its output for thinking and said nothing: raise its \
                                         output limit, or ask it to think less"
                        .to_owned()
                }
                ModelStop::Other(word) => format!("the model answered nothing ({word})"),
                _ => format!("the model answered nothing, {} times", self.attempt),
            };
            self.event(EventKind::Usage(self.spend.usage()));
            self.effects.push_back(Effect::Checkpoint);
            self.phase = Phase::Over;
            self.effects.push_back(Effect::Fail(AgentError::Model { message }));
        }
    }

    /// An answer that was cut at its length limit. Whole calls of it count.
    fn cut(&mut self, calls: Vec<ModelCall>) {
        if !calls.is_empty() {
            self.notice = Some(
                "Your last answer was cut at its length limit. If you were writing another call, it was not made. \
                 Write less in one answer."
                    .to_owned(),
            );
            self.begin_calls(calls);
        } else if self.continuations < CONTINUATIONS {
            self.continuations += 1;
            self.notice = Some(
                "Your answer was cut at its length limit. Go on exactly where it stopped, without repeating anything. A \
                 tool call that you were writing was not made: if it was too long for one answer, make smaller ones."
                    .to_owned(),
            );
            self.step_done(None);
        } else {
            let reason = format!(
                "the model's answer was cut at its length limit {} times: raise the model's output limit",
                CONTINUATIONS + 1
            );
            self.step_done(Some(TurnStop::Limit(reason)));
        }
    }
}

/// Arguments as events have them: what is no JSON is shown as a text.
fn shown_arguments(raw: &str) -> RawJson {
    if raw.trim().is_empty() {
        return RawJson::empty_object();
    }
    RawJson::new(raw.as_bytes().to_vec())
        .unwrap_or_else(|_| RawJson::of(&serde_json::Value::String(raw.to_owned())))
}
