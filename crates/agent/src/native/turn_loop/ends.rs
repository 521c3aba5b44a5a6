//! Owns the ends of a run that are not the model's own: a cancellation, a limit, a failure.

use std::time::Duration;

use super::{Effect, Partial, Phase, Remedy, TurnLoop};
use crate::engine::TurnStop;
use crate::error::AgentError;
use crate::event::{AssistantBlock, EventKind};
use crate::native::model::AnswerPart;

impl TurnLoop {
    /// Ends the run where it is. What the model has said stays said; calls that run are ended, and have results.
    pub(super) fn stop(&mut self, stop: TurnStop) {
        match &mut self.phase {
            Phase::Over => {}
            Phase::Boundary(_) => {
                self.phase = Phase::Over;
                self.effects.retain(|effect| !matches!(effect, Effect::Boundary));
                self.effects.push_back(Effect::End(stop));
            }
            Phase::Answering => {
                self.effects.retain(|effect| !matches!(effect, Effect::Ask { .. }));
                self.effects.push_back(Effect::Hush);
                self.keep_partial();
                self.effects.push_back(Effect::Checkpoint);
                self.end(stop);
            }
            Phase::Calling(calls) => {
                if calls.stop.is_none() {
                    calls.stop = Some(stop);
                    self.effects.push_back(Effect::CancelCalls);
                    self.next_batch();
                }
            }
        }
    }

    /// Something outside failed: there is nothing more to keep or to tell.
    pub(super) fn fail(&mut self, error: AgentError) {
        self.effects.clear();
        if matches!(self.phase, Phase::Calling(_)) {
            self.effects.push_back(Effect::CancelCalls);
        }
        self.effects.push_back(Effect::Hush);
        self.phase = Phase::Over;
        self.effects.push_back(Effect::Fail(error));
    }

    /// The model's stream failed. Nothing of its answer was executed, so it can be asked again.
    pub(super) fn broken(&mut self, error: AgentError, remedy: Remedy) {
        if !matches!(self.phase, Phase::Answering) {
            return;
        }
        let shown = self.shown.text.len() + self.shown.thinking.len();
        match remedy {
            Remedy::Again if self.attempt < self.attempts => {
                self.attempt += 1;
                let what = if shown == 0 {
                    "nothing of its answer was shown".to_owned()
                } else {
                    format!("the {shown} bytes of it that were shown do not count")
                };
                let (count, all) = (self.attempt, self.attempts);
                self.note(
                    "retry",
                    format!(
                        "the model's answer broke off ({error}); {what}, no tool was called, and it is asked again \
                         ({count} of {all})"
                    ),
                );
                let delay = Duration::from_millis(200 << self.attempt.min(6));
                self.ask(delay, false);
            }
            Remedy::Shorten if !self.shortened => {
                self.shortened = true;
                self.note(
                    "context",
                    format!("the conversation is too long for the model and is made shorter ({error})"),
                );
                self.ask(Duration::ZERO, true);
            }
            _ => {
                self.keep_partial();
                self.effects.push_back(Effect::Checkpoint);
                self.phase = Phase::Over;
                self.effects.push_back(Effect::Fail(error));
            }
        }
    }

    /// What the model has shown of an answer that will not be whole is said, and stays in the conversation: without calls.
    pub(super) fn keep_partial(&mut self) {
        self.end_thinking();
        let Partial { text, thinking, thought_for, .. } = std::mem::take(&mut self.shown);
        self.spend.guess(tokens_of(self.watch.written(), self.conversation.ratio));
        if !thinking.is_empty() {
            self.event(EventKind::Thinking { text: thinking, thinking_duration_ms: millis(thought_for) });
        }
        if !text.trim().is_empty() {
            self.conversation.push_answer(vec![AnswerPart::Text(text.clone())]);
            self.event(EventKind::Assistant { content: vec![AssistantBlock::Text(text.clone())] });
            self.said = Some(text);
        }
    }
}

/// Milliseconds as events have them.
pub(super) fn millis(time: Option<Duration>) -> Option<u64> {
    time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Tokens of so many bytes, roughly.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate of a small number that is not negative"
)]
pub(super) fn tokens_of(bytes: usize, ratio: f64) -> u64 {
    (bytes as f64 / 4.0 * ratio) as u64
}
