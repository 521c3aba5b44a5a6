//! Owns a session's state: turns in their order, the agent, what waits for what. Synchronous: events in, `now` passed in;
//! it starts agents by a function that it is given, and tests drive it without its task.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;
use toolway_secret::Secret;

use super::driver::{Reins, Told};
use super::gate::Gate;
use super::inbox::{CallEvent, Inbox};
use super::pool::{Phase, Pooled};
use super::turn::OpenTurn;
use crate::agent_port::AgentOptions;
use crate::call::CallId;
use crate::continuity::Cause;
use crate::host_port::{HostEvent, HostPort, NoticeLevel, StopReason};
use crate::live::Pace;
use crate::profile::Profile;
use crate::replay::Records;
use crate::settings::{HostMode, Settings};
use crate::snapshot::Snapshot;

mod answer;
mod begin;
mod calls;
mod compose;
mod ending;
mod shown;

pub(super) use compose::deadlines;

/// Turns that wait for the one before them.
const QUEUED: usize = 32;

/// What a session is made with.
pub(super) struct Making {
    pub(super) scope: Arc<str>,
    pub(super) profile: Profile,
    pub(super) settings: Arc<Settings>,
    pub(super) host: Arc<dyn HostPort>,
    pub(super) pace: Pace,
    pub(super) host_mode: Option<HostMode>,
    pub(super) is_terminal: bool,
    pub(super) own_display_tool: bool,
    pub(super) idle: Duration,
    pub(super) gate: Arc<Gate>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) records: Arc<Mutex<Records>>,
}

/// Starts the task of an agent with that number.
pub(super) type Start = Box<dyn FnMut(u64, Arc<Snapshot>, AgentOptions) -> Reins + Send>;

/// What happened.
#[derive(Debug)]
pub(super) enum Event {
    /// The host asks for a turn.
    Turn(Box<OpenTurn>),
    /// Something happened in the host.
    Host(HostEvent),
    /// Calls came, or are not waited for any more.
    Calls(VecDeque<(u64, CallEvent)>),
    /// An agent's task told something.
    Told(u64, Told),
    /// The host gave something up.
    GivenUp(GivenUp),
    /// The session ends, for that reason.
    Shutdown(String),
    /// Nothing but the time, or room for what the host reads.
    Time,
}

/// What the host gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GivenUp {
    /// A turn that waits, at that place.
    Queued(usize),
    /// The turn that is served.
    Active,
    /// The calls that it runs, between two turns; and what it did not read of the last one.
    Calls,
}

/// What the turn that is served waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// What the agent says.
    Answer,
    /// The agent's next progress, before it gets what the user said meanwhile; at the latest then.
    Steering(Instant),
    /// An agent that stops.
    Rest,
}

/// The state of a session.
pub(super) struct State {
    making: Making,
    start: Start,
    identity: Box<dyn Fn() -> Option<crate::prompt::Digest> + Send>,
    secrets: Box<dyn Fn() -> Vec<Secret> + Send>,
    queue: VecDeque<OpenTurn>,
    active: Option<OpenTurn>,
    stage: Stage,
    agent: Option<Pooled>,
    agents: u64,
    /// Until when what waits in the answer has to wait.
    batch: Option<Instant>,
    /// Results were handed over: the tasks that carry them get the thread first.
    yields: bool,
    closed: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("scope", &self.making.scope)
            .field("queue", &self.queue.len())
            .field("active", &self.active.is_some())
            .field("stage", &self.stage)
            .field("agent", &self.agent)
            .finish_non_exhaustive()
    }
}

impl State {
    pub(super) fn new(
        making: Making,
        start: Start,
        identity: Box<dyn Fn() -> Option<crate::prompt::Digest> + Send>,
        secrets: Box<dyn Fn() -> Vec<Secret> + Send>,
    ) -> Self {
        Self {
            making,
            start,
            identity,
            secrets,
            queue: VecDeque::new(),
            active: None,
            stage: Stage::Answer,
            agent: None,
            agents: 0,
            batch: None,
            yields: false,
            closed: false,
        }
    }

    /// One event, and all that follows from it now.
    pub(super) fn handle(&mut self, event: Event, now: Instant) {
        match event {
            Event::Turn(turn) => self.enqueue(*turn),
            Event::Host(event) => self.host(&event, now),
            Event::Calls(calls) => self.calls(calls, now),
            Event::Told(number, told) => self.told(number, told, now),
            Event::GivenUp(what) => self.given_up(what, now),
            Event::Shutdown(reason) => self.close(&reason, now),
            Event::Time => {}
        }
        self.advance(now);
    }

    fn enqueue(&mut self, mut turn: OpenTurn) {
        if self.closed {
            turn.end(StopReason::Aborted("the session is closed".to_owned()));
        } else if self.queue.len() >= QUEUED {
            turn.end(StopReason::Error("too many turns of this session wait".to_owned()));
        } else {
            return self.queue.push_back(turn);
        }
        turn.flush();
    }

