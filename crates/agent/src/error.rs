//! Owns the errors of agents, one enumeration for every runtime. None of their texts holds a secret.

use std::fmt;
use std::time::Duration;

use crate::id::{AgentId, RunId};

/// One fault of what was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which server, subagent or tool, where it is one.
    pub subject: Option<String>,
    /// Which member, as a JSON pointer or a name: `mcpServers.db.command`.
    pub field: String,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Why an agent did not do what it was asked. Shown as `[code] message`.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The key was refused, or there is none.
    #[error("[{}] {message}", self.code())]
    Authentication {
        /// What happened and what to do.
        message: String,
    },
    /// Too many requests.
    #[error("[{}] {message}", self.code())]
    RateLimit {
        /// What happened.
        message: String,
        /// How long to wait, where the service said so.
        retry_after: Option<Duration>,
    },
    /// What was given cannot be used. All that is wrong at once.
    #[error("[{}] {}", self.code(), faults(.0))]
    Configuration(Vec<Fault>),
    /// A run of this agent is on its way.
    #[error("[{}] agent {agent} is busy with {run}: {}", self.code(), busy(*is_alive))]
    AgentBusy {
        /// The agent.
        agent: AgentId,
        /// Its run.
        run: RunId,
        /// A process executes it. Otherwise its process ended without a word.
        is_alive: bool,
    },
    /// The agent is archived.
    #[error("[{}] agent {agent} is archived: unarchive it first", self.code())]
    AgentArchived {
        /// The agent.
        agent: AgentId,
    },
    /// No such agent.
    #[error("[{}] there is no agent {agent} in {store}", self.code())]
    AgentNotFound {
        /// The agent.
        agent: AgentId,
        /// Where it was looked for.
        store: String,
    },
    /// No such run.
    #[error("[{}] there is no run {run} of agent {agent}", self.code())]
    RunNotFound {
        /// The agent.
        agent: AgentId,
        /// The run.
        run: RunId,
    },
    /// The service or an agent's process could not be reached, or gave up.
    #[error("[{}] {message}", self.code())]
    Network {
        /// What happened.
        message: String,
    },
    /// The model's service refused the request or failed for good.
    #[error("[{}] {message}", self.code())]
    Model {
        /// What happened.
        message: String,
    },
    /// A limit that was set was reached.
    #[error("[{}] {message}", self.code())]
    Limit {
        /// Which, and how to raise it.
        message: String,
    },
    /// The run cannot do that.
    #[error("[{}] {operation} is not possible: {reason}", self.code())]
    UnsupportedRunOperation {
        /// Which operation.
        operation: &'static str,
        /// Why not.
        reason: String,
    },
    /// A reader of events was too slow. The events themselves are in the store.
    #[error("[{}] more than {capacity} events wait to be read; observe the run from an offset instead", self.code())]
    StreamBufferOverflow {
        /// How many may wait.
        capacity: usize,
    },
    /// The store cannot be used.
    #[error("[{}] {message}", self.code())]
    Store {
        /// Which file, what happened, what to do.
        message: String,
    },
    /// The runtime failed: an agent's process ended, an answer made no sense.
    #[error("[{}] {message}", self.code())]
    Runtime {
        /// What happened.
        message: String,
    },
    /// The agent was closed.
    #[error("[{}] agent {agent} was closed", self.code())]
    Closed {
        /// The agent.
        agent: AgentId,
    },
}

impl AgentError {
    /// One fault.
    pub(crate) fn fault(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Configuration(vec![Fault { subject: None, field: field.into(), message: message.into() }])
    }

    /// The word by which programs tell errors apart.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Authentication { .. } => "unauthenticated",
            Self::RateLimit { .. } => "rate_limit_exceeded",
            Self::Configuration(_) => "validation_error",
            Self::AgentBusy { .. } => "agent_busy",
            Self::AgentArchived { .. } => "agent_archived",
            Self::AgentNotFound { .. } => "agent_not_found",
            Self::RunNotFound { .. } => "run_not_found",
            Self::Network { .. } => "network_error",
            Self::Model { .. } => "model_error",
            Self::Limit { .. } => "limit_reached",
            Self::UnsupportedRunOperation { .. } => "unsupported_run_operation",
            Self::StreamBufferOverflow { .. } => "stream_buffer_overflow",
            Self::Store { .. } => "store_error",
            Self::Runtime { .. } => "runtime_error",
            Self::Closed { .. } => "agent_closed",
        }
    }

    /// What happened, without the word of [`AgentError::code`] before it: for whoever keeps the two apart.
    pub fn message(&self) -> String {
        let whole = self.to_string();
        let bare = whole.strip_prefix(&format!("[{}] ", self.code())).map(str::to_owned);
        bare.unwrap_or(whole)
    }

    /// Whether the same may succeed later.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::RateLimit { .. } | Self::Network { .. })
    }
}

fn busy(is_alive: bool) -> &'static str {
    if is_alive {
        "wait for it, cancel it, or send with force"
    } else {
        "its process ended without a word; send with force to give it up, or cancel it"
    }
}

fn faults(faults: &[Fault]) -> String {
    match faults {
        [one] => one.to_string(),
        many => {
            let lines: Vec<String> = many.iter().map(|fault| format!("\n  {fault}")).collect();
            format!("{} faults:{}", many.len(), lines.concat())
        }
    }
}
