//! Owns the handle of a run: what it tells, how it is awaited, cancelled and steered. It does not know where the run is.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use tokio::sync::watch;

use crate::engine::BoxFuture;
use crate::error::AgentError;
use crate::event::{Delta, Event, RunStatus, Usage};
use crate::id::{AgentId, RunId};

/// One prompt's execution. A handle: clones are the same run, and dropping them ends nothing.
#[derive(Clone)]
pub struct Run {
    source: Arc<dyn RunSource>,
}

/// Where a run is: in this process, in another one, in the cloud. Implemented by each runtime, called by [`Run`] alone.
pub trait RunSource: Send + Sync + 'static {
    /// Its id.
    fn id(&self) -> &RunId;

    /// Whose it is.
    fn agent(&self) -> &AgentId;

    /// What it is now, and every change of it.
    fn state(&self) -> watch::Receiver<RunState>;

    /// Its events for the one consumer of them.
    fn stream(&self) -> Result<EventStream, AgentError>;

    /// Its kept events behind an offset, then those to come.
    fn observe(&self, after: u64) -> Result<Observation, AgentError>;

    /// What happens between events, for the one listener.
    fn deltas(&self) -> Result<Deltas, AgentError>;

    /// Waits until it is over.
    fn wait(&self) -> BoxFuture<'_, Result<RunState, AgentError>>;

    /// Cancels it, and waits until it is over.
    fn cancel(&self) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Sends a text into it, and waits until it went in or no longer can.
    fn steer(&self, text: String) -> BoxFuture<'_, Result<Steered, AgentError>>;

    /// What was said and done so far.
    fn conversation(&self) -> BoxFuture<'_, Result<Vec<Event>, AgentError>>;

    /// Why it cannot do that, if it cannot.
    fn unsupported_reason(&self, operation: RunOperation) -> Option<String>;
}

/// What a run is at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState {
    /// How far it is.
    pub status: RunStatus,
    /// The final text.
    pub result: Option<String>,
    /// Why it failed or was given up.
    pub error: Option<RunFault>,
    /// The model that it was sent to.
    pub model: Option<String>,
    /// Tokens, once they are known.
    pub usage: Option<Usage>,
    /// What they cost in US dollars, where the prices of all of them are known.
    pub cost: Option<f64>,
    /// When it was sent.
    pub created_at: OffsetDateTime,
    /// How long it took, once it is over.
    pub duration: Option<Duration>,
}

/// Why a run did not end well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFault {
    /// The word by which programs tell faults apart: those of [`AgentError::code`], and `force_send`, `refused`.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl fmt::Display for RunFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.message)
    }
}

impl std::error::Error for RunFault {}

impl RunState {
    /// The final text, empty where there is none.
    ///
    /// # Errors
    /// Why the run failed or was given up.
    pub fn into_result(self) -> Result<String, RunFault> {
        match self.error {
            Some(fault) => Err(fault),
            None => Ok(self.result.unwrap_or_default()),
        }
    }
}

/// What can be done with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunOperation {
    /// [`Run::stream`].
    Stream,
    /// [`Run::observe`].
    Observe,
    /// [`Run::deltas`].
    Deltas,
    /// [`Run::wait`].
    Wait,
    /// [`Run::cancel`].
    Cancel,
    /// [`Run::steer`] into the run, not into the next one.
    Steer,
    /// [`Run::conversation`].
    Conversation,
}

impl RunOperation {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Observe => "observe",
            Self::Deltas => "deltas",
            Self::Wait => "wait",
            Self::Cancel => "cancel",
            Self::Steer => "steer",
            Self::Conversation => "conversation",
        }
    }
}

/// What became of a text that was sent into a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steered {
    /// The run took it.
    Delivered,
    /// The run was over, or is not to be reached: send it as the next prompt.
    RevertToFollowup,
}

impl Run {
    /// A handle on what a runtime executes.
    pub fn new(source: Arc<dyn RunSource>) -> Self {
        Self { source }
    }

    /// Its id.
    pub fn id(&self) -> &RunId {
        self.source.id()
    }

    /// Whose it is.
    pub fn agent_id(&self) -> &AgentId {
        self.source.agent()
    }

    /// How far it is.
    pub fn status(&self) -> RunStatus {
        self.source.state().borrow().status
    }

