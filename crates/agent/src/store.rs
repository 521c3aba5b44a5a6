//! Owns what is kept of agents: the records, the trait that keeps them, and the choice among its implementations. It
//! knows no engine, and of servers only names, transports and keyed digests.

mod book;
mod form;
mod jsonl;
mod keeper;
mod memory;
mod place;
mod sqlite;
#[cfg(test)]
mod tests;

pub(crate) use form::now;
pub(crate) use keeper::{Keeper, blocking};
pub use memory::memory_store;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::error::AgentError;
use crate::event::{RunStatus, Usage};
use crate::id::{AgentId, RunId};
use crate::inline::{InlineRecord, RecordKey};

/// An agent as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Its id.
    pub id: AgentId,
    /// Its name.
    pub name: Option<String>,
    /// The folder it works in.
    pub cwd: String,
    /// `native`, `acp`.
    pub runtime: String,
    /// When it was first sent a prompt.
    #[serde(with = "form::time")]
    pub created_at: OffsetDateTime,
    /// When anything of it changed last.
    #[serde(with = "form::time")]
    pub updated_at: OffsetDateTime,
    /// It takes no prompts.
    pub archived: bool,
    /// The run that is on its way, or whose process died.
    pub active_run: Option<RunId>,
    /// The servers that it was given when it was created.
    pub servers: Vec<InlineRecord>,
}

/// A run as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Whose it is.
    pub agent: AgentId,
    /// Counted from 1 for each agent.
    pub turn: u64,
    /// How far it is.
    pub status: RunStatus,
    /// The model.
    pub model: Option<String>,
    /// The final text.
    pub result: Option<String>,
    /// Why it did not end well: a code and a text.
    pub error: Option<(String, String)>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// What they cost in US dollars, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// When it was sent.
    #[serde(with = "form::time")]
    pub created_at: OffsetDateTime,
    /// How long it took.
    #[serde(default, with = "form::duration")]
    pub duration: Option<Duration>,
    /// A digest of the key by which its sender recognises it.
    pub idempotency: Option<String>,
}

/// An event as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Counted from 1 in each run, without gaps.
    pub offset: u64,
    /// The event in JSON, without secrets.
    pub json: String,
}

/// Keeps agents, runs, events and conversations. Methods block; they are called off the threads that tasks run on.
/// Implemented by `store::{sqlite, jsonl, memory}` and by programs with a place of their own.
///
/// Runs guard each other: of an agent at most one run is not over, [`Store::begin`] decides, and what a run writes after
/// it is over is refused.
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Where it is, for messages.
    fn place(&self) -> String;

    /// Nothing is asked of it for now: it may let go of open files, which the next call opens again. It waits for the disk.
    fn rest(&self) {}

    /// A key for digests, made when first asked for and the same ever after. It is not kept beside the digests.
    fn digest_key(&self) -> Result<RecordKey, AgentError>;

    /// One agent.
    fn agent(&self, id: &AgentId) -> Result<Option<AgentRecord>, AgentError>;

    /// Agents, the youngest first.
    fn agents(&self, page: &Page) -> Result<Vec<AgentRecord>, AgentError>;

    /// Changes the name or archives; `false` when there is no such agent.
    fn change(&self, id: &AgentId, change: &AgentChange) -> Result<bool, AgentError>;

    /// Removes the agent and all that is its; `false` when there is no such agent.
    fn delete(&self, id: &AgentId) -> Result<bool, AgentError>;

    /// Begins a run, and keeps the agent where it is new, as one step.
    fn begin(&self, begin: &Begin) -> Result<Begun, AgentError>;

    /// Keeps events, a conversation, and the end of a run, as one step, in this order. The first event must follow on the
    /// last one that is kept. [`Kept::Over`] when the run is over: then nothing was kept.
    fn append(&self, run: &RunId, writes: &Writes) -> Result<Kept, AgentError>;

    /// The last conversation of an agent.
    fn checkpoint(&self, agent: &AgentId) -> Result<Option<Bytes>, AgentError>;

    /// One run.
    fn run(&self, id: &RunId) -> Result<Option<RunRecord>, AgentError>;

    /// Runs of an agent, the youngest first.
    fn runs(&self, agent: &AgentId, page: &Page) -> Result<Vec<RunRecord>, AgentError>;

    /// Events of a run behind an offset, in order, at most so many.
    fn events(&self, run: &RunId, after: u64, most: usize) -> Result<Vec<EventRecord>, AgentError>;

    /// Asks the process that executes a run to cancel it.
    fn ask_cancel(&self, run: &RunId) -> Result<(), AgentError>;

    /// Somebody asked for it.
    fn is_cancel_asked(&self, run: &RunId) -> Result<bool, AgentError>;

    /// A process executes the run. Never wrong about a dead one: whoever executes a run holds something that the system
    /// takes away from a process that ends, however it ends.
    fn is_alive(&self, run: &RunId) -> Result<bool, AgentError>;
}

/// How a run begins.
#[derive(Debug, Clone)]
pub struct Begin {
    /// The agent, as it is kept where it is new.
    pub agent: AgentRecord,
    /// Whether it may be there already, or may be new.
    pub presence: Presence,
    /// The run's id.
    pub run: RunId,
    /// The model.
    pub model: Option<String>,
    /// When it was sent.
    pub at: OffsetDateTime,
    /// A digest of the key by which its sender recognises it.
    pub idempotency: Option<String>,
    /// A run that is not over is given up, with this text.
    pub force: Option<String>,
}

