//! Owns a run that another process executes, or executed: what can be done with it through the store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use super::live::state_of;
use super::observe::{self, Observer, POLL};
use crate::engine::BoxFuture;
use crate::error::AgentError;
use crate::event::{Event, EventKind, RunStatus};
use crate::id::{AgentId, RunId};
use crate::run::{
    Deltas, EventStream, Observation, Observed, Run, RunOperation, RunSource, RunState, Source, Steered,
};
use crate::store::{EventRecord, Keeper, Kept, RunChange, RunRecord, Writes, now};

/// How long the process of a run has to cancel it.
const CANCEL: Duration = Duration::from_secs(10);

/// A run of another process.
#[derive(Debug)]
pub(super) struct Detached {
    keeper: Keeper,
    record: RunRecord,
    state: watch::Sender<RunState>,
}

impl Detached {
    /// A handle on it.
    pub(super) fn run(keeper: Keeper, record: RunRecord) -> Run {
        let state = watch::Sender::new(state_of(&record));
        Run::new(Arc::new(Self { keeper, record, state }))
    }

    fn is_over(&self) -> bool {
        self.state.borrow().status.is_terminal()
    }

    fn observer(&self, after: u64) -> Observer {
        let (agent, run) = (self.record.agent.clone(), self.record.id.clone());
        Observer::new(self.keeper.clone(), agent, run, after, None)
    }

    /// What the store says now.
    async fn look(&self) -> Result<(RunRecord, bool), AgentError> {
        let id = self.record.id.clone();
        let (record, alive) =
            self.keeper.call(move |store| Ok((store.run(&id)?, store.is_alive(&id)?))).await?;
        let (agent, run) = (self.record.agent.clone(), self.record.id.clone());
        let record = record.ok_or(AgentError::RunNotFound { agent, run })?;
        self.state.send_replace(state_of(&record));
        Ok((record, alive))
    }

    async fn cancel_it(&self) -> Result<(), AgentError> {
        let until = Instant::now() + CANCEL;
        loop {
            let (record, alive) = self.look().await?;
            if record.status.is_terminal() {
                return Ok(());
            }
            if alive {
                let id = self.record.id.clone();
                self.keeper.call(move |store| store.ask_cancel(&id)).await?;
            } else {
                self.end_for_a_dead_process(&record).await?;
                continue;
            }
            if Instant::now() >= until {
                return Err(AgentError::Runtime {
                    message: format!(
                        "the process of {} did not cancel it within {} s: send with force to give it up",
                        self.record.id,
                        CANCEL.as_secs()
                    ),
                });
            }
            sleep(POLL).await;
        }
    }

    /// Nobody else will.
    async fn end_for_a_dead_process(&self, record: &RunRecord) -> Result<(), AgentError> {
        let message = "cancelled after its process had ended without a word".to_owned();
        let event = Event {
            agent_id: record.agent.clone(),
            run_id: record.id.clone(),
            kind: EventKind::Status { status: RunStatus::Cancelled, message: Some(message.clone()) },
        };
        let last = observe::all(&self.keeper, &record.id).await?.last().map_or(0, |last| last.offset);
        let writes = Writes {
            events: vec![EventRecord { offset: last + 1, json: event.to_json() }],
            checkpoint: None,
            change: Some(RunChange {
                error: Some(("process_ended".to_owned(), message)),
                duration: (now() - record.created_at).try_into().ok(),
                ..RunChange::to(RunStatus::Cancelled)
            }),
        };
        let id = record.id.clone();
        // Kept by us, or ended by somebody else meanwhile: the next look tells.
        let (Kept::Yes | Kept::Over) = self.keeper.call(move |store| store.append(&id, &writes)).await?;
        Ok(())
    }
}

/// The events without their places, for a reader of a stream.
struct Events(Observer);

impl Source<Result<Event, AgentError>> for Events {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Event, AgentError>>> {
        Box::pin(async {
            loop {
                match self.0.next().await? {
                    Ok(Observed { event: Event { kind: EventKind::Request { .. }, .. }, .. }) => {}
                    Ok(observed) => return Some(Ok(observed.event)),
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }
}

struct Nothing(mpsc::Receiver<crate::event::Delta>);

impl Source<crate::event::Delta> for Nothing {
    fn next(&mut self) -> BoxFuture<'_, Option<crate::event::Delta>> {
        Box::pin(self.0.recv())
    }
}

impl RunSource for Detached {
    fn id(&self) -> &RunId {
        &self.record.id
    }

    fn agent(&self) -> &AgentId {
        &self.record.agent
    }

    fn state(&self) -> watch::Receiver<RunState> {
        self.state.subscribe()
    }

    fn stream(&self) -> Result<EventStream, AgentError> {
        Ok(EventStream::new(Events(self.observer(0))))
    }

    fn observe(&self, after: u64) -> Result<Observation, AgentError> {
        Ok(Observation::new(self.observer(after)))
    }

    fn deltas(&self) -> Result<Deltas, AgentError> {
        Ok(Deltas::new(Nothing(mpsc::channel(1).1)))
    }

    fn wait(&self) -> BoxFuture<'_, Result<RunState, AgentError>> {
        Box::pin(async { Ok(state_of(&self.look().await?.0)) })
    }

    fn cancel(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(self.cancel_it())
    }

    fn steer(&self, _text: String) -> BoxFuture<'_, Result<Steered, AgentError>> {
        Box::pin(std::future::ready(Ok(Steered::RevertToFollowup)))
    }

    fn conversation(&self) -> BoxFuture<'_, Result<Vec<Event>, AgentError>> {
        Box::pin(async {
            let all = observe::all(&self.keeper, &self.record.id).await?;
            Ok(all.into_iter().map(|observed| observed.event).filter(observe::is_conversation).collect())
        })
    }

    fn unsupported_reason(&self, operation: RunOperation) -> Option<String> {
        let is_over = self.is_over();
        let reason = match operation {
            RunOperation::Wait if !is_over => {
                "another handle executes the run: observe it, its last event is its terminal status"
            }
            RunOperation::Deltas | RunOperation::Steer if !is_over => "another handle executes the run",
            RunOperation::Cancel | RunOperation::Deltas | RunOperation::Steer if is_over => "the run is over",
            _ => return None,
        };
        Some(reason.to_owned())
    }
}
