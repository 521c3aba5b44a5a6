//! Owns what every store decides alike: whether a run begins, and what a write changes. No I/O.

use std::collections::BTreeMap;

use super::{AgentChange, AgentRecord, Begin, Page, Presence, RunChange, RunRecord, form};
use crate::error::AgentError;
use crate::event::{Event, EventKind, RunStatus};
use crate::id::{AgentId, RunId};

/// The code of a run that another one was forced in place of.
pub(super) const FORCED: &str = "force_send";

/// What is known when a run is to begin.
pub(super) struct Known {
    /// The agent, if it is there.
    pub(super) agent: Option<AgentRecord>,
    /// Its run that may not be over.
    pub(super) active: Option<RunRecord>,
    /// The run with the same key.
    pub(super) same: Option<RunRecord>,
    /// The turn of its last run.
    pub(super) turn: u64,
}

/// What is to be done.
pub(super) enum Decision {
    /// To keep these, in this order.
    Start(Box<Start>),
    Same(Box<RunRecord>),
    Busy(RunId),
    Archived,
    NoAgent,
    Exists,
}

/// A run that begins.
pub(super) struct Start {
    /// The run that is given up, and its last event.
    pub(super) expired: Option<(RunRecord, String)>,
    pub(super) agent: AgentRecord,
    pub(super) run: RunRecord,
}

pub(super) fn decide(known: Known, begin: &Begin) -> Decision {
    let mut agent = match (known.agent, begin.presence) {
        (None, Presence::Known) => return Decision::NoAgent,
        (Some(_), Presence::New) => return Decision::Exists,
        (None, _) => begin.agent.clone(),
        (Some(agent), _) => agent,
    };
    if let Some(same) = known.same {
        return Decision::Same(Box::new(same));
    }
    if agent.archived {
        return Decision::Archived;
    }
    let mut expired = None;
    if let Some(mut active) = known.active.filter(|run| !run.status.is_terminal()) {
        let Some(reason) = &begin.force else { return Decision::Busy(active.id) };
        active.status = RunStatus::Expired;
        active.error = Some((FORCED.to_owned(), reason.clone()));
        active.duration = (begin.at - active.created_at).try_into().ok();
        let kind = EventKind::Status { status: RunStatus::Expired, message: Some(reason.clone()) };
        let event = Event { agent_id: agent.id.clone(), run_id: active.id.clone(), kind };
        expired = Some((active, event.to_json()));
    }
    agent.active_run = Some(begin.run.clone());
    agent.updated_at = begin.at;
    let run = RunRecord {
        id: begin.run.clone(),
        agent: agent.id.clone(),
        turn: known.turn + 1,
        status: RunStatus::Creating,
        model: begin.model.clone(),
        result: None,
        error: None,
        usage: None,
        cost: None,
        created_at: begin.at,
        duration: None,
        idempotency: begin.idempotency.clone(),
    };
    Decision::Start(Box::new(Start { expired, agent, run }))
}

/// The run as it is after the change.
pub(super) fn changed(run: &mut RunRecord, change: &RunChange) {
    run.status = change.status;
    if change.status.is_terminal() {
        run.result.clone_from(&change.result);
        run.error.clone_from(&change.error);
        run.usage = change.usage;
        run.cost = change.cost;
        run.duration = change.duration;
    }
}

/// The agent as it is when that run is over.
pub(super) fn over(agent: &mut AgentRecord, run: &RunId) {
    if agent.active_run.as_ref() == Some(run) {
        agent.active_run = None;
    }
    agent.updated_at = form::now();
}

pub(super) fn change_agent(agent: &mut AgentRecord, change: &AgentChange) {
    match change {
        AgentChange::Archived(archived) => agent.archived = *archived,
        AgentChange::Name(name) => agent.name.clone_from(name),
    }
    agent.updated_at = form::now();
}

/// An event does not follow on the last one: a defect, and never to be kept.
pub(super) fn gap(run: &RunId, last: u64, offset: u64) -> AgentError {
    AgentError::Store {
        message: format!("event {offset} of {run} does not follow on event {last}: nothing was kept"),
    }
}

/// Agents and runs in memory.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) agents: BTreeMap<AgentId, AgentRecord>,
    pub(super) runs: BTreeMap<RunId, RunRecord>,
}

impl Book {
    pub(super) fn known(&self, begin: &Begin) -> Known {
        let agent = self.agents.get(&begin.agent.id).cloned();
        let active = agent.as_ref().and_then(|agent| self.runs.get(agent.active_run.as_ref()?)).cloned();
        let of_agent = || self.runs.values().filter(|run| run.agent == begin.agent.id);
        let same = begin.idempotency.as_ref();
        let same = same.and_then(|key| of_agent().find(|run| run.idempotency.as_ref() == Some(key))).cloned();
        let turn = of_agent().map(|run| run.turn).max().unwrap_or_default();
        Known { agent, active, same, turn }
    }

    pub(super) fn list_agents(&self, page: &Page) -> Vec<AgentRecord> {
        let mut all: Vec<_> = self
            .agents
            .values()
            .filter(|agent| page.include_archived || !agent.archived)
            .filter(|agent| page.after.as_ref().is_none_or(|after| agent.cursor() < *after))
            .collect();
        all.sort_by_key(|agent| std::cmp::Reverse(agent.cursor()));
        all.into_iter().take(page.limit).cloned().collect()
    }

    pub(super) fn list_runs(&self, agent: &AgentId, page: &Page) -> Vec<RunRecord> {
        let mut all: Vec<_> = self
            .runs
            .values()
            .filter(|run| run.agent == *agent)
            .filter(|run| page.after.as_ref().is_none_or(|after| run.cursor() < *after))
            .collect();
        all.sort_by_key(|run| std::cmp::Reverse(run.turn));
        all.into_iter().take(page.limit).cloned().collect()
    }

    pub(super) fn remove(&mut self, id: &AgentId) -> Option<AgentRecord> {
        self.runs.retain(|_, run| run.agent != *id);
        self.agents.remove(id)
    }
}
