//! Owns making room in a conversation that its model cannot read at once: old results go to where they are saved, then
//! older messages become notes. What to choose is decided in `context`.

use std::sync::Arc;

use super::Driver;
use crate::error::AgentError;
use crate::event::{Delta, EventKind, Usage};
use crate::native::context::{self, Compaction, Droppable};
use crate::native::model::{Message, ModelEvent, ModelRequest};
use crate::native::{estimate, guarded};

/// Tokens that notes may have.
const NOTES: u32 = 4_000;
/// Units that stay beside notes in any case.
const LEAST: u64 = 500;

impl Driver {
    /// Makes room where it is needed. Returns the units of the request.
    pub(super) async fn fit(&mut self, shorten: bool) -> Result<u64, AgentError> {
        let (units, tokens) = self.weigh();
        if !shorten && !self.window.is_full(tokens) {
            return Ok(units);
        }
        let target = if shorten { self.window.target().min(tokens / 2) } else { self.window.target() };
        let ratio = self.turn.conversation.ratio;
        let excess = estimate::tokens(tokens.saturating_sub(target), 1.0 / ratio);
        let dropped = self.drop_results(excess).await?;
        let (units, left) = self.weigh();
        let has_room = if shorten { left <= target } else { !self.window.is_full(left) };
        if !has_room {
            let fixed = estimate::text(&self.system) + self.toolset.weight;
            let room = estimate::tokens(target, 1.0 / ratio).saturating_sub(fixed).max(LEAST);
            if let Some(compaction) = context::compaction(&self.turn.conversation, self.window, room) {
                self.compact(compaction, left).await?;
            }
        } else if dropped == 0 {
            return Ok(units);
        }
        let checkpoint = self.turn.conversation.checkpoint()?;
        self.work.sink.checkpoint(checkpoint).await?;
        Ok(self.weigh().0)
    }

    /// Units and tokens of the request as it is now.
    fn weigh(&mut self) -> (u64, u64) {
        let conversation = &mut self.turn.conversation;
        let said = conversation.weigh(estimate::message);
        let units = said + estimate::text(&self.system) + self.toolset.weight;
        (units, estimate::tokens(units, conversation.ratio))
    }

    /// Old results make room, as many as give so many units. Returns how many.
    async fn drop_results(&mut self, units: u64) -> Result<usize, AgentError> {
        let chosen = context::droppable(&self.turn.conversation, units);
        if chosen.is_empty() {
            return Ok(0);
        }
        let count = chosen.len();
        let guard = self.work.setup.guard.clone();
        let session = self.work.facts.conversation_id.clone();
        let saved = tokio::task::spawn_blocking(move || {
            let text = |one: &Droppable| {
                let saved =
                    guard.as_ref().and_then(|it| guarded::dropped(it, &one.name, &session, &one.text));
                saved.unwrap_or_else(|| {
                    let size = one.text.chars().count();
                    format!("[This old result of {size} characters was left out to make room. Call the tool again if you need it.]")
                })
            };
            let texts: Vec<String> = chosen.iter().map(text).collect();
            chosen.into_iter().zip(texts).collect::<Vec<_>>()
        });
        let saved = saved.await.map_err(|error| AgentError::Runtime {
            message: format!("old results could not be saved: {error}"),
        })?;
        for (one, text) in saved {
            self.turn.conversation.replace_result(one.message, &one.call_id, text);
        }
        let text =
            format!("{count} old results made room: they are saved, and the model can read them again");
        self.work
            .sink
            .event(EventKind::Task { status: Some("context".to_owned()), text: Some(text) })
            .await?;
        Ok(count)
    }

    /// Older messages become notes, made by the model; without them they are left out.
    async fn compact(&mut self, compaction: Compaction, before: u64) -> Result<(), AgentError> {
        self.work.sink.delta(Delta::SummaryStarted).await;
        let Compaction { until, keep, transcript } = compaction;
        let (notes, usage) = self.notes(&transcript).await;
        let cost = self.work.model.facts().prices.map(|prices| prices.cost(&usage));
        self.turn.charge(usage, cost);
        let gone = until - keep.len();
        let (summary, told) = match notes {
            Ok(notes) => (context::summary_text(&notes), format!("{gone} older messages became notes")),
            Err(error) => (
                context::without_summary(gone),
                format!("{gone} older messages were left out; the model made no notes of them: {error}"),
            ),
        };
        self.turn.conversation.replace_head(until, summary, &keep);
        let after = self.weigh().1;
        self.work.sink.delta(Delta::SummaryCompleted { before, after }).await;
        let text = format!("{told}: about {before} tokens are {after} now");
        self.work.sink.event(EventKind::Task { status: Some("context".to_owned()), text: Some(text) }).await
    }

    /// Notes of a record.
    async fn notes(&mut self, transcript: &str) -> (Result<String, AgentError>, Usage) {
        let messages = [Message::user(context::summary_request(transcript))];
        let request = ModelRequest {
            system: context::SUMMARY_SYSTEM,
            messages: &messages,
            tools: &[],
            max_output: Some(NOTES),
        };
        let model = Arc::clone(&self.work.model);
        let mut stream = model.stream(&request, &self.cancel);
        loop {
            match stream.next().await {
                Some(Ok(ModelEvent::Done(answer))) => {
                    let text = answer.text();
                    let usage = answer.usage.unwrap_or_default();
                    if text.trim().is_empty() {
                        let message = "the notes are empty".to_owned();
                        return (Err(AgentError::Model { message }), usage);
                    }
                    return (Ok(text), usage);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return (Err(error), Usage::default()),
                None => {
                    let message = "the notes were not finished".to_owned();
                    return (Err(AgentError::Network { message }), Usage::default());
                }
            }
        }
    }
}
