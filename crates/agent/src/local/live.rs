//! Owns a run of this process: its state, its events on their way to readers and the store, its deltas, its steering. It
//! knows no engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use time::OffsetDateTime;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::buffer::Buffer;
use super::observe::{self, Observer};
use super::pieces::Pieces;
use super::writer::{Stop, Writer};
use crate::engine::{BoxFuture, Checkpoint, RunSink, Steer};
use crate::error::AgentError;
use crate::event::{Delta, Event, EventKind, RunStatus, ToolCallEvent, ToolCallStatus, Usage};
use crate::id::{AgentId, RunId};
use crate::redact::Redactors;
use crate::run::{
    Deltas, EventStream, Observation, RunFault, RunOperation, RunSource, RunState, Source, Steered,
};
use crate::store::{EventRecord, Keeper, RunChange, RunRecord};

/// The largest arguments and the largest result that a message has, in bytes. Larger ones are left out and said to be.
pub(super) const LARGEST: usize = 40_000;

/// A run of this process.
#[derive(Debug)]
pub(crate) struct Live {
    id: RunId,
    agent: AgentId,
    pub(super) keeper: Keeper,
    redactor: RwLock<Arc<Redactors>>,
    state: watch::Sender<RunState>,
    pub(super) buffer: Arc<Buffer>,
    pub(super) writer: Arc<Writer>,
    telling: Mutex<Telling>,
    deltas: Mutex<Listener>,
    /// What of their texts was not told yet.
    pieces: Mutex<Pieces>,
    steering: mpsc::Sender<Steer>,
    /// It is to end: cancelled by its user.
    pub(super) cancel: CancellationToken,
    created_at: OffsetDateTime,
}

/// The order of events.
#[derive(Debug, Default)]
struct Telling {
    last: u64,
    /// Its terminal status was told.
    is_over: bool,
    /// The tokens that were told last.
    usage: Option<Usage>,
}

