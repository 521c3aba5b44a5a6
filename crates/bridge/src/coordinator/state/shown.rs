//! Owns the way of the agent's own tools into the turn: reports in, cards and traces out.

use std::sync::PoisonError;

use tokio::time::Instant;

use super::State;
use crate::agent_port::AgentEnd;
use crate::call::CallId;
use crate::coordinator::display::Display;
use crate::coordinator::pool::Pooled;
use crate::host_port::{ToolCall, TurnRequest};
use crate::replay::{AgentToolEvent, Card, ReplayContext};
use crate::settings::{NativeDisplay, TaskPresentation};

impl Pooled {
    /// When something is to be shown that only waits for the time.
    pub(in crate::coordinator) fn display_deadline(&self) -> Option<Instant> {
        None
    }
}

impl State {
    pub(super) fn new_display(&self, request: &TurnRequest) -> Display {
        Display::new(self.replay_context(request))
    }

    /// What can be shown in a turn, as it was when the turn began.
    pub(super) fn replay_context(&self, request: &TurnRequest) -> ReplayContext {
        let display = &self.making.settings.tools.display;
        ReplayContext {
            profile: self.making.profile,
            owner: self.making.scope.to_string(),
            display: display.native != NativeDisplay::Off,
            print_mode: false,
            wrappers: request.wrappers.iter().cloned().collect(),
            context_tools: request.context_tools.iter().cloned().collect(),
            live_run: true,
            cwd: request.cwd.clone(),
            task_presentation: presentation(display.task_presentation),
            started_ms: unix_ms(),
            turn: self.turns,
        }
    }

    pub(super) fn tool_event(&mut self, event: &AgentToolEvent, _now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        let own = event.activity().zip(agent.run.as_ref());
        if own.is_some_and(|(activity, run)| run.is_own_activity(&activity.invocation())) {
            return;
        }
    }

    pub(super) fn display_due(&mut self, _now: Instant) {}

    pub(super) fn end_display(&mut self, _end: &AgentEnd, _now: Instant) {}

    /// Keeps the records of cards that the host is about to show.
    pub(super) fn keep_cards(&mut self, cards: Vec<(CallId, Card)>) -> Vec<ToolCall> {
        let mut records = self.making.records.lock().unwrap_or_else(PoisonError::into_inner);
        let mut calls = Vec::new();
        for (id, card) in cards {
            calls.push(ToolCall { id: id.clone(), name: card.tool.clone(), arguments: card.args.clone() });
            records.keep(&self.making.scope, id, card);
        }
        calls
    }
}

fn presentation(configured: TaskPresentation) -> crate::replay::TaskPresentation {
    match configured {
        TaskPresentation::Task => crate::replay::TaskPresentation::Task,
        TaskPresentation::Subagent => crate::replay::TaskPresentation::Subagent,
        TaskPresentation::SubagentMeta => crate::replay::TaskPresentation::SubagentMeta,
    }
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
