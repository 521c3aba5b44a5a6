//! Owns what can be done with agents of this machine without a handle: listing, reading, archiving, removing.

use std::time::Duration;

use tokio::time::timeout;

use super::detached::Detached;
use super::observe;
use crate::error::AgentError;
use crate::event::EventKind;
use crate::id::{AgentId, RunId};
use crate::options::AgentOptions;
use crate::run::{Observed, Run};
use crate::runtime::UsageReport;
use crate::store::{AgentChange, AgentRecord, Cursor, Keeper, Page, RunRecord, StoreChoice, blocking};

/// How long an agent's run may take to end before the agent is removed.
const END: Duration = Duration::from_secs(10);

/// A part of the list of agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentList {
    /// Agents, the youngest first.
    pub items: Vec<AgentRecord>,
    /// Where the next part begins, if there is more.
    pub next: Option<Cursor>,
}

/// A part of the list of an agent's runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunList {
    /// Runs, the youngest first.
    pub items: Vec<RunRecord>,
    /// Where the next part begins, if there is more.
    pub next: Option<Cursor>,
}

/// Opens the store of an agent with these options.
pub(super) async fn open(options: &AgentOptions) -> Result<Keeper, AgentError> {
    let choice = options.local_options().map_or(StoreChoice::Default, |local| local.store.clone());
    let state_dir = options.machine.state_dir();
    blocking(move || choice.open(state_dir)).await.map(Keeper::new)
}

/// The agents of a store.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    keeper: Keeper,
}

impl Shelf {
    pub(crate) async fn open(options: &AgentOptions) -> Result<Self, AgentError> {
        open(options).await.map(Self::of)
    }

    pub(crate) fn of(keeper: Keeper) -> Self {
        Self { keeper }
    }

    pub(crate) fn keeper(&self) -> Keeper {
        self.keeper.clone()
    }

    fn no_agent(&self, id: &AgentId) -> AgentError {
        AgentError::AgentNotFound { agent: id.clone(), store: self.keeper.place() }
    }

    pub(crate) async fn list(&self, page: Page) -> Result<AgentList, AgentError> {
        let limit = page.limit;
        let items = self.keeper.call(move |store| store.agents(&page)).await?;
        let next = items.last().filter(|_| items.len() == limit).map(AgentRecord::cursor);
        Ok(AgentList { items, next })
    }

    pub(crate) async fn get(&self, id: &AgentId) -> Result<AgentRecord, AgentError> {
        let wanted = id.clone();
        let record = self.keeper.call(move |store| store.agent(&wanted)).await?;
        record.ok_or_else(|| self.no_agent(id))
    }

    pub(crate) async fn runs(&self, id: &AgentId, page: Page) -> Result<RunList, AgentError> {
        self.get(id).await?;
        let (limit, id) = (page.limit, id.clone());
        let items = self.keeper.call(move |store| store.runs(&id, &page)).await?;
        let next = items.last().filter(|_| items.len() == limit).map(RunRecord::cursor);
        Ok(RunList { items, next })
    }

    pub(crate) async fn run(&self, agent: &AgentId, run: &RunId) -> Result<Run, AgentError> {
        let id = run.clone();
        let record = self.keeper.call(move |store| store.run(&id)).await?;
        let record = record.filter(|record| record.agent == *agent);
        let record =
            record.ok_or_else(|| AgentError::RunNotFound { agent: agent.clone(), run: run.clone() })?;
        Ok(Detached::run(self.keeper.clone(), record))
    }

    pub(crate) async fn change(&self, id: &AgentId, change: AgentChange) -> Result<(), AgentError> {
        let wanted = id.clone();
        if self.keeper.call(move |store| store.change(&wanted, &change)).await? {
            return Ok(());
        }
        Err(self.no_agent(id))
    }

    /// Cancels what is on its way, then removes everything.
    pub(crate) async fn delete(&self, id: &AgentId) -> Result<(), AgentError> {
        if let Some(active) = self.get(id).await?.active_run {
            let run = self.run(id, &active).await?;
            timeout(END, run.cancel()).await.ok();
        }
        let wanted = id.clone();
        if self.keeper.call(move |store| store.delete(&wanted)).await? {
            return Ok(());
        }
        Err(self.no_agent(id))
    }

    async fn all_runs(&self, id: &AgentId) -> Result<Vec<RunRecord>, AgentError> {
        let (mut page, mut all) = (Page::default(), Vec::new());
        loop {
            let part = self.runs(id, page.clone()).await?;
            all.extend(part.items);
            if part.next.is_none() {
                all.reverse();
                return Ok(all);
            }
            page.after = part.next;
        }
    }

    pub(crate) async fn usage(&self, id: &AgentId, run: Option<RunId>) -> Result<UsageReport, AgentError> {
        let mut runs = self.all_runs(id).await?;
        if let Some(run) = run {
            runs.retain(|record| record.id == run);
            if runs.is_empty() {
                return Err(AgentError::RunNotFound { agent: id.clone(), run });
            }
        }
        let mut report = UsageReport { cost: Some(0.0), ..UsageReport::default() };
        for record in runs {
            // A run without tokens was never sent anywhere.
            let cost = record.cost.or_else(|| record.usage.is_none().then_some(0.0));
            report.cost = report.cost.zip(cost).map(|(sum, cost)| sum + cost);
            let usage = record.usage.unwrap_or_default();
            report.usage += usage;
            report.runs.push((record.id, usage));
        }
        Ok(report)
    }

    /// What the user and the model said, run by run, with the place of each message in its run.
    pub(crate) async fn messages(&self, id: &AgentId) -> Result<Vec<Observed>, AgentError> {
        let mut messages = Vec::new();
        for run in self.all_runs(id).await? {
            let all = observe::all(&self.keeper, &run.id).await?;
            messages.extend(all.into_iter().filter(|observed| {
                matches!(observed.event.kind, EventKind::User { .. } | EventKind::Assistant { .. })
            }));
        }
        Ok(messages)
    }
}
