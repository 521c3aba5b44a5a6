//! Owns what decides between an incremental prompt and a new agent. Pure: `now` is passed in.

mod pool;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::json::RawJson;
use crate::prompt::{Digest, HostSystem, Message, MessageBody};
use crate::skills::Catalogue;

pub use pool::{PoolKey, PoolMember};

/// After so many incremental prompts the agent gets everything anew, lest it drifts away from the host's view.
pub(crate) const MAX_INCREMENTAL: u32 = 20;
/// After this time without a send the agent gets everything anew.
pub(crate) const FRESH_FOR: Duration = Duration::from_mins(5);

/// What is about to be sent, as the host sees it.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The host's system prompt.
    pub system: &'a HostSystem,
    /// What stands in it for the host's catalogue of skills.
    pub catalogue: Option<&'a Catalogue>,
    /// The declarations of the tools: those of `tools/list`, or the host's own.
    pub tools: &'a [u8],
    /// The conversation, oldest first, the latest user message included.
    pub messages: &'a [Message],
    /// What one agent can serve without being replaced.
    pub pool: &'a PoolKey,
}

/// Which prompt is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Everything, for this reason.
    Bootstrap {
        /// Why.
        cause: Cause,
        /// The agent that is there must not be used: another one is to be created.
        new_agent: bool,
    },
    /// The latest user message alone.
    Incremental {
        /// How many of the messages the agent has been sent.
        sent: usize,
    },
}

/// Why everything is sent anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Nothing was sent to this agent yet.
    NeverSent,
    /// The host's system prompt is another one, or the catalogue of skills in it.
    SystemPrompt,
    /// The declarations of the tools are others.
    Tools,
    /// A message that the agent has was edited: its place, counted from 0.
    History(usize),
    /// There are fewer messages than the agent has.
    FewerMessages,
    /// A summary of another branch was added.
    BranchSummary,
    /// A summary of removed messages was added.
    CompactionSummary,
    /// What was kept of the last send cannot be read.
    UnreadableFingerprint,
    /// Twenty incremental prompts were sent.
    IncrementalLimit,
    /// The process was started anew, and the agent with it.
    Resumed,
    /// The pool key differs in this member.
    Pool(PoolMember),
    /// A send failed.
    SendError,
    /// The host compacted the conversation.
    Compaction,
    /// The user went to another place in the tree of the session.
    TreeNavigation,
    /// The connection to the agent is gone.
    DeadTransport,
    /// The last send is longer ago than five minutes.
    Stale,
}

impl Cause {
    /// The agent that is there must be replaced.
    pub fn needs_new_agent(&self) -> bool {
        !matches!(self, Self::NeverSent | Self::Resumed)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverSent => f.write_str("nothing was sent to this agent yet"),
            Self::SystemPrompt => f.write_str("the system prompt changed"),
            Self::Tools => f.write_str("the declarations of the tools changed"),
            Self::History(place) => write!(f, "message {} of the conversation changed", place + 1),
            Self::FewerMessages => f.write_str("the conversation is shorter than what the agent has"),
            Self::BranchSummary => f.write_str("a branch summary was added"),
            Self::CompactionSummary => f.write_str("a compaction summary was added"),
            Self::UnreadableFingerprint => f.write_str("what was kept of the last send cannot be read"),
            Self::IncrementalLimit => write!(f, "{MAX_INCREMENTAL} incremental prompts were sent"),
            Self::Resumed => f.write_str("the agent was resumed by a new process"),
            Self::Pool(member) => write!(f, "{member} changed"),
            Self::SendError => f.write_str("the last send failed"),
            Self::Compaction => f.write_str("the conversation was compacted"),
            Self::TreeNavigation => f.write_str("the user moved in the tree of the session"),
            Self::DeadTransport => f.write_str("the connection to the agent is gone"),
            Self::Stale => write!(f, "the last send is more than {} seconds ago", FRESH_FOR.as_secs()),
        }
    }
}

/// What of a conversation an agent was sent, as digests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    system: Digest,
    tools: Digest,
    messages: Vec<Digest>,
}

impl Fingerprint {
    /// The fingerprint of this situation.
    pub fn of(situation: &Situation<'_>) -> Self {
        let mut system = serde_json::to_vec(situation.system).unwrap_or_default();
        if let Some(catalogue) = situation.catalogue {
            system.push(b'\n');
            system.extend_from_slice(catalogue.text().as_bytes());
        }
        Self {
            system: Digest::of(&system),
            tools: Digest::of(situation.tools),
            messages: situation.messages.iter().map(Message::digest).collect(),
        }
    }

