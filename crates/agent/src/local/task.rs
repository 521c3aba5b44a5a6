//! Owns the execution of one run: servers, the first message, the engine, its end, whatever ends it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::live::Live;
use super::observe::{self, POLL};
use crate::engine::{Checkpoint, Engine, EngineTurn, Steering, TurnEnd, TurnStop};
use crate::error::AgentError;
use crate::event::{EventKind, RunStatus, SystemInit, ToolCallEvent, ToolCallStatus};
use crate::generation::{Generation, Generations};
use crate::id::RunId;
use crate::options::{AgentDefinition, Limits, Mode, ModelChoice, Prompt, SendOptions, ServerChange};
use crate::redact::{Given, Redactors};
use crate::run::RunSource as _;
use crate::store::{Claim, Keeper, Page, RunChange};

/// Runs before this one that are looked at for calls whose end is not known.
const BEFORE: usize = 8;

/// All that one run needs.
pub(super) struct Task {
    pub(super) live: Arc<Live>,
    pub(super) engine: Arc<dyn Engine>,
    pub(super) generations: Arc<Generations>,
    pub(super) prompt: Prompt,
    pub(super) send: SendOptions,
    pub(super) model: ModelChoice,
    pub(super) mode: Mode,
    pub(super) limits: Limits,
    /// Subagents whose servers have to be there.
    pub(super) agents: BTreeMap<String, AgentDefinition>,
    pub(super) cwd: std::path::PathBuf,
    pub(super) steering: Steering,
    /// Said in the first message, beside what is wrong with files.
    pub(super) notes: Vec<String>,
    /// A run of this process that was given up for this one.
    pub(super) before: Option<Arc<Live>>,
    /// What no text may repeat, before servers are known.
    pub(super) given: Given,
    /// Held to the end of the run.
    pub(super) claim: Claim,
}

impl Task {
    /// To the end of the run, whatever happens.
    pub(super) async fn run(mut self) {
        let live = Arc::clone(&self.live);
        let mut writing = JoinSet::new();
        writing.spawn(Arc::clone(&live.writer).run(live.keeper.clone(), live.id().clone()));
        let end = self.execute().await;
        live.end(end).await;
        // Whoever asks from now on finds the run over; until then nobody else may take it for dead.
        drop(self.claim);
    }

    async fn execute(&mut self) -> RunChange {
        if let Some(before) = &self.before {
            before.cancel.cancel();
            // An engine executes one prompt at a time.
            timeout(self.engine.grace() * 2, before.wait()).await.ok();
        }
        let servers = match self.generations.for_run(&self.send).await {
            Ok(servers) => servers,
            Err(error) => {
                self.live.tell(EventKind::System(Box::new(self.init(None))), None);
                return failed(&error);
            }
        };
        let mut given = std::mem::take(&mut self.given);
        given.secrets.extend(servers.secrets());
        self.live.redact(Redactors::new(given));
        match self.engine.prepare().await {
            Ok(told) => self.notes.extend(told),
            Err(error) => {
                self.live.tell(EventKind::System(Box::new(self.init(Some(&servers)))), None);
                return failed(&error);
            }
        }
        if let Err(error) = servers.check_subagents(&self.agents) {
            self.live.tell(EventKind::System(Box::new(self.init(Some(&servers)))), None);
            return failed(&error);
        }
        let cancel = self.live.cancel.clone();
        let is_ready = tokio::select! {
            () = servers.ready() => true,
            () = cancel.cancelled() => false,
        };
        self.live.tell(EventKind::System(Box::new(self.init(Some(&servers)))), None);
        self.live.is_running();
        self.live.tell(EventKind::User { text: self.prompt.text.clone() }, None);
        if !is_ready {
            return cancelled();
        }
        let end = match self.turn(servers).await {
            Ok(turn) => self.drive(turn).await,
            Err(error) => Some(Err(error)),
        };
        match end {
            Some(Ok(end)) => ended(end),
            Some(Err(_)) if cancel.is_cancelled() => cancelled(),
            Some(Err(error)) => failed(&error),
            None => cancelled(),
        }
    }

