//! Owns how a turn begins: it goes on with the answer that its results belong to, or is a prompt of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::compose::Composed;
use super::{Stage, State};
use crate::call::{CallId, HostResult};
use crate::continuity::{Continuity, Decision, Step};
use crate::coordinator::driver::Order;
use crate::coordinator::idle::Idle;
use crate::coordinator::pool::{Live, Phase, Pooled};
use crate::coordinator::tail::Tail;
use crate::coordinator::turn::{OpenTurn, Watch};
use crate::host_port::StopReason;

/// How long an answer may go on when the user said something meanwhile.
const STEERING: Duration = Duration::from_secs(10);

/// What calls are told whose results a host leaves out when it brings those of others.
const WITHOUT: &str = "the host went on without a result of this call";

impl State {
    /// Takes up the next turn that waits. `false`: there is none.
    pub(super) fn next_turn(&mut self, now: Instant) -> bool {
        let Some(turn) = self.queue.pop_front() else { return false };
        if turn.is_given_up() {
            self.never_begun(turn, now);
            return true;
        }
        self.making.gate.set_abort(turn.request.abort.clone());
        let tail = Tail::of(&turn.request.messages);
        self.active = Some(turn);
        self.stage = Stage::Answer;
        if self.continues(&tail) {
            self.go_on(tail, now);
        } else {
            // Results that no answer waits for: the transcript has them, and nothing is executed for them again.
            let orphaned = !tail.results.is_empty();
            self.send(orphaned.then_some("the answer that the results belong to is gone"), now);
        }
        true
    }

    /// A turn that is given up before it began creates nothing. If it brought the results that an answer waits for, that
    /// answer is given up with it.
    pub(super) fn never_begun(&mut self, mut turn: OpenTurn, now: Instant) {
        turn.end(StopReason::Aborted("the host gave the turn up before it began".to_owned()));
        turn.flush();
        if self.served().is_none() && self.continues(&Tail::of(&turn.request.messages)) {
            self.stop_agent(now);
        }
    }

    fn continues(&self, tail: &Tail) -> bool {
        self.agent.as_ref().and_then(|agent| agent.live.as_ref()).is_some_and(|live| live.continues(tail))
    }

    /// The same answer of the same agent goes on: no new agent, no new prompt.
    fn go_on(&mut self, tail: Tail, now: Instant) {
        let Some(turn) = &self.active else { return };
        let context = self.replay_context(&turn.request);
        let (Some(turn), Some(agent)) = (&mut self.active, &mut self.agent) else { return };
        agent.idle.lease();
        let Some(live) = &mut agent.live else { return };
        live.abort = Watch::new(&turn.request.abort);
        turn.used(std::mem::take(&mut live.used));
        live.replay.set_context(context);
        for (id, result) in tail.results {
            self.yields |= settle(agent.run.as_ref(), live, &id, result);
        }
        // The host went on without the results of the others, which no later turn brings.
        for id in live.outstanding.drain().filter(|id| live.handed.contains(id)) {
            if let Some(run) = &agent.run {
                run.abort(&id, WITHOUT);
            }
        }
        if tail.steering {
            self.stage = Stage::Steering(now + STEERING);
        }
    }

    /// Hands the turn to an agent as a prompt, to a new one if there is a reason for that.
    pub(super) fn send(&mut self, anew: Option<&str>, now: Instant) {
        let Some(turn) = &self.active else { return };
        let Some(composed) = self.compose(&turn.request) else {
            self.let_go("the host failed to say which tools it has", now);
            return self.fail_turn("the host failed to say which tools it has");
        };
        let step =
            self.agent.as_ref().map(|agent| agent.continuity.decide(&composed.situation(&turn.request), now));
        let decided = step.as_ref().and_then(|step| match &step.decision {
            Decision::Bootstrap { cause, new_agent: true } => Some(cause.to_string()),
            Decision::Bootstrap { .. } | Decision::Incremental { .. } => None,
        });
        let reason = anew.map(str::to_owned).or(decided).or_else(|| {
            let agent = self.agent.as_ref()?;
            if agent.retired {
                return Some("the agent is not used again".to_owned());
            }
            match agent.phase {
                Phase::Resting | Phase::Stopping(_) => None,
                Phase::Making(..) | Phase::Sending(_) | Phase::Running => {
                    Some("the agent is busy with another prompt".to_owned())
                }
            }
        });
        if let (None, Some(step)) = (&reason, step) {
            if self.agent.as_ref().is_some_and(|agent| matches!(agent.phase, Phase::Stopping(_))) {
                return self.rest();
            }
            if self.send_to_pooled(&composed, step) {
                return;
            }
        }
        self.let_go(reason.as_deref().unwrap_or("the agent takes no orders"), now);
        self.send_to_new(&composed, now);
    }

    /// Waits for an agent that stops.
    fn rest(&mut self) {
        self.stage = Stage::Rest;
        if let Some(agent) = &mut self.agent {
            agent.idle.lease();
        }
    }

    /// `false`: the agent takes no orders.
    fn send_to_pooled(&mut self, composed: &Composed, step: Step) -> bool {
        let Some(turn) = &self.active else { return true };
        let prompt = composed.prompt(&self.making.profile, &turn.request, &step.decision);
        let live = self.new_live(turn);
        let inbox = Arc::clone(&self.making.inbox);
        let Some(agent) = &mut self.agent else { return false };
        self.stage = Stage::Answer;
        agent.idle.lease();
        agent.live = Some(live);
        if let Some(run) = &agent.run {
            run.bind(inbox.sink(agent.number));
        }
        agent.phase = Phase::Sending(step);
        agent.reins.order(Order::Send(prompt))
    }

    fn send_to_new(&mut self, composed: &Composed, now: Instant) {
        let Some(turn) = &self.active else { return };
        let continuity = Continuity::new();
        let step = continuity.decide(&composed.situation(&turn.request), now);
        let prompt = composed.prompt(&self.making.profile, &turn.request, &step.decision);
        let live = self.new_live(turn);
        let options = composed.options(&turn.request, &self.making.settings);
        self.agents += 1;
        self.stage = Stage::Answer;
        let mut idle = Idle::new(self.making.idle, now);
        idle.lease();
        let reins = (self.start)(self.agents, Arc::clone(&composed.snapshot), options);
        self.agent = Some(Pooled {
            number: self.agents,
            reins,
            run: None,
            phase: Phase::Making(prompt, step),
            continuity,
            live: Some(live),
            idle,
            retired: false,
        });
    }

    fn new_live(&self, turn: &OpenTurn) -> Live {
        Live::new(self.making.pace, self.new_replay(&turn.request), &turn.request.abort)
    }
}

/// Hands one result over, once. `true`: somebody waited for it.
fn settle(run: Option<&crate::run::Run>, live: &mut Live, id: &CallId, result: HostResult) -> bool {
    if !live.outstanding.remove(id) || !live.handed.remove(id) {
        return false;
    }
    run.is_some_and(|run| run.settle(id, result) == crate::run::Settlement::Delivered)
}
