//! Owns the calls on their way: what runs tell becomes notifications, what the host answers goes to the runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::time::Instant;

use super::answers::{
    Admitted, CallCancelled, CallStarted, CallsStarted, DiagnosticShown, ProgressTaken, Settled,
};
use super::connection::{Connection, Done, LiveRun, Outcome, Reply};
use super::fault::Fault;
use super::inbox::Arrival;
use super::lines::LINE_BYTES;
use super::message::notification;
use super::outbox::Outgoing;
use super::requests::{CallProgress, CallResult, FailCall, OfCall};
use crate::call::{CallId, HostCall, HostResult, Rejection, RejectionKind};
use crate::live::{Emit, LiveItem, Poll};
use crate::run::{NO_LONGER_PENDING, Progress, Settlement};

/// How long a host may take for another end of a call, where its first one was too long for a line.
const SECOND_CHANCE: Duration = Duration::from_secs(5);

impl Connection {
    /// Takes what the runs have told.
    pub(super) fn on_arrivals(&mut self, now: Instant) {
        let arrivals = self.inbox.take();
        for arrival in arrivals {
            match arrival {
                Arrival::Started { run, call } => self.start(&run, call, now),
                Arrival::Cancelled { run, call, reason } => self.cancelled(&run, &call, reason),
                Arrival::Diagnostic(event) => self.diagnostic(&event),
                told => self.told_by_turns(told),
            }
        }
        self.on_time(now);
    }

    fn start(&mut self, run: &str, call: HostCall, now: Instant) {
        let Some(live) = self.runs.get_mut(run) else {
            // The run was closed in between, and the call with it.
            return self.inbox.left(&call);
        };
        let (Some(session), Some(spoken)) = (self.sessions.get(&live.session), &self.spoken) else {
            return self.inbox.left(&call);
        };
        if !session.activates(&call.tool, spoken) {
            return live.queue.push(LiveItem::Call(call), now);
        }
        // Toolway itself is the one that activates a skill.
        self.inbox.left(&call);
        let (list, owner, run) = (session.skills().list().clone(), live.session.clone(), live.run.clone());
        self.answer_activation(owner, list, run, call);
    }

    /// A call is over, and not by the host. Where the host was told of it, it is told of the end.
    fn cancelled(&mut self, run: &str, call: &CallId, reason: String) {
        let Some(live) = self.runs.get_mut(run) else { return };
        if live.told.remove(call) {
            let told = CallCancelled {
                session: live.session.clone(),
                run: run.to_owned(),
                call: call.to_string(),
                reason,
            };
            self.notify("call/cancelled", &told);
        }
    }

    fn diagnostic(&mut self, event: &Value) {
        let Some(left_out) = self.outbox.room() else { return };
        let run = event.get("runId").and_then(Value::as_str);
        let of_run = run.and_then(|run| self.runs.get(run)).map(|live| live.session.clone());
        let session = of_run.or_else(|| run.and_then(|run| self.turns.session_of_run(run)));
        self.notify("diagnostic", &DiagnosticShown { session, event: event.clone(), left_out });
    }

    /// Moves the calls that have waited long enough.
    pub(super) fn on_time(&mut self, now: Instant) {
        for (id, live) in &mut self.runs {
            let LiveRun { queue, run, .. } = live;
            if queue.is_empty() {
                continue;
            }
            // Asked by hand: what the queue would drop has a place to give back.
            while let Poll::Emit(emit) = queue.poll(now, |_| true) {
                if let Emit::Calls(calls) = emit {
                    let (open, gone): (Vec<_>, Vec<_>) =
                        calls.into_iter().partition(|call| run.admit(&call.id).is_ok());
                    for call in &gone {
                        self.inbox.left(call);
                    }
                    if !open.is_empty() {
                        self.outbox.calls(id.clone(), open);
                    }
                }
            }
        }
        self.give_up_doomed(now);
        self.display_on_time(now);
    }

    /// When something has waited long enough.
    pub(super) fn next_time(&mut self, now: Instant) -> Option<Instant> {
        // What is due goes first: from here on no queue has anything to give at this moment.
        self.on_time(now);
        let waits =
            self.runs.values_mut().filter(|live| !live.queue.is_empty()).filter_map(|live| {
                match live.queue.poll(now, |_| true) {
                    Poll::Wait(until) => Some(until),
                    _ => None,
                }
            });
        let earliest = waits.min();
        let doomed = self.doomed.front().map(|(at, _)| *at);
        earliest.into_iter().chain(self.display.next_time()).chain(doomed).min()
    }

