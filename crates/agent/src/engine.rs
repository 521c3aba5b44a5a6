//! Owns the seam between an agent on this machine and what executes its prompts: a native turn loop, or an agent behind
//! a protocol. It knows no store and no files.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub use crate::boxed::BoxFuture;
use crate::error::AgentError;
use crate::event::{Delta, EventKind, ToolCallEvent, Usage};
use crate::generation::Generation;
use crate::id::{AgentId, RunId};
use crate::options::{Limits, Mode, ModelChoice, Prompt};

/// How long an engine has to stop by itself, where it does not say otherwise.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Executes prompts for one agent, one at a time. It is made once for each handle, without I/O, and ended by
/// [`Engine::close`].
pub trait Engine: Send + Sync + 'static {
    /// `native`, `acp`.
    fn name(&self) -> &'static str;

    /// Names of its built-in tools, as the model will have them. Empty where it cannot know.
    fn tools(&self) -> Vec<String>;

    /// A prompt needs a model that is named.
    fn needs_model(&self) -> bool {
        true
    }

    /// Called before each run: what is made or read when it is first needed. Gives what is wrong with files.
    fn prepare(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Reads again what it has of files: rules, hooks, skills. For the runs to come; gives what is wrong with them.
    fn reload(&self) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// How long a run that is cancelled may take to end: whoever runs it drops it then.
    fn grace(&self) -> Duration {
        GRACE
    }

    /// Executes one prompt. Tells what happens by the sink, and looks at the turn's cancellation at every wait. What it
    /// returns is the last thing it does for the run.
    fn run(&self, turn: EngineTurn, sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>>;

    /// Ends it: processes, connections. Bounded, and the second time nothing.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// One prompt and all that belongs to it.
#[derive(Debug)]
pub struct EngineTurn {
    /// Whose.
    pub agent: AgentId,
    /// Which run.
    pub run: RunId,
    /// What the user says.
    pub prompt: Prompt,
    /// The model.
    pub model: ModelChoice,
    /// How it is to be answered.
    pub mode: Mode,
    /// The folder it works in.
    pub cwd: PathBuf,
    /// The servers that this run has, to its end.
    pub servers: Arc<Generation>,
    /// The conversation so far, as the engine last gave it to be kept.
    pub checkpoint: Option<Checkpoint>,
    /// Calls of an earlier run that began and of whose end nothing is known, because its process died or it was given
    /// up: they may have run, or not, or in part. The model is to be told.
    pub interrupted: Vec<ToolCallEvent>,
    /// When to stop.
    pub limits: Limits,
    /// Text that the user sends meanwhile.
    pub steering: Steering,
    /// The run is to end.
    pub cancel: CancellationToken,
}

/// Text that the user sends while a run is on its way. Who sent it learns that it went in when the engine takes it; what
/// is not taken until the engine drops this goes back to the sender, for the next run.
#[derive(Debug)]
pub struct Steering(mpsc::Receiver<Steer>);

/// A text on its way into a run.
#[derive(Debug)]
pub(crate) struct Steer {
    text: String,
    taken: oneshot::Sender<()>,
}

impl Steer {
    /// A text, and what ends well when the text went in.
    pub(crate) fn new(text: String) -> (Self, oneshot::Receiver<()>) {
        let (taken, went_in) = oneshot::channel();
        (Self { text, taken }, went_in)
    }

    fn take(self) -> String {
        // Whoever sent it may have stopped waiting.
        self.taken.send(()).ok();
        self.text
    }
}

impl Steering {
    /// How many texts may wait.
    const WAITING: usize = 16;

    /// The two ends.
    pub(crate) fn channel() -> (mpsc::Sender<Steer>, Self) {
        let (sender, receiver) = mpsc::channel(Self::WAITING);
        (sender, Self(receiver))
    }

    /// Nobody sends anything: for runs without a user.
    pub fn none() -> Self {
        Self::channel().1
    }

    /// A text that waits. Whoever takes one puts it into the conversation: as an event of the user's, too.
    pub fn try_take(&mut self) -> Option<String> {
        self.0.try_recv().ok().map(Steer::take)
    }

    /// The next text, when it comes. `None` when none will come. Loses nothing when it is dropped.
    pub async fn take(&mut self) -> Option<String> {
        self.0.recv().await.map(Steer::take)
    }
}

/// A conversation as an engine keeps it. Nobody else looks into it; it goes through the store's redactor as text, so it
/// is UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint(pub Bytes);

/// Where an engine tells what happens. Every method may wait: a slow reader slows the run.
pub trait RunSink: Send + Sync + 'static {
    /// A message, to be kept. The first event ([`EventKind::System`]), the user's prompt and every status are not the
    /// engine's to tell. A tool call is told when it begins, before anything of it happens (then it is on disk when this
    /// returns), and when it ended. Large arguments and results are given whole: the sink leaves out what is too large.
    /// An error means that the run is over for others (given up, or its store is lost): stop.
    fn event(&self, kind: EventKind) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Something finer.
    fn delta(&self, delta: Delta) -> BoxFuture<'_, ()>;

    /// The conversation so far, to be kept before anything else happens: a crash resumes from here.
    fn checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), AgentError>>;
}

/// How a prompt ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// Why.
    pub stop: TurnStop,
    /// The final text.
    pub result: Option<String>,
    /// Tokens of the whole run.
    pub usage: Usage,
    /// What they cost in US dollars, where the prices of all of them are known.
    pub cost: Option<f64>,
}

/// Why a prompt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnStop {
    /// The model was done.
    Finished,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit was reached: which, and how to raise it.
    Limit(String),
    /// The model refused.
    Refused(String),
}