/// What is known of an agent before it is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is new, with an id that the program chose or that was made: there must be none.
    New,
    /// It must be there.
    Known,
    /// Either.
    Any,
}

/// What became of a run that was to begin.
#[derive(Debug)]
pub enum Begun {
    /// It begins. Whoever executes it holds the claim to its end.
    Started {
        /// The run as it is kept.
        run: Box<RunRecord>,
        /// Held while the run is executed.
        claim: Claim,
    },
    /// It was begun before, with the same key.
    Known(Box<RunRecord>),
    /// Another run is not over.
    Busy {
        /// Which one.
        run: RunId,
        /// A process executes it.
        alive: bool,
    },
    /// The agent is archived.
    Archived,
    /// There is no such agent.
    NoAgent,
    /// There is one already.
    Exists,
}

/// Says that a process executes a run, until it is dropped or the process ends.
pub struct Claim(
    #[expect(dead_code, reason = "held, not read")] Option<Box<dyn std::any::Any + Send + Sync>>,
);

impl AgentRecord {
    /// Its place in a list of agents.
    pub fn cursor(&self) -> Cursor {
        Cursor { at: form::micros(self.created_at), id: self.id.to_string() }
    }
}

impl RunRecord {
    /// Its place in a list of runs.
    pub fn cursor(&self) -> Cursor {
        Cursor { at: i64::try_from(self.turn).unwrap_or(i64::MAX), id: self.id.to_string() }
    }
}

impl Claim {
    /// Holds whatever stands for the claim.
    pub fn new(held: impl std::any::Any + Send + Sync) -> Self {
        Self(Some(Box::new(held)))
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Claim")
    }
}

/// What a run writes at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// Events.
    pub events: Vec<EventRecord>,
    /// The conversation of its agent.
    pub checkpoint: Option<Bytes>,
    /// What it is now.
    pub change: Option<RunChange>,
}

/// What changes of a run. With a status that is terminal the run is over.
#[derive(Debug, Clone, PartialEq)]
pub struct RunChange {
    /// How far it is.
    pub status: RunStatus,
    /// The final text.
    pub result: Option<String>,
    /// Why it did not end well: a code and a text.
    pub error: Option<(String, String)>,
    /// Tokens.
    pub usage: Option<Usage>,
    /// What they cost in US dollars, where that is known.
    pub cost: Option<f64>,
    /// How long it took.
    pub duration: Option<Duration>,
}

impl RunChange {
    /// Nothing but a status.
    pub fn to(status: RunStatus) -> Self {
        Self { status, result: None, error: None, usage: None, cost: None, duration: None }
    }
}

/// Whether something was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It was.
    Yes,
    /// The run is over, or is not there.
    Over,
}

/// What changes of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentChange {
    /// Whether it takes prompts.
    Archived(bool),
    /// Its name.
    Name(Option<String>),
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// At most so many.
    pub limit: usize,
    /// Behind this place: the [`AgentRecord::cursor`] or [`RunRecord::cursor`] of the last one of the page before.
    pub after: Option<Cursor>,
    /// Agents that are archived, too.
    pub include_archived: bool,
}

/// A place in a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The time in microseconds, or the turn.
    pub at: i64,
    /// The id.
    pub id: String,
}

impl Default for Page {
    /// The first hundred.
    fn default() -> Self {
        Self { limit: 100, after: None, include_archived: false }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.id)
    }
}

impl std::str::FromStr for Cursor {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<Self, AgentError> {
        let parts =
            text.split_once('.').and_then(|(at, id)| Some(Self { at: at.parse().ok()?, id: id.into() }));
        parts.ok_or_else(|| AgentError::fault("cursor", "is not one that a list gave"))
    }
}

/// Where an agent is kept.
#[derive(Debug, Clone, Default)]
pub enum StoreChoice {
    /// `SQLite` in Toolway's state directory.
    #[default]
    Default,
    /// `SQLite` in this folder.
    Sqlite(PathBuf),
    /// Lines of JSON in this folder.
    Jsonl(PathBuf),
    /// Only in memory: what one handle keeps no other one sees. [`crate::memory_store`] can be shared.
    Memory,
    /// A store of the program's, or one that several agents share.
    Shared(Arc<dyn Store>),
}

impl StoreChoice {
    /// Opens it. Blocks.
    pub(crate) fn open(&self, state_dir: Option<PathBuf>) -> Result<Arc<dyn Store>, AgentError> {
        let default = || {
            state_dir.map(|dir| dir.join("agents")).ok_or_else(|| {
                AgentError::fault(
                    "local.store",
                    "there is no home directory to keep agents in: name a folder",
                )
            })
        };
        Ok(match self {
            Self::Default => Arc::new(sqlite::Sqlite::open(&default()?)?),
            Self::Sqlite(dir) => Arc::new(sqlite::Sqlite::open(dir)?),
            Self::Jsonl(dir) => Arc::new(jsonl::Jsonl::open(dir)?),
            Self::Memory => Arc::new(memory::Memory::new()?),
            Self::Shared(store) => Arc::clone(store),
        })
    }
}
