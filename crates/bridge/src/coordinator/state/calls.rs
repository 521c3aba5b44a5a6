//! Owns what becomes of bridge calls on their way from run to host, and of those that nobody waits for any more.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::State;
use crate::call::{CallId, HostCall, Rejection, RejectionKind};
use crate::coordinator::inbox::CallEvent;
use crate::live::LiveItem;

impl State {
    /// Calls that came, and calls that are given up, of any agent of this session.
    pub(super) fn calls(&mut self, events: VecDeque<(u64, CallEvent)>, now: Instant) {
        let mut cancelled = false;
        for (number, event) in events {
            match event {
                CallEvent::Started(call) => self.call_started(number, call, now),
                CallEvent::Cancelled(id, reason) => {
                    cancelled = true;
                    self.call_cancelled(number, &id, &reason);
                }
            }
        }
        if cancelled {
            self.forget_stale();
        }
    }

    /// What a client asked for and gave up again is not kept until the host asks for it.
    fn forget_stale(&mut self) {
        let Some(agent) = &mut self.agent else { return };
        if let Some(live) = &mut agent.live {
            let run = agent.run.as_ref();
            live.queue.forget_stale(|id| run.is_some_and(|run| run.admit(id).is_ok()));
        }
    }

    fn call_started(&mut self, number: u64, call: HostCall, now: Instant) {
        let Some(agent) = self.agent.as_mut().filter(|agent| agent.number == number) else { return };
        match &mut agent.live {
            Some(live) if live.end.is_none() => live.queue.push(LiveItem::Call(call), now),
            _ => {
                if let Some(run) = &agent.run {
                    let reason = "no active live run".to_owned();
                    run.fail(&call.id, Rejection { kind: RejectionKind::Cancelled, reason });
                }
            }
        }
    }

    /// The host hears of it if it was handed the call; what is queued still is dropped by the queue.
    fn call_cancelled(&mut self, number: u64, id: &CallId, reason: &str) {
        let live =
            self.agent.as_mut().filter(|agent| agent.number == number).and_then(|agent| agent.live.as_mut());
        if live.is_some_and(|live| live.handed.remove(id)) {
            self.abort_at_host(id, reason);
        }
    }

    /// Rejects whatever of the agent's calls waits, and stops what the host runs for it, before anything else happens.
    pub(super) fn reject_calls(&mut self, reason: &str, now: Instant) {
        let Some(agent) = &self.agent else { return };
        agent.reject_calls(reason);
        let events = self.making.inbox.take();
        self.calls(events, now);
        // A run that told nothing of a call that the host was handed: the host is told all the same.
        let left = self.agent.as_mut().and_then(|agent| agent.live.as_mut());
        let left: Vec<CallId> = left.map(|live| live.handed.drain().collect()).unwrap_or_default();
        for id in left {
            self.abort_at_host(&id, reason);
        }
    }
}
