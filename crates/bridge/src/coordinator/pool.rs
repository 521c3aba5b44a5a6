//! Owns the agent that a session keeps: how far it is, what it knows, what of it the host has not seen yet. A session has
//! one: its key holds the session, and an agent that was passed over for a turn has missed what was said.

use std::collections::HashSet;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::driver::Reins;
use super::idle::Idle;
use super::tail::Tail;
use super::turn::Watch;
use crate::agent_port::{AgentEnd, AgentFailure, AgentPrompt, Usage};
use crate::call::CallId;
use crate::continuity::{Continuity, Step};
use crate::live::{LiveQueue, Pace};
use crate::replay::{Card, Replay};
use crate::run::Run;

/// An agent and its run.
#[derive(Debug)]
pub(super) struct Pooled {
    /// Tells it from agents before and after.
    pub(super) number: u64,
    pub(super) reins: Reins,
    /// Its run, when it is there and anything is exposed.
    pub(super) run: Option<Run>,
    pub(super) phase: Phase,
    pub(super) continuity: Continuity,
    /// What it answers now, while the host has not seen all of it.
    pub(super) live: Option<Live>,
    pub(super) idle: Idle,
    /// It is not used for another prompt.
    pub(super) retired: bool,
}

/// How far an agent is.
#[derive(Debug)]
pub(super) enum Phase {
    /// It is being made; then it gets this.
    Making(AgentPrompt, Step),
    /// It has a prompt and did not accept it yet.
    Sending(Step),
    /// It answers.
    Running,
    /// It was told to stop, and has until then.
    Stopping(Instant),
    /// It waits for a prompt.
    Resting,
}

/// What an agent answers to one prompt, and how much of it is with the host.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) queue: LiveQueue<(CallId, Card)>,
    pub(super) replay: Replay,
    /// Calls and cards of the host's last message: by their results the answer is found again.
    pub(super) outstanding: HashSet<CallId>,
    /// Calls that the host was handed and that have no end yet.
    pub(super) handed: HashSet<CallId>,
    /// How the agent ended its answer.
    pub(super) end: Option<End>,
    /// It said something.
    pub(super) spoke: bool,
    /// What it used while no turn was served.
    pub(super) used: Usage,
    /// The host's signal, which counts also while it runs calls between two turns.
    pub(super) abort: Watch,
}

/// How an answer ended.
#[derive(Debug, Clone)]
pub(super) enum End {
    Finished,
    Failed(AgentFailure),
    Cancelled,
}

impl From<&AgentEnd> for End {
    fn from(end: &AgentEnd) -> Self {
        match end {
            AgentEnd::Finished(_) => Self::Finished,
            AgentEnd::Failed(failure) => Self::Failed(failure.clone()),
            AgentEnd::Cancelled => Self::Cancelled,
        }
    }
}

impl Live {
    pub(super) fn new(pace: Pace, replay: Replay, abort: &CancellationToken) -> Self {
        Self {
            queue: LiveQueue::new(pace),
            replay,
            outstanding: HashSet::new(),
            handed: HashSet::new(),
            end: None,
            spoke: false,
            used: Usage::default(),
            abort: Watch::new(abort),
        }
    }

    /// The conversation goes on where this answer was left. A conversation that ends with results of other calls, such as
    /// a fork that inherited old ids, is not this one.
    pub(super) fn continues(&self, tail: &Tail) -> bool {
        tail.results.iter().any(|(id, _)| self.outstanding.contains(id))
    }
}

impl Pooled {
    /// How many of its calls wait for the host.
    pub(super) fn pending(&self) -> usize {
        self.run.as_ref().map_or(0, Run::pending)
    }

    /// Rejects whatever waits, and what comes from now on.
    pub(super) fn reject_calls(&self, reason: &str) {
        if let Some(run) = &self.run {
            run.cancel_all(reason);
            run.detach();
        }
    }
}
