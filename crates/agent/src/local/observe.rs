//! Owns the reading of a run's kept events, from any process: what is there, then what comes, to the terminal status.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::writer::Done;
use crate::engine::BoxFuture;
use crate::error::AgentError;
use crate::event::{Event, EventKind};
use crate::id::{AgentId, RunId};
use crate::run::{Observed, Source};
use crate::store::{EventRecord, Keeper};

/// How often a store is looked at where nobody tells of changes.
pub(super) const POLL: Duration = Duration::from_millis(250);
/// How many events are read at once.
const BATCH: usize = 256;

/// Reads the events of a run.
#[derive(Debug)]
pub(super) struct Observer {
    pub(super) keeper: Keeper,
    pub(super) agent: AgentId,
    pub(super) run: RunId,
    /// The last event that was read from the store.
    pub(super) after: u64,
    /// Tells of changes, where the run is in this process.
    pub(super) hint: Option<watch::Receiver<Done>>,
    pub(super) ready: VecDeque<Observed>,
    pub(super) is_over: bool,
}

impl Observer {
    pub(super) fn new(
        keeper: Keeper,
        agent: AgentId,
        run: RunId,
        after: u64,
        hint: Option<watch::Receiver<Done>>,
    ) -> Self {
        Self { keeper, agent, run, after, hint, ready: VecDeque::new(), is_over: false }
    }

    async fn read(&mut self) -> Result<(), AgentError> {
        if let Some(hint) = &mut self.hint {
            hint.borrow_and_update();
        }
        let (run, after) = (self.run.clone(), self.after);
        // The run first: when it is over, all of its events are there.
        let (record, events) =
            self.keeper.call(move |store| Ok((store.run(&run)?, store.events(&run, after, BATCH)?))).await?;
        let Some(record) = record else {
            return Err(AgentError::RunNotFound { agent: self.agent.clone(), run: self.run.clone() });
        };
        if events.is_empty() && record.status.is_terminal() {
            self.is_over = true;
        }
        for event in events {
            self.ready.push_back(parsed(&event)?);
            self.after = event.offset;
        }
        Ok(())
    }

    /// Until there may be more.
    async fn wait(&mut self) {
        match &mut self.hint {
            Some(hint) => {
                tokio::select! {
                    changed = hint.changed() => if changed.is_err() {
                        self.hint = None;
                    },
                    () = sleep(POLL) => {}
                }
            }
            None => sleep(POLL).await,
        }
    }
}

/// An event as it was kept.
pub(super) fn parsed(record: &EventRecord) -> Result<Observed, AgentError> {
    let event = Event::from_json(&record.json).map_err(|error| AgentError::Store {
        message: format!("event {} of a run cannot be read: {error}", record.offset),
    })?;
    Ok(Observed { offset: record.offset, event })
}

impl Source<Result<Observed, AgentError>> for Observer {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Observed, AgentError>>> {
        Box::pin(async {
            loop {
                if let Some(observed) = self.ready.pop_front() {
                    if matches!(&observed.event.kind, EventKind::Status { status, .. } if status.is_terminal())
                    {
                        self.is_over = true;
                        self.ready.clear();
                    }
                    return Some(Ok(observed));
                }
                if self.is_over {
                    return None;
                }
                if let Err(error) = self.read().await {
                    self.is_over = true;
                    return Some(Err(error));
                }
                if self.ready.is_empty() && !self.is_over {
                    self.wait().await;
                }
            }
        })
    }
}

/// Everything that is kept of a run.
pub(super) async fn all(keeper: &Keeper, run: &RunId) -> Result<Vec<Observed>, AgentError> {
    let run = run.clone();
    let records = keeper
        .call(move |store| {
            let mut all = Vec::new();
            loop {
                let part = store.events(&run, all.len() as u64, BATCH)?;
                let is_last = part.len() < BATCH;
                all.extend(part);
                if is_last {
                    return Ok(all);
                }
            }
        })
        .await?;
    records.iter().map(parsed).collect()
}

/// What of a run's events is its conversation.
pub(super) fn is_conversation(event: &Event) -> bool {
    match &event.kind {
        EventKind::User { .. } | EventKind::Assistant { .. } => true,
        EventKind::ToolCall(call) => call.status != crate::event::ToolCallStatus::Running,
        _ => false,
    }
}
