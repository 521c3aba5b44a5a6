//! Owns the way of the agent's own tools into the turn: reports in, cards and traces out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::time::Instant;

use super::{Event, State};
use crate::agent_port::{AgentEnd, AgentEvent};
use crate::call::CallId;
use crate::coordinator::driver::Told;
use crate::coordinator::pool::{Live, Pooled};
use crate::host_port::{ToolCall, TurnRequest};
use crate::live::LiveItem;
use crate::replay::{AgentToolEvent, Card, Disk, Replay, ReplayContext, ReplayOutput, RunEnd, Sight, Wish};
use crate::scrub::Scrubber;
use crate::settings::HostMode;

/// Turns of this process: a part of the ids of cards.
static TURNS: AtomicU64 = AtomicU64::new(1);

impl Pooled {
    /// When something is to be shown that only waits for the time.
    pub(in crate::coordinator) fn display_deadline(&self) -> Option<Instant> {
        self.live.as_ref()?.replay.next_due()
    }
}

impl State {
    pub(super) fn new_replay(&self, request: &TurnRequest) -> Replay {
        let mut replay = Replay::new(self.replay_context(request), Scrubber::new(), Arc::new(Disk));
        for secret in (self.secrets)() {
            replay.scrubber().add(&secret);
        }
        // Bridge calls have their own endpoint, which no text may show, also one that an agent keeps from an earlier turn.
        if let Some(run) = self.agent.as_ref().and_then(|agent| agent.run.as_ref()) {
            replay.scrubber().add(&run.server().url);
        }
        replay
    }

    /// What can be shown in a turn, as it was when the turn began.
    pub(super) fn replay_context(&self, request: &TurnRequest) -> ReplayContext {
        let display = &self.making.settings.tools.display;
        ReplayContext {
            profile: self.making.profile,
            owner: self.making.scope.to_string(),
            display: display.native.shows(self.making.host_mode, self.making.is_terminal),
            print_mode: self.making.host_mode == Some(HostMode::Print),
            wrappers: request.wrappers.iter().cloned().collect(),
            context_tools: request.context_tools.iter().cloned().collect(),
            live_run: true,
            cwd: request.cwd.clone(),
            task_presentation: display.task_presentation,
            started_ms: unix_ms(),
            turn: TURNS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// One of the agent's tools did something. Of a bridge call nothing is shown: the host shows it already.
    pub(super) fn tool_event(&mut self, event: &AgentToolEvent, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        let Some(live) = &mut agent.live else { return };
        if let (Some(activity), Some(run)) = (event.activity(), &agent.run)
            && run.is_own_activity(&activity.invocation())
        {
            return live.replay.hide(&activity.id);
        }
        let shown = live.replay.on(event, now);
        show(live, shown, now);
    }

    /// The files that cards of this event would show.
    pub(in crate::coordinator) fn wishes(&self, event: &Event) -> Vec<Wish> {
        let Event::Told(number, Told::Event(told)) = event else { return Vec::new() };
        let agent = self.agent.as_ref().filter(|agent| agent.number == *number);
        let Some(live) = agent.and_then(|agent| agent.live.as_ref()) else { return Vec::new() };
        match told {
            AgentEvent::Tool(event) => live.replay.wish(event).into_iter().collect(),
            AgentEvent::Step(events) => events.iter().filter_map(|event| live.replay.wish(event)).collect(),
            _ => Vec::new(),
        }
    }

    /// What was seen of them, or that nothing more is seen.
    pub(in crate::coordinator) fn see(&mut self, sight: Option<Sight>) {
        if let Some(live) = self.agent.as_mut().and_then(|agent| agent.live.as_mut()) {
            live.replay.see(sight);
        }
    }

    /// What was due by now, if anybody sees it: a line about what still runs is no use to a turn that is over.
    pub(super) fn display_due(&mut self, now: Instant) {
        if self.served().is_none() {
            return;
        }
        if let Some(live) = self.agent.as_mut().and_then(|agent| agent.live.as_mut()) {
            let shown = live.replay.poll(now);
            show(live, shown, now);
        }
    }

    /// The agent's answer is over: no line waits any more, and what never completed is told.
    pub(super) fn end_display(&mut self, end: &AgentEnd, now: Instant) {
        let Some(live) = self.agent.as_mut().and_then(|agent| agent.live.as_mut()) else { return };
        let end = match end {
            AgentEnd::Finished(_) => RunEnd::Succeeded { text: live.spoke },
            AgentEnd::Failed(_) => RunEnd::Failed,
            AgentEnd::Cancelled => RunEnd::Aborted,
        };
        let shown = live.replay.finish(end);
        show(live, shown, now);
    }

    /// An answer is cut off: what did not complete is told in the turn that is served, as text.
    pub(super) fn last_traces(&mut self, end: RunEnd) {
        let Some(live) = self.agent.as_mut().and_then(|agent| agent.live.as_mut()) else { return };
        let shown = live.replay.finish(end);
        let Some(turn) = self.active.as_mut().filter(|turn| !turn.has_ended()) else { return };
        for output in shown {
            match output {
                ReplayOutput::Trace(trace) => turn.thinking(trace.text),
                ReplayOutput::Card { card, .. } => turn.thinking(card.text() + "\n"),
                ReplayOutput::Debug(text) => tracing::debug!("{text}"),
            }
        }
    }

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

fn show(live: &mut Live, shown: Vec<ReplayOutput>, now: Instant) {
    for output in shown {
        match output {
            ReplayOutput::Card { id, card } => live.queue.push(LiveItem::Replay((id, card)), now),
            ReplayOutput::Trace(trace) => live.queue.push(LiveItem::Thinking(trace.text), now),
            ReplayOutput::Debug(text) => tracing::debug!("{text}"),
        }
    }
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