    fn host(&mut self, event: &HostEvent, now: Instant) {
        match event {
            HostEvent::Compaction => self.forget_agent(&Cause::Compaction, now),
            HostEvent::TreeNavigation => self.forget_agent(&Cause::TreeNavigation, now),
            HostEvent::AgentConfiguration => self.reload_agent(),
            HostEvent::AdapterReload | HostEvent::SessionShutdown => self.close(event.reason(), now),
        }
    }

    /// All that can be done without another event.
    fn advance(&mut self, now: Instant) {
        self.times(now);
        loop {
            // Room first: what the queue holds comes only after what is unsent.
            if let Some(turn) = &mut self.active {
                turn.flush();
            }
            self.pump(now);
            let Some(turn) = &mut self.active else {
                if self.closed || !self.next_turn(now) {
                    break;
                }
                continue;
            };
            turn.flush();
            if !turn.has_ended() || turn.has_unsent() && !turn.is_given_up() {
                break;
            }
            self.active = None;
        }
        if let Some(agent) = &mut self.agent {
            let pending = agent.pending();
            agent.idle.pending(pending, now);
        }
    }

    /// What is due.
    fn times(&mut self, now: Instant) {
        let Some(agent) = &self.agent else { return };
        if let Phase::Stopping(until) = agent.phase
            && now >= until
        {
            let late = "the agent did not stop in time";
            if self.stage == Stage::Rest {
                self.send(Some(late), now);
            } else {
                self.let_go(late, now);
            }
            return;
        }
        if agent.idle.deadline().is_some_and(|until| now >= until) && agent.pending() == 0 {
            self.let_go("the agent was idle", now);
        }
    }

    /// When [`Event::Time`] is due.
    pub(super) fn wake(&self) -> Option<Instant> {
        let stage = match self.stage {
            Stage::Steering(until) if self.unread().is_none() && self.served().is_some() => Some(until),
            _ => None,
        };
        let agent = self.agent.as_ref().and_then(|agent| match agent.phase {
            Phase::Stopping(until) => Some(until),
            _ => agent.idle.deadline(),
        });
        let display = self.served().and(self.agent.as_ref()).and_then(Pooled::display_deadline);
        [stage, agent, self.batch, display].into_iter().flatten().min()
    }

    /// The turn whose reader has to take something first.
    pub(super) fn unread(&self) -> Option<&OpenTurn> {
        self.active.as_ref().filter(|turn| turn.has_unsent())
    }

    /// The turn that is served: its reader may go away.
    pub(super) fn served(&self) -> Option<&OpenTurn> {
        self.active.as_ref().filter(|turn| !turn.has_ended())
    }

    /// More of what agents say can be kept.
    pub(super) fn has_room(&self) -> bool {
        self.agent
            .as_ref()
            .and_then(|agent| agent.live.as_ref())
            .is_none_or(|live| live.queue.weight() < Self::KEPT)
    }

    /// What of an answer is kept for a host that does not read, in bytes, before the agent has to wait.
    const KEPT: usize = 1 << 20;

    /// Results were handed over since the last time this was asked.
    pub(super) fn take_yield(&mut self) -> bool {
        std::mem::take(&mut self.yields)
    }

    /// The session is over.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Ready when the host gives up anything.
    pub(super) fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<GivenUp> {
        if let Some(turn) = self.active.as_mut().filter(|turn| !turn.has_ended() || turn.has_unsent()) {
            if turn.poll_abort(cx).is_ready() {
                return Poll::Ready(if turn.has_ended() { GivenUp::Calls } else { GivenUp::Active });
            }
        } else if let Some(live) = self.agent.as_mut().and_then(|agent| agent.live.as_mut())
            && live.abort.poll(cx).is_ready()
        {
            return Poll::Ready(GivenUp::Calls);
        }
        let queued = self.queue.iter_mut().position(|turn| turn.poll_abort(cx).is_ready());
        queued.map_or(Poll::Pending, |at| Poll::Ready(GivenUp::Queued(at)))
    }

    /// Tells the user. A host that panics there does so for itself.
    fn notify(&self, level: NoticeLevel, text: &str) {
        let notify = std::panic::AssertUnwindSafe(|| self.making.host.notify(level, text));
        if std::panic::catch_unwind(notify).is_err() {
            tracing::error!("the host failed to tell its user something");
        }
    }

    /// Calls the host back for a call that it was handed. A host that panics there does so for that call alone.
    fn abort_at_host(&self, id: &CallId, reason: &str) {
        let abort = std::panic::AssertUnwindSafe(|| self.making.host.abort_call(id, reason));
        if std::panic::catch_unwind(abort).is_err() {
            tracing::error!(call = %id, "the host failed to stop a call");
        }
    }
}