/// Who listens to deltas.
#[derive(Debug)]
enum Listener {
    Nobody,
    Somebody(mpsc::Sender<Delta>),
    /// The run is over, or who listened is gone.
    Gone,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of a run as it is kept.
pub(super) fn state_of(record: &RunRecord) -> RunState {
    RunState {
        status: record.status,
        result: record.result.clone(),
        error: record.error.clone().map(|(code, message)| RunFault { code, message }),
        model: record.model.clone(),
        usage: record.usage,
        cost: record.cost,
        created_at: record.created_at,
        duration: record.duration,
    }
}

impl Live {
    /// A run that begins.
    pub(super) fn new(
        record: &RunRecord,
        keeper: Keeper,
        redactor: Redactors,
        deltas: Option<mpsc::Sender<Delta>>,
        steering: mpsc::Sender<Steer>,
        cancel: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: record.id.clone(),
            agent: record.agent.clone(),
            keeper,
            redactor: RwLock::new(Arc::new(redactor)),
            state: watch::Sender::new(state_of(record)),
            buffer: Arc::default(),
            writer: Arc::new(Writer::new()),
            telling: Mutex::default(),
            deltas: Mutex::new(deltas.map_or(Listener::Nobody, Listener::Somebody)),
            pieces: Mutex::default(),
            steering,
            cancel,
            created_at: record.created_at,
        })
    }

    /// From now on no text repeats what is given here.
    pub(super) fn redact(&self, redactor: Redactors) {
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(redactor);
    }

    fn redactor(&self) -> Arc<Redactors> {
        Arc::clone(&self.redactor.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.borrow().status.is_terminal()
    }

    /// Tells a message: to its reader, and to the store. Gives what to wait for to have it kept.
    pub(super) fn tell(&self, kind: EventKind, change: Option<RunChange>) -> u64 {
        let event = |kind| Event { agent_id: self.agent.clone(), run_id: self.id.clone(), kind };
        let redactor = self.redactor();
        let kind = redactor.told.event(limited(kind));
        let json = event(redactor.kept.event(kind.clone())).to_json();
        let event = event(kind);
        let mut telling = locked(&self.telling);
        if telling.is_over {
            return 0;
        }
        telling.last += 1;
        if let EventKind::Usage(usage) = &event.kind {
            telling.usage = Some(*usage);
        }
        let is_end = change.as_ref().is_some_and(|change| change.status.is_terminal());
        telling.is_over = is_end;
        let offset = telling.last;
        let number = self.writer.add(|writes| {
            writes.events.push(EventRecord { offset, json });
            if change.is_some() {
                writes.change = change;
            }
        });
        // How it ended is told once that is kept: what the store does not take did not end so.
        if !is_end && !matches!(event.kind, EventKind::Request { .. }) {
            self.buffer.push(event);
        }
        number
    }

    /// The last message of its reader.
    fn told_end(&self, status: RunStatus, message: Option<String>) {
        self.buffer.push(Event {
            agent_id: self.agent.clone(),
            run_id: self.id.clone(),
            kind: EventKind::Status { status, message },
        });
    }

    /// It runs.
    pub(super) fn is_running(&self) {
        let change = RunChange::to(RunStatus::Running);
        self.tell(EventKind::Status { status: RunStatus::Running, message: None }, Some(change));
        self.state.send_modify(|state| state.status = RunStatus::Running);
    }

    /// It is over: this is kept, then told.
    pub(super) async fn end(&self, mut end: RunChange) {
        let rest = locked(&self.pieces).rest();
        self.tell_deltas(rest.into_iter().collect()).await;
        let redactor = self.redactor();
        end.result = end.result.map(|text| redactor.kept.owned(text));
        end.error = end.error.map(|(code, text)| (code, redactor.kept.owned(text)));
        end.duration = (OffsetDateTime::now_utc() - self.created_at).try_into().ok();
        // An engine that told them with its last answer told them all.
        if let Some(usage) = end.usage.filter(|usage| locked(&self.telling).usage != Some(*usage)) {
            self.tell(EventKind::Usage(usage), None);
        }
        let message = end.error.as_ref().map(|(_, message)| message.clone());
        let number = self.tell(EventKind::Status { status: end.status, message }, Some(end.clone()));
        let stop = self.writer.kept(number).await.err();
        if let Some(Stop::Over) = stop {
            self.given_up().await;
        } else {
            if let Some(Stop::Lost(error)) = stop {
                end.status = RunStatus::Error;
                end.error = Some((error.code().to_owned(), error.message()));
            }
            self.told_end(end.status, end.error.as_ref().map(|(_, message)| message.clone()));
            self.state.send_modify(|state| {
                state.status = end.status;
                state.result = end.result;
                state.error = end.error.map(|(code, message)| RunFault { code, message });
                state.usage = end.usage;
                state.cost = end.cost;
                state.duration = end.duration;
            });
        }
        self.buffer.close();
        *locked(&self.deltas) = Listener::Gone;
    }

    /// Somebody else ended it: what the store says counts.
    async fn given_up(&self) {
        let id = self.id.clone();
        let record = self.keeper.call(move |store| store.run(&id)).await.ok().flatten();
        let message = "its agent is gone from the store".to_owned();
        let gone = || RunFault { code: "agent_not_found".to_owned(), message };
        let (status, error) = match record {
            Some(record) => (record.status, record.error.map(|(code, message)| RunFault { code, message })),
            None => (RunStatus::Expired, Some(gone())),
        };
        self.told_end(status, error.as_ref().map(|error| error.message.clone()));
        self.state.send_modify(|state| {
            state.status = status;
            state.error = error;
        });
    }
}

/// Without what is too large for a message.
fn limited(kind: EventKind) -> EventKind {
    let EventKind::ToolCall(mut call) = kind else { return kind };
    let fits = |value: &toolway_bridge::RawJson| value.bytes().len() <= LARGEST;
    let ToolCallEvent { args, result, truncated, .. } = &mut call;
    truncated.args |= args.as_ref().is_some_and(|args| !fits(args));
    truncated.result |= result.as_ref().is_some_and(|result| !fits(result));
    *args = args.take().filter(fits);
    *result = result.take().filter(fits);
    EventKind::ToolCall(call)
}

impl RunSink for Live {
    fn event(&self, kind: EventKind) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            // The first message and the statuses are not the engine's.
            if matches!(kind, EventKind::System(_) | EventKind::Status { .. }) {
                return Ok(());
            }
            let rest = locked(&self.pieces).rest();
            self.tell_deltas(rest.into_iter().collect()).await;
            let begins = matches!(&kind, EventKind::ToolCall(call) if call.status == ToolCallStatus::Running);
            self.writer.room().await.map_err(|stop| self.stopped(stop))?;
            let number = self.tell(kind, None);
            if begins {
                // What may have run must be known whatever happens to this process.
                self.writer.kept(number).await.map_err(|stop| self.stopped(stop))?;
            }
            Ok(())
        })
    }

    fn delta(&self, delta: Delta) -> BoxFuture<'_, ()> {
        if !matches!(*locked(&self.deltas), Listener::Somebody(_)) {
            return Box::pin(std::future::ready(()));
        }
        let ready = locked(&self.pieces).next(delta);
        Box::pin(self.tell_deltas(ready))
    }

    fn checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            let clean = self.redactor().kept.checkpoint(&checkpoint.0);
            let number = self.writer.add(|writes| writes.checkpoint = Some(clean));
            self.writer.kept(number).await.map_err(|stop| self.stopped(stop))
        })
    }
}

