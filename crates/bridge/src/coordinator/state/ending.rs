//! Owns the ends: of a turn that is given up, of an agent that is let go, of the session. Calls are rejected before
//! anything else is taken down.

use std::time::Duration;

use tokio::time::Instant;

use super::{GivenUp, Stage, State};
use crate::continuity::Cause;
use crate::coordinator::driver::Order;
use crate::coordinator::pool::Phase;
use crate::host_port::StopReason;
use crate::replay::RunEnd;

/// How long an agent that was cancelled may take before another one is made.
const STOPPING: Duration = Duration::from_secs(5);
/// What a host's abort is to agents and turns.
const ABORTED: &str = "the host aborted the turn";

impl State {
    /// The host gave something up.
    pub(super) fn given_up(&mut self, what: GivenUp, now: Instant) {
        match what {
            GivenUp::Queued(at) => {
                if let Some(turn) = self.queue.remove(at) {
                    self.never_begun(turn, now);
                }
            }
            GivenUp::Active => {
                self.last_traces(RunEnd::Aborted);
                if let Some(turn) = &mut self.active {
                    turn.end(StopReason::Aborted(ABORTED.to_owned()));
                }
                self.stage = Stage::Answer;
                self.stop_agent(now);
            }
            GivenUp::Calls => self.stop_agent(now),
        }
    }

    /// Ends what the agent does now. It is kept, if it stops.
    pub(super) fn stop_agent(&mut self, now: Instant) {
        self.reject_calls(ABORTED, now);
        let Some(agent) = &mut self.agent else { return };
        agent.live = None;
        agent.idle.release(now);
        match agent.phase {
            // Nothing was said to it: it need not exist.
            Phase::Making(..) => self.let_go(ABORTED, now),
            Phase::Sending(_) | Phase::Running => {
                let told = agent.reins.order(Order::Cancel);
                // What it was sent is not sure to be in its memory.
                if matches!(agent.phase, Phase::Sending(_)) || !told {
                    return self.let_go(ABORTED, now);
                }
                agent.phase = Phase::Stopping(now + STOPPING);
            }
            Phase::Stopping(_) | Phase::Resting => {}
        }
    }

    /// Lets the agent go with its run. An answer that the host has not seen whole is gone with it.
    pub(super) fn let_go(&mut self, reason: &str, now: Instant) {
        self.reject_calls(reason, now);
        self.last_traces(RunEnd::Drained);
        self.batch = None;
        if let Some(agent) = self.agent.take() {
            tracing::debug!(scope = %self.making.scope, agent = agent.number, reason, "an agent is let go");
            agent.reins.let_go(reason);
            self.making.gate.set_run(None);
        }
    }

    /// Its knowledge of the conversation is void. While a turn is served it serves that to its end.
    pub(super) fn forget_agent(&mut self, cause: &Cause, now: Instant) {
        let is_served = self.served().is_some();
        match &mut self.agent {
            Some(agent) if is_served => {
                agent.continuity.broken(cause.clone());
                agent.retired = true;
            }
            Some(_) => self.let_go(&cause.to_string(), now),
            None => {}
        }
    }

    pub(super) fn reload_agent(&mut self) {
        if let Some(agent) = &self.agent
            && !agent.reins.order(Order::Reload)
        {
            tracing::debug!(agent = agent.number, "an agent takes no orders");
        }
    }

    /// The end of the session: everything that waits hears of it, in this order: calls, turns, agent.
    pub(super) fn close(&mut self, reason: &str, now: Instant) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        self.making.gate.close();
        self.let_go(reason, now);
        let turns = self.active.iter_mut().chain(&mut self.queue);
        for turn in turns {
            turn.end(StopReason::Aborted(reason.to_owned()));
            turn.flush();
        }
        self.active = None;
        self.queue.clear();
    }
}