    /// What it is now.
    pub fn state(&self) -> RunState {
        self.source.state().borrow().clone()
    }

    /// Its state, to be watched: `changed().await` after each change of its status.
    pub fn watch(&self) -> watch::Receiver<RunState> {
        self.source.state()
    }

    /// Its events from the first one, as they come, for one consumer: the second call is refused. Up to 8,192 events wait
    /// to be read; behind them comes [`AgentError::StreamBufferOverflow`] and the stream ends, while the run goes on.
    pub fn stream(&self) -> Result<EventStream, AgentError> {
        self.can(RunOperation::Stream)?;
        self.source.stream()
    }

    /// Its kept events behind an offset (0: all of them), then those to come, and the end after its terminal status. Any
    /// number of observers, from any process.
    pub fn observe(&self, after: u64) -> Result<Observation, AgentError> {
        self.can(RunOperation::Observe)?;
        self.source.observe(after)
    }

    /// What happens between events, for one listener. The run waits for it: what it does not take, the run does not go on
    /// with. To miss nothing, give a listener to [`crate::SendOptions`] instead.
    pub fn deltas(&self) -> Result<Deltas, AgentError> {
        self.can(RunOperation::Deltas)?;
        self.source.deltas()
    }

    /// Waits until it is over, and says how it ended. A run that failed is no error here: see [`RunState::error`].
    pub async fn wait(&self) -> Result<RunState, AgentError> {
        if !self.status().is_terminal() {
            self.can(RunOperation::Wait)?;
        }
        self.source.wait().await
    }

    /// Cancels it and waits until it is over; nothing where it is over.
    pub async fn cancel(&self) -> Result<(), AgentError> {
        if self.status().is_terminal() {
            return Ok(());
        }
        self.can(RunOperation::Cancel)?;
        self.source.cancel().await
    }

    /// Sends a text into it. Ends when the run took it, which it does at its next step, or when it no longer can.
    pub async fn steer(&self, text: impl Into<String>) -> Result<Steered, AgentError> {
        if self.source.unsupported_reason(RunOperation::Steer).is_some() {
            return Ok(Steered::RevertToFollowup);
        }
        self.source.steer(text.into()).await
    }

    /// What was said and done so far: events of the user, the assistant, and tool calls that ended.
    pub async fn conversation(&self) -> Result<Vec<Event>, AgentError> {
        self.can(RunOperation::Conversation)?;
        self.source.conversation().await
    }

    /// Whether it can do that now.
    pub fn supports(&self, operation: RunOperation) -> bool {
        self.unsupported_reason(operation).is_none()
    }

    /// Why it cannot do that now.
    pub fn unsupported_reason(&self, operation: RunOperation) -> Option<String> {
        self.source.unsupported_reason(operation)
    }

    fn can(&self, operation: RunOperation) -> Result<(), AgentError> {
        match self.unsupported_reason(operation) {
            None => Ok(()),
            Some(reason) => Err(AgentError::UnsupportedRunOperation { operation: operation.name(), reason }),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("id", self.id()).field("status", &self.status()).finish_non_exhaustive()
    }
}

/// Gives items one by one. Implemented by what a runtime tells; called by the streams below.
pub trait Source<T>: Send {
    /// The next one; `None` at the end. Loses nothing when it is dropped.
    fn next(&mut self) -> BoxFuture<'_, Option<T>>;
}

macro_rules! stream {
    ($(#[$doc:meta])* $name:ident, $item:ty) => {
        $(#[$doc])*
        pub struct $name(Box<dyn Source<$item>>);

        impl $name {
            /// A stream of what a runtime gives.
            pub fn new(source: impl Source<$item> + 'static) -> Self {
                Self(Box::new(source))
            }

            /// The next one; `None` at the end. Loses nothing when it is dropped.
            pub async fn next(&mut self) -> Option<$item> {
                self.0.next().await
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

stream! {
    /// The events of a run as they come.
    EventStream, Result<Event, AgentError>
}
stream! {
    /// The kept events of a run, then those to come, each with its offset.
    Observation, Result<Observed, AgentError>
}
stream! {
    /// What happens between the events of a run.
    Deltas, Delta
}

/// An event with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// Counted from 1 in each run, without gaps. Observing from it goes on with the next one.
    pub offset: u64,
    /// The event.
    pub event: Event,
}