    /// The engine executes the prompt. `None`: it did not stop when it was told to.
    async fn drive(&self, turn: EngineTurn) -> Option<Result<TurnEnd, AgentError>> {
        let (engine, live) = (Arc::clone(&self.engine), Arc::clone(&self.live));
        let mut work = JoinSet::new();
        work.spawn(async move { engine.run(turn, live).await });
        let mut looks = interval(POLL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = work.join_next() => return Some(match done {
                    Some(Ok(end)) => end,
                    _ => Err(AgentError::Runtime { message: "the engine broke off".to_owned() }),
                }),
                () = self.live.writer.stopped.cancelled() => {
                    self.live.cancel.cancel();
                    return stop(&mut work, self.engine.grace()).await;
                }
                () = self.live.cancel.cancelled() => return stop(&mut work, self.engine.grace()).await,
                _ = looks.tick() => {
                    let id = self.live.id().clone();
                    let asked = self.live.keeper.call(move |store| store.is_cancel_asked(&id)).await;
                    if asked.unwrap_or_default() {
                        self.live.cancel.cancel();
                    }
                }
            }
        }
    }

    async fn turn(&mut self, servers: Arc<Generation>) -> Result<EngineTurn, AgentError> {
        let live = Arc::clone(&self.live);
        let agent = live.agent().clone();
        let kept = agent.clone();
        let checkpoint = live.keeper.call(move |store| store.checkpoint(&kept)).await?;
        let interrupted = interrupted(&live.keeper, live.agent(), live.id()).await?;
        Ok(EngineTurn {
            agent,
            run: live.id().clone(),
            prompt: self.prompt.clone(),
            model: self.model.clone(),
            mode: self.mode,
            cwd: self.cwd.clone(),
            servers,
            checkpoint: checkpoint.map(Checkpoint),
            interrupted,
            limits: self.limits.clone(),
            steering: std::mem::replace(&mut self.steering, Steering::none()),
            cancel: live.cancel.clone(),
        })
    }

    fn init(&self, servers: Option<&Generation>) -> SystemInit {
        let mut diagnostics = servers.map(Generation::diagnostics).unwrap_or_default();
        diagnostics.extend(self.notes.iter().cloned());
        SystemInit {
            model: Some(self.model.id.clone()).filter(|model| !model.is_empty()),
            runtime: self.engine.name().to_owned(),
            cwd: Some(self.cwd.display().to_string()),
            tools: self.engine.tools(),
            mcp_tools: servers.map(Generation::pairs).unwrap_or_default(),
            mcp_servers: servers.map(Generation::reports).unwrap_or_default(),
            diagnostics,
        }
    }
}

/// Waits for work that was told to stop, for as long as it may take; then it is dropped.
async fn stop(
    work: &mut JoinSet<Result<TurnEnd, AgentError>>,
    grace: Duration,
) -> Option<Result<TurnEnd, AgentError>> {
    tokio::select! {
        biased;
        done = work.join_next() => match done {
            Some(Ok(end)) => Some(end),
            _ => None,
        },
        () = sleep(grace) => {
            work.abort_all();
            None
        }
    }
}

/// What a prompt that brings other servers replaces.
pub(super) fn replaced(send: &SendOptions, own: &[&str]) -> Option<String> {
    let list = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let own = list(own.to_vec());
    match &send.mcp_servers {
        ServerChange::Inherit => None,
        ServerChange::None => Some("this run has no servers, as its prompt asked for".to_owned()),
        ServerChange::Replace(servers) => Some(format!(
            "this run has the servers that came with its prompt ({}) in place of those the agent was made with ({own})",
            list(servers.names().collect())
        )),
    }
}

/// Calls of the runs before that began and of whose end nothing is known.
async fn interrupted(
    keeper: &Keeper,
    agent: &crate::id::AgentId,
    this: &RunId,
) -> Result<Vec<ToolCallEvent>, AgentError> {
    let agent = agent.clone();
    let page = Page { limit: BEFORE, ..Page::default() };
    let runs = keeper.call(move |store| store.runs(&agent, &page)).await?;
    let mut found = Vec::new();
    for run in runs.iter().filter(|run| run.id != *this) {
        if run.status == RunStatus::Finished {
            break;
        }
        let mut open: Vec<ToolCallEvent> = Vec::new();
        for observed in observe::all(keeper, &run.id).await? {
            if let EventKind::ToolCall(call) = observed.event.kind {
                open.retain(|known| known.call_id != call.call_id);
                if call.status == ToolCallStatus::Running {
                    open.push(call);
                }
            }
        }
        found.splice(0..0, open);
        if run.status != RunStatus::Expired {
            break;
        }
    }
    Ok(found)
}

fn ended(end: TurnEnd) -> RunChange {
    let (status, error) = match end.stop {
        TurnStop::Finished => (RunStatus::Finished, None),
        TurnStop::Cancelled => {
            return RunChange { usage: Some(end.usage), cost: end.cost, result: end.result, ..cancelled() };
        }
        TurnStop::Limit(message) => {
            let error = AgentError::Limit { message: message.clone() };
            (RunStatus::Error, Some((error.code().to_owned(), message)))
        }
        TurnStop::Refused(message) => (RunStatus::Error, Some(("refused".to_owned(), message))),
    };
    RunChange { status, result: end.result, error, usage: Some(end.usage), cost: end.cost, duration: None }
}

fn cancelled() -> RunChange {
    RunChange::to(RunStatus::Cancelled)
}

fn failed(error: &AgentError) -> RunChange {
    let error = Some((error.code().to_owned(), error.message()));
    RunChange { error, ..RunChange::to(RunStatus::Error) }
}
