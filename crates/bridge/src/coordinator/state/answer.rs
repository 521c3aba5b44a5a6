//! Owns what an agent says: into the queue of its answer, and out of it into the turn that is served.

use tokio::time::Instant;

use super::{Stage, State};
use crate::agent_port::{AgentEnd, AgentEvent, AgentFailure};
use crate::call::CallId;
use crate::continuity::Cause;
use crate::coordinator::driver::{Order, Told};
use crate::coordinator::pool::{End, Phase};
use crate::host_port::{NoticeLevel, StopReason, ToolCall};
use crate::live::{Emit, LiveItem, Poll};
use crate::replay::Card;
use crate::run::Run;
use crate::scrub::Scrubber;

impl State {
    /// What an agent's task tells. Those of agents that were let go have nothing to say.
    pub(super) fn told(&mut self, number: u64, told: Told, now: Instant) {
        if self.agent.as_ref().is_none_or(|agent| agent.number != number) {
            return;
        }
        match told {
            Told::Ready(run) => self.ready(run, now),
            Told::NotMade(failure) => {
                self.fail_turn(&format!("no agent: {failure}"));
                self.let_go("the agent could not be made", now);
            }
            Told::Sent(Ok(())) => self.sent(now),
            Told::Sent(Err(failure)) => {
                self.fail_turn(&format!("the agent did not take the prompt: {failure}"));
                self.let_go(&Cause::SendError.to_string(), now);
            }
            Told::Event(event) => self.agent_event(event, now),
            Told::NotReloaded(failure) => {
                let text = format!("the agent did not read its configuration again: {failure}");
                self.notify(NoticeLevel::Warning, &Scrubber::new().scrub(&text));
            }
            Told::Dead => self.agent_died(now),
        }
    }

    fn ready(&mut self, run: Option<Run>, now: Instant) {
        let inbox = &self.making.inbox;
        let Some(agent) = &mut self.agent else { return };
        if let Some(run) = &run {
            run.bind(inbox.sink(agent.number));
        }
        if let (Some(live), Some(run)) = (&mut agent.live, &run) {
            live.replay.scrubber().add(&run.server().url);
        }
        agent.run.clone_from(&run);
        self.making.gate.set_run(run);
        let making = std::mem::replace(&mut agent.phase, Phase::Resting);
        let Phase::Making(prompt, step) = making else {
            agent.phase = making;
            return;
        };
        agent.phase = Phase::Sending(step);
        if !agent.reins.order(Order::Send(prompt)) {
            self.fail_turn("the agent takes no orders");
            self.let_go("the agent takes no orders", now);
        }
    }

    fn sent(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        let sending = std::mem::replace(&mut agent.phase, Phase::Running);
        match sending {
            Phase::Sending(step) => agent.continuity.commit(step, now),
            other => agent.phase = other,
        }
    }

    /// What is told of agents may hold what nobody is to see.
    pub(super) fn fail_turn(&mut self, message: &str) {
        if let Some(turn) = &mut self.active {
            turn.end(StopReason::Error(Scrubber::new().scrub(message).into_owned()));
        }
    }

    fn agent_event(&mut self, event: AgentEvent, now: Instant) {
        if let AgentEvent::Ended(end) = &event {
            return self.agent_ended(end, now);
        }
        let Some(agent) = &mut self.agent else { return };
        let Some(live) = &mut agent.live else { return };
        match event {
            AgentEvent::Text(text) => {
                live.spoke |= !text.trim().is_empty();
                live.queue.push(LiveItem::Text(text), now);
            }
            AgentEvent::Thinking(text) => live.queue.push(LiveItem::Thinking(text), now),
            AgentEvent::Tool(event) => self.tool_event(&event, now),
            AgentEvent::Step(events) => {
                for event in &events {
                    self.tool_event(event, now);
                }
            }
            AgentEvent::TurnEnded(usage) => {
                live.queue.usage();
                match self.active.as_mut().filter(|turn| !turn.has_ended()) {
                    Some(turn) => turn.used(usage),
                    None => live.used += usage,
                }
            }
            AgentEvent::Ended(_) => {}
        }
    }

    fn agent_ended(&mut self, end: &AgentEnd, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        if !matches!(agent.phase, Phase::Running | Phase::Stopping(_)) {
            return;
        }
        agent.phase = Phase::Resting;
        self.answered(end, "the agent's answer ended", now);
        if self.stage == Stage::Rest {
            self.send(None, now);
        }
    }

    /// Nothing is added to the answer any more; the host sees what there is of it.
    fn answered(&mut self, end: &AgentEnd, reason: &str, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        if let Some(live) = &mut agent.live {
            if let AgentEnd::Finished(Some(text)) = end
                && !live.spoke
                && !text.trim().is_empty()
            {
                live.spoke = true;
                live.queue.push(LiveItem::Text(text.clone()), now);
            }
            live.end = Some(End::from(end));
            live.queue.end();
            self.end_display(end, now);
            // Whoever called the host's tools is gone.
            self.reject_calls(reason, now);
        }
    }

