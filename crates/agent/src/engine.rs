//! Owns the seam between an agent on this machine and what executes its prompts: a native turn loop, or an agent behind
//! a protocol. It knows no store and no files.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::event::{Delta, EventKind, Usage};
use crate::generation::Generation;
use crate::id::{AgentId, RunId};
use crate::options::{Limits, Mode, ModelChoice, Prompt};

/// A future that is not named.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Executes prompts for one agent, one at a time. It is made once for each handle, without I/O, and ended by
/// [`Engine::close`].
pub trait Engine: Send + Sync + 'static {
    /// `native`, `acp`.
    fn name(&self) -> &'static str;

    /// Names of its built-in tools, as the model will have them. Empty where it cannot know.
    fn tools(&self) -> Vec<String>;

    /// Executes one prompt. Tells what happens by the sink, and looks at the turn's cancellation at every wait. What it
    /// returns is the last thing it does for the run.
    fn run<'a>(
        &'a self,
        turn: EngineTurn,
        sink: Arc<dyn RunSink>,
    ) -> BoxFuture<'a, Result<TurnEnd, AgentError>>;

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
    /// The last run ended without a word: its process died. Events of calls that may have run are in `interrupted`.
    pub interrupted: Vec<String>,
    /// When to stop.
    pub limits: Limits,
    /// Text that the user sends meanwhile.
    pub steering: mpsc::Receiver<String>,
    /// The run is to end.
    pub cancel: CancellationToken,
}

/// A conversation as an engine keeps it. Nobody else looks into it; it goes through the store's redactor as text, so it
/// is UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint(pub Bytes);

/// Where an engine tells what happens. Every method may wait: a slow reader slows the run.
pub trait RunSink: Send + Sync + 'static {
    /// A message, to be kept.
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