    /// How this later one departs from what was sent; `messages` are those of the later one.
    fn divergence(&self, later: &Self, messages: &[Message]) -> Option<Cause> {
        if self.system != later.system {
            return Some(Cause::SystemPrompt);
        }
        if self.tools != later.tools {
            return Some(Cause::Tools);
        }
        let edited = self.messages.iter().zip(&later.messages).position(|(sent, now)| sent != now);
        if let Some(place) = edited {
            return Some(Cause::History(place));
        }
        if later.messages.len() < self.messages.len() {
            return Some(Cause::FewerMessages);
        }
        let added = messages.iter().skip(self.messages.len());
        added.into_iter().find_map(|message| match message.body() {
            MessageBody::BranchSummary { .. } => Some(Cause::BranchSummary),
            MessageBody::CompactionSummary { .. } => Some(Cause::CompactionSummary),
            _ => None,
        })
    }
}

/// A decision with what becomes known of the agent once its prompt was accepted.
#[derive(Debug, Clone)]
#[must_use = "a send that was accepted is to be committed"]
pub struct Step {
    /// Which prompt is due.
    pub decision: Decision,
    fingerprint: Fingerprint,
    pool: PoolKey,
}

/// What one agent knows of a conversation.
#[derive(Debug, Clone, Default)]
pub struct Continuity {
    sent: Option<Sent>,
    /// What happened since, and forces everything anew.
    broken: Option<Cause>,
}

#[derive(Debug, Clone)]
struct Sent {
    fingerprint: Fingerprint,
    pool: PoolKey,
    incremental: u32,
    /// `None`: an earlier process sent it.
    at: Option<Instant>,
}

/// The form in which it outlives the process.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    fingerprint: Fingerprint,
    pool: PoolKey,
    incremental: u32,
}

impl Continuity {
    /// An agent that was sent nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// An agent that a new process resumes, with what [`Self::kept`] gave. It gets everything once more, but need not be
    /// replaced if nothing departs from what it was sent.
    pub fn resumed(kept: &[u8]) -> Self {
        match serde_json::from_slice::<Kept>(kept) {
            Ok(Kept { version: Self::KEPT_VERSION, fingerprint, pool, incremental }) => {
                Self { sent: Some(Sent { fingerprint, pool, incremental, at: None }), broken: None }
            }
            _ => Self { sent: None, broken: Some(Cause::UnreadableFingerprint) },
        }
    }

    const KEPT_VERSION: u32 = 1;

    /// What a later process can resume from: digests, no text. `None` before the first send.
    pub fn kept(&self) -> Option<RawJson> {
        let Sent { fingerprint, pool, incremental, .. } = self.sent.clone()?;
        let kept = Kept { version: Self::KEPT_VERSION, fingerprint, pool, incremental };
        serde_json::to_value(kept).ok().map(|value| RawJson::of(&value))
    }

    /// Which prompt is due. Nothing is changed: a send may still fail.
    pub fn decide(&self, situation: &Situation<'_>, now: Instant) -> Step {
        let fingerprint = Fingerprint::of(situation);
        let decision = match self.cause(situation, &fingerprint, now) {
            Some(cause) => Decision::Bootstrap { new_agent: cause.needs_new_agent(), cause },
            None => Decision::Incremental {
                sent: self.sent.as_ref().map_or(0, |sent| sent.fingerprint.messages.len()),
            },
        };
        Step { decision, fingerprint, pool: situation.pool.clone() }
    }

    fn cause(&self, situation: &Situation<'_>, fingerprint: &Fingerprint, now: Instant) -> Option<Cause> {
        if let Some(broken) = &self.broken {
            return Some(broken.clone());
        }
        let Some(sent) = &self.sent else { return Some(Cause::NeverSent) };
        if let Some(member) = sent.pool.difference(situation.pool) {
            return Some(Cause::Pool(member));
        }
        if let Some(cause) = sent.fingerprint.divergence(fingerprint, situation.messages) {
            return Some(cause);
        }
        let Some(at) = sent.at else { return Some(Cause::Resumed) };
        if sent.incremental >= MAX_INCREMENTAL {
            return Some(Cause::IncrementalLimit);
        }
        (now.saturating_duration_since(at) >= FRESH_FOR).then_some(Cause::Stale)
    }

    /// The agent accepted the prompt of this step.
    pub fn commit(&mut self, step: Step, now: Instant) {
        let before = self.sent.as_ref().map_or(0, |sent| sent.incremental);
        let incremental = match step.decision {
            Decision::Bootstrap { .. } => 0,
            Decision::Incremental { .. } => before.saturating_add(1),
        };
        self.sent = Some(Sent { fingerprint: step.fingerprint, pool: step.pool, incremental, at: Some(now) });
        self.broken = None;
    }

    /// Something happened after which only everything anew will do: a failed send, a compaction, a move in the tree, a dead
    /// connection. It holds until a send is accepted; the first cause stays.
    pub fn broken(&mut self, cause: Cause) {
        self.broken.get_or_insert(cause);
    }
}
