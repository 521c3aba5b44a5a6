//! Gates: token requests that are held until the test lets them go on.

use std::collections::BTreeMap;

use super::journal::Grant;

/// Where a request is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// It has been read, and nothing was done. If its connection goes away while it is held, it is dropped.
    BeforeProcessing,
    /// It was processed (the old token is used up, a new pair given), and its answer is not sent.
    BeforeAnswer,
}

/// Which requests of a grant are held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Which {
    /// The next one.
    Next,
    /// That one since the issuer's start, the first being 1.
    Nth(u32),
    /// Every one until the gates are opened.
    Each,
}

/// A request that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// How many requests with this grant came up to it, itself counted.
    pub number: u32,
    /// The grant.
    pub grant: Grant,
    /// Where it is held.
    pub stage: Stage,
    /// The label of the token or code that it came with.
    pub presented: Option<String>,
}

#[derive(Debug)]
struct Rule {
    grant: Grant,
    stage: Stage,
    which: Which,
}

#[derive(Debug, Default)]
pub(super) struct Gates {
    rules: Vec<Rule>,
    counts: BTreeMap<Grant, u32>,
    held: BTreeMap<u64, Held>,
    tickets: u64,
}

impl Gates {
    pub(super) fn add(&mut self, grant: Grant, stage: Stage, which: Which) {
        self.rules.push(Rule { grant, stage, which });
    }

    /// Counts a request that has come; its number.
    pub(super) fn count(&mut self, grant: Grant) -> u32 {
        let count = self.counts.entry(grant).or_default();
        *count += 1;
        *count
    }

    /// A ticket for a request that must be held here. It is held while the ticket is known.
    pub(super) fn stop(&mut self, held: Held) -> Option<u64> {
        let fits = |rule: &Rule| {
            rule.grant == held.grant
                && rule.stage == held.stage
                && match rule.which {
                    Which::Next | Which::Each => true,
                    Which::Nth(number) => number == held.number,
                }
        };
        let place = self.rules.iter().position(fits)?;
        if self.rules.get(place).is_some_and(|rule| rule.which != Which::Each) {
            self.rules.remove(place);
        }
        self.tickets += 1;
        self.held.insert(self.tickets, held);
        Some(self.tickets)
    }

    pub(super) fn is_held(&self, ticket: u64) -> bool {
        self.held.contains_key(&ticket)
    }

    pub(super) fn forget(&mut self, ticket: u64) {
        self.held.remove(&ticket);
    }

    pub(super) fn held(&self) -> Vec<Held> {
        self.held.values().cloned().collect()
    }

    /// Lets all go that are held.
    pub(super) fn release(&mut self) {
        self.held.clear();
    }

    /// Holds none any more, and lets all go.
    pub(super) fn open(&mut self) {
        self.rules.clear();
        self.held.clear();
    }
}