impl Live {
    async fn tell_deltas(&self, deltas: Vec<Delta>) {
        for delta in deltas {
            let listener = match &*locked(&self.deltas) {
                Listener::Somebody(listener) => listener.clone(),
                Listener::Nobody | Listener::Gone => return,
            };
            let delta = self.redactor().told.delta(delta);
            let sent = tokio::select! {
                biased;
                sent = listener.send(delta) => sent,
                // A listener that does not read must not hold a run that is to end.
                () = self.cancel.cancelled() => return,
                () = self.writer.stopped.cancelled() => return,
            };
            if sent.is_err() {
                *locked(&self.deltas) = Listener::Gone;
            }
        }
    }

    fn stopped(&self, stop: Stop) -> AgentError {
        match stop {
            Stop::Over => AgentError::Runtime { message: format!("{} was given up", self.id) },
            Stop::Lost(error) => error,
        }
    }
}

/// Deltas as they come.
struct Listening(mpsc::Receiver<Delta>);

impl Source<Delta> for Listening {
    fn next(&mut self) -> BoxFuture<'_, Option<Delta>> {
        Box::pin(self.0.recv())
    }
}

/// The run does it, but not a second time.
fn taken(operation: RunOperation) -> AgentError {
    AgentError::UnsupportedRunOperation {
        operation: operation.name(),
        reason: "somebody reads it already; observe() has any number of readers".to_owned(),
    }
}

impl RunSource for Live {
    fn id(&self) -> &RunId {
        &self.id
    }

    fn agent(&self) -> &AgentId {
        &self.agent
    }

    fn state(&self) -> watch::Receiver<RunState> {
        self.state.subscribe()
    }

    fn stream(&self) -> Result<EventStream, AgentError> {
        self.buffer.take().map(EventStream::new).ok_or_else(|| taken(RunOperation::Stream))
    }

    fn observe(&self, after: u64) -> Result<Observation, AgentError> {
        let hint = Some(self.writer.done());
        let (agent, run) = (self.agent.clone(), self.id.clone());
        Ok(Observation::new(Observer::new(self.keeper.clone(), agent, run, after, hint)))
    }

    fn deltas(&self) -> Result<Deltas, AgentError> {
        let mut listener = locked(&self.deltas);
        match *listener {
            Listener::Somebody(_) => Err(taken(RunOperation::Deltas)),
            Listener::Gone => Ok(Deltas::new(Listening(mpsc::channel(1).1))),
            Listener::Nobody => {
                let (sender, receiver) = mpsc::channel(1);
                *listener = Listener::Somebody(sender);
                Ok(Deltas::new(Listening(receiver)))
            }
        }
    }

    fn wait(&self) -> BoxFuture<'_, Result<RunState, AgentError>> {
        Box::pin(async {
            let mut state = self.state.subscribe();
            let over = state.wait_for(|state| state.status.is_terminal()).await;
            // This handle holds the sender.
            over.map(|state| state.clone())
                .map_err(|_| AgentError::Runtime { message: "the run is gone".to_owned() })
        })
    }

    fn cancel(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        Box::pin(async {
            self.cancel.cancel();
            self.wait().await.map(drop)
        })
    }

    fn steer(&self, text: String) -> BoxFuture<'_, Result<Steered, AgentError>> {
        Box::pin(async move {
            let (steer, went_in) = Steer::new(text);
            if self.is_over() || self.steering.try_send(steer).is_err() {
                return Ok(Steered::RevertToFollowup);
            }
            Ok(match went_in.await {
                Ok(()) => Steered::Delivered,
                Err(_) => Steered::RevertToFollowup,
            })
        })
    }

    fn conversation(&self) -> BoxFuture<'_, Result<Vec<Event>, AgentError>> {
        Box::pin(async {
            let all = observe::all(&self.keeper, &self.id).await?;
            Ok(all.into_iter().map(|observed| observed.event).filter(observe::is_conversation).collect())
        })
    }

    fn unsupported_reason(&self, operation: RunOperation) -> Option<String> {
        let over = || self.is_over().then(|| "the run is over".to_owned());
        match operation {
            RunOperation::Cancel | RunOperation::Steer => over(),
            _ => None,
        }
    }
}
