//! Owns recorded results until a wrapper asks for them, once. It must not know any tool that runs.

use std::collections::{HashMap, VecDeque};

use super::card::Card;
use crate::call::CallId;
use crate::profile::Profile;

/// Records that wait; the oldest goes first.
const COUNT: usize = 2048;
/// What they may weigh together, in bytes.
const WEIGHT: usize = 64 << 20;

/// What a wrapper of a tool name is told when it is called.
#[derive(Debug, Clone, PartialEq)]
pub enum Replayed {
    /// The id is none of a replay: the real tool of that name runs.
    Ordinary,
    /// The recorded result.
    Result(Card),
    /// The tool had failed: the wrapper throws this text as its error.
    Failed {
        /// What to throw.
        message: String,
        /// The card, for renderers.
        card: Card,
    },
    /// There is nothing to show, and nothing is executed: the wrapper throws the text of this.
    Refused(Refusal),
}

/// Why a replay id gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Nothing was recorded under it, or it was shown already.
    #[error("no recorded result for this replayed call; nothing was executed")]
    NoRecord,
    /// It belongs to another session.
    #[error("no recorded result for this replayed call in this session; nothing was executed")]
    Foreign,
    /// It belongs to another tool.
    #[error("no recorded result for this replayed call under this tool; nothing was executed")]
    WrongTool,
}

#[derive(Debug)]
struct Record {
    owner: String,
    card: Card,
    weight: usize,
}

/// The records of a process, or of a session: every one has an owner.
#[derive(Debug)]
pub struct Records {
    profile: Profile,
    kept: HashMap<CallId, Record>,
    order: VecDeque<CallId>,
    weight: usize,
}

impl Records {
    /// No records.
    pub fn new(profile: &Profile) -> Self {
        Self { profile: *profile, kept: HashMap::new(), order: VecDeque::new(), weight: 0 }
    }

    /// Keeps a card for the wrapper of its tool, in the session of that owner.
    pub fn keep(&mut self, owner: &str, id: CallId, card: Card) {
        let weight = card.weight();
        if weight > WEIGHT {
            return;
        }
        self.drop_record(&id);
        while self.kept.len() >= COUNT || self.weight + weight > WEIGHT {
            let Some(oldest) = self.order.pop_front() else { break };
            self.drop_record(&oldest);
        }
        self.weight += weight;
        self.order.push_back(id.clone());
        self.kept.insert(id, Record { owner: owner.to_owned(), card, weight });
    }

    /// The record of an id, for this session and this tool: given out once. A request by another session or tool leaves
    /// it where it is. There is no real tool behind the display tool, so that it has no ordinary ids.
    pub fn take(&mut self, owner: &str, tool: &str, id: &str) -> Replayed {
        if !self.is_replay(id) {
            let is_display_tool = tool == self.profile.display_tool;
            return if is_display_tool { Replayed::Refused(Refusal::NoRecord) } else { Replayed::Ordinary };
        }
        let id = CallId::new(id);
        let Some(record) = self.kept.get(&id) else { return Replayed::Refused(Refusal::NoRecord) };
        if record.owner != owner {
            return Replayed::Refused(Refusal::Foreign);
        }
        if record.card.tool != tool {
            return Replayed::Refused(Refusal::WrongTool);
        }
        match self.drop_record(&id) {
            Some(card) if card.is_error => Replayed::Failed { message: card.text(), card },
            Some(card) => Replayed::Result(card),
            None => Replayed::Refused(Refusal::NoRecord),
        }
    }

    /// Whether the id is one of a replay, whoever wrote it.
    pub fn is_replay(&self, id: &str) -> bool {
        let id = id.trim_start();
        Profile::ALL.iter().chain([&self.profile]).any(|profile| {
            id.get(..profile.replay_prefix.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(profile.replay_prefix))
        })
    }

    /// Forgets the records of a session that ended or began anew.
    pub fn forget(&mut self, owner: &str) {
        let ids = self.kept.iter().filter(|(_, record)| record.owner == owner);
        for id in ids.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.drop_record(&id);
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    fn drop_record(&mut self, id: &CallId) -> Option<Card> {
        let record = self.kept.remove(id)?;
        self.weight -= record.weight;
        // Ids that were taken are swept out when they are the most.
        if self.order.len() > 2 * self.kept.len() + 64 {
            let kept = &self.kept;
            self.order.retain(|id| kept.contains_key(id));
        }
        Some(record.card)
    }
}