    /// The connection to the agent is dead. An answer that it ended before, and one that is looked at now, are shown as
    /// far as they came.
    fn agent_died(&mut self, now: Instant) {
        const LOST: &str = "the connection to the agent is lost";
        if self.stage == Stage::Rest {
            return self.send(Some(LOST), now);
        }
        let is_served = self.served().is_some();
        let live = self.agent.as_ref().and_then(|agent| agent.live.as_ref());
        let has_ended = live.is_some_and(|live| live.end.is_some());
        if live.is_none() || !(is_served || has_ended) {
            self.fail_turn(LOST);
            return self.let_go(LOST, now);
        }
        if !has_ended {
            self.answered(&AgentEnd::Failed(AgentFailure::new(LOST)), LOST, now);
        }
        if let Some(agent) = &mut self.agent {
            agent.phase = Phase::Resting;
            agent.retired = true;
        }
    }

    /// Brings what is due from the answer into the turn.
    pub(super) fn pump(&mut self, now: Instant) {
        self.batch = None;
        self.display_due(now);
        loop {
            let Some(turn) = self.active.as_ref().filter(|turn| !turn.has_ended() && !turn.has_unsent())
            else {
                return;
            };
            if turn.is_given_up() {
                return;
            }
            if self.stage == Stage::Rest {
                if self.agent.is_none() {
                    self.send(None, now);
                }
                return;
            }
            let Some(agent) = &mut self.agent else { return };
            let Some(live) = &mut agent.live else { return };
            let run = agent.run.as_ref();
            match live.queue.poll(now, |id| run.is_some_and(|run| run.admit(id).is_ok())) {
                Poll::Wait(until) => {
                    self.batch = Some(until);
                    return self.steering_due(now);
                }
                Poll::Empty if live.end.is_none() => return self.steering_due(now),
                Poll::Empty => self.answer_over(now),
                Poll::Emit(emit) => self.emit(emit, now),
            }
        }
    }

    fn emit(&mut self, emit: Emit<(CallId, Card)>, now: Instant) {
        if matches!(self.stage, Stage::Steering(_)) && !matches!(emit, Emit::Text(_) | Emit::Thinking(_)) {
            return self.steered_tools(emit, now);
        }
        let Some(turn) = &mut self.active else { return };
        let calls: Vec<ToolCall> = match emit {
            Emit::Text(text) => {
                turn.text(text);
                return turn.flush();
            }
            Emit::Thinking(text) => {
                turn.thinking(text);
                return turn.flush();
            }
            Emit::Calls(calls) => {
                if let Some(live) = self.agent.as_mut().and_then(|agent| agent.live.as_mut()) {
                    live.handed.extend(calls.iter().map(|call| call.id.clone()));
                }
                let call = |call: crate::call::HostCall| ToolCall {
                    id: call.id,
                    name: call.tool,
                    arguments: call.arguments,
                };
                calls.into_iter().map(call).collect()
            }
            Emit::Replays(cards) => self.keep_cards(cards),
        };
        let Some(turn) = &mut self.active else { return };
        if let Some(agent) = &mut self.agent {
            agent.idle.release(now);
            if let Some(live) = &mut agent.live {
                live.outstanding.extend(calls.iter().map(|call| call.id.clone()));
            }
        }
        turn.calls(calls);
        turn.flush();
    }

    /// Tools while the user waits with something to say. What an answer that ended has left to show is shown as text; an
    /// answer that goes on is left.
    fn steered_tools(&mut self, emit: Emit<(CallId, Card)>, now: Instant) {
        let ended =
            self.agent.as_ref().and_then(|agent| agent.live.as_ref()).is_some_and(|live| live.end.is_some());
        let (Emit::Replays(cards), true, Some(turn)) = (emit, ended, &mut self.active) else {
            return self.send(Some("the user said something while the agent was busy"), now);
        };
        for (_, card) in cards {
            turn.thinking(format!("{}\n", card.text()));
        }
        turn.flush();
    }

    /// While the user waits with something to say: an answer that does not end is left.
    fn steering_due(&mut self, now: Instant) {
        if let Stage::Steering(until) = self.stage
            && now >= until
        {
            self.send(Some("the user said something while the agent was busy"), now);
        }
    }

    /// The agent ended its answer, and the host has seen all of it.
    fn answer_over(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        let Some(live) = agent.live.take() else { return };
        let failed = match live.end {
            Some(End::Failed(failure)) => {
                Some(StopReason::Error(Scrubber::new().scrub(&failure.message).into_owned()))
            }
            Some(End::Cancelled) => Some(StopReason::Aborted("the agent was stopped".to_owned())),
            Some(End::Finished) | None => None,
        };
        if let Some(run) = &agent.run {
            run.detach();
        }
        if matches!(self.stage, Stage::Steering(_)) {
            let anew = failed.is_some().then_some("the agent's last answer failed");
            return self.send(anew, now);
        }
        agent.idle.release(now);
        let let_go = agent.retired || matches!(failed, Some(StopReason::Error(_)));
        if let Some(turn) = &mut self.active {
            turn.end(failed.unwrap_or(StopReason::Stop));
            turn.flush();
        }
        if let_go {
            self.let_go("the agent is not used again", now);
        }
    }
}