    /// The next line for the host. Calls that ended while they waited are left out.
    pub(super) fn next_line(&mut self) -> Option<Bytes> {
        while let Some(outgoing) = self.outbox.pop() {
            let (id, calls) = match outgoing {
                Outgoing::Line(line) => return Some(line),
                Outgoing::Calls { run, calls } => (run, calls),
            };
            for call in &calls {
                self.inbox.left(call);
            }
            let Some(live) = self.runs.get_mut(&id) else { continue };
            let open: Vec<HostCall> =
                calls.into_iter().filter(|call| live.run.admit(&call.id).is_ok()).collect();
            if open.is_empty() {
                continue;
            }
            live.told.extend(open.iter().map(|call| call.id.clone()));
            let calls = open.into_iter().map(|call| CallStarted {
                call: call.id.to_string(),
                tool: call.tool,
                name: call.mcp_name,
                arguments: call.arguments,
            });
            let started = CallsStarted { session: live.session.clone(), run: id, calls: calls.collect() };
            return Some(notification("calls/started", &started));
        }
        None
    }

    /// The end of that call was too long for a line. The host was told so; what it sends instead is waited for, but not
    /// for long.
    pub(super) fn doom(&mut self, call: Option<String>, now: Instant) {
        let Some(call) = call.map(|call| CallId::new(&call)) else { return };
        if self.owner(&call).is_some_and(|live| live.told.contains(&call)) {
            self.doomed.push_back((now + SECOND_CHANCE, call));
        }
    }

    fn give_up_doomed(&mut self, now: Instant) {
        while let Some((_, call)) = self.doomed.pop_front_if(|(at, _)| *at <= now) {
            if let Some(live) = self.owner(&call).filter(|live| live.told.contains(&call)) {
                let reason = format!("the host's result is longer than the {LINE_BYTES} bytes of a line");
                live.run.abort(&call, &reason);
            }
        }
    }

    fn owner(&mut self, call: &CallId) -> Option<&mut LiveRun> {
        self.runs.values_mut().find(|live| live.run.owns(call))
    }

    fn settled(&mut self, call: &CallId, end: impl FnOnce(&LiveRun) -> Settlement) -> Result<Reply, Fault> {
        let settled = self.owner(call).is_some_and(|live| {
            // An id that the host was not told of is one that it guessed.
            let settled = live.told.contains(call) && end(live) == Settlement::Delivered;
            if settled {
                live.told.remove(call);
            }
            settled
        });
        Reply::now(Settled { settled })
    }

    pub(super) fn call_result(&mut self, params: CallResult) -> Result<Reply, Fault> {
        let CallResult { call, content, is_error } = params;
        let call = CallId::new(&call);
        self.settled(&call, |live| live.run.settle(&call, HostResult { content, is_error }))
    }

    pub(super) fn call_fail(&mut self, params: FailCall) -> Result<Reply, Fault> {
        let call = CallId::new(&params.call);
        let rejection = Rejection { kind: RejectionKind::Error, reason: params.reason };
        self.settled(&call, |live| live.run.fail(&call, rejection))
    }

    pub(super) fn call_progress(&mut self, params: CallProgress) -> Result<Reply, Fault> {
        let CallProgress { call, progress, total, message } = params;
        for (member, number) in [("progress", Some(&progress)), ("total", total.as_ref())] {
            if number.is_some_and(|number| !matches!(number.bytes().first(), Some(b'-' | b'0'..=b'9'))) {
                return Err(Fault::field(member, "a number is wanted"));
            }
        }
        let call = CallId::new(&call);
        let progress = Progress { progress, total, message };
        let accepted = self.owner(&call).is_some_and(|live| {
            let open = live.told.contains(&call) && live.run.admit(&call).is_ok();
            if open {
                live.run.progress(&call, &progress);
            }
            open
        });
        let of_turn = self.turns.owner(&call).filter(|session| session.admit(&call).is_ok());
        if let Some(session) = of_turn {
            session.progress(&call, &progress);
        }
        Reply::now(ProgressTaken { accepted: accepted || of_turn.is_some() })
    }

    pub(super) fn call_admit(&mut self, params: &OfCall) -> Result<Reply, Fault> {
        let call = CallId::new(&params.call);
        let of_turn = self.turns.owner(&call).map(|session| session.admit(&call).err());
        let refused = match self.owner(&call) {
            Some(live) => live.run.admit(&call).err(),
            None if of_turn.is_some() => of_turn.flatten(),
            None if call.is_of_bridge() => Some(NO_LONGER_PENDING.to_owned()),
            // The host's own calls are none of the bridge's business.
            None => None,
        };
        Reply::now(Admitted { admitted: refused.is_none(), reason: refused })
    }

    /// All calls are given up, everywhere.
    pub(super) fn give_up(&mut self, reason: &str) {
        for live in self.runs.values() {
            live.run.cancel_all(reason);
        }
    }

    /// Everything is closed; ends when no port is left.
    pub(super) fn shut(&mut self, reason: &str) {
        self.shut_turns(reason);
        let reason: Arc<str> = reason.into();
        for session in self.sessions.values() {
            for bridge in &session.bridges {
                let (bridge, reason) = (bridge.clone(), Arc::clone(&reason));
                self.work.spawn(async move {
                    bridge.shutdown(&reason).await;
                    Done { id: None, outcome: Outcome::Shutdown }
                });
            }
        }
    }
}
