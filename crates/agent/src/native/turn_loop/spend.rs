//! Owns what a run has used, and whether that is more than it may.

use crate::event::Usage;
use crate::native::model::Prices;
use crate::options::Limits;

/// Calls to the model of a run that says nothing about it.
pub(crate) const DEFAULT_TURNS: u32 = 250;

/// What was used.
#[derive(Debug)]
pub(super) struct Spend {
    prices: Option<Prices>,
    usage: Usage,
    cost: f64,
    cost_known: bool,
    /// Tokens of answers whose service told no numbers, as estimated. They count for limits alone.
    guessed: u64,
}

impl Spend {
    pub(super) fn new(prices: Option<Prices>) -> Self {
        Self { prices, usage: Usage::default(), cost: 0.0, cost_known: prices.is_some(), guessed: 0 }
    }

    pub(super) fn has_prices(&self) -> bool {
        self.prices.is_some()
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// US dollars, where all of it has a price.
    pub(super) fn cost(&self) -> Option<f64> {
        self.cost_known.then_some(self.cost)
    }

    pub(super) fn add(&mut self, usage: Usage) {
        self.usage += usage;
        if let Some(prices) = &self.prices {
            self.cost += prices.cost(&usage);
        }
    }

    pub(super) fn guess(&mut self, tokens: u64) {
        self.guessed = self.guessed.saturating_add(tokens);
    }

    /// What something beside the loop's own model used.
    pub(super) fn add_other(&mut self, usage: Usage, cost: Option<f64>) {
        self.usage += usage;
        match cost {
            Some(cost) => self.cost += cost,
            None if usage == Usage::default() => {}
            None => self.cost_known = false,
        }
    }

    /// Tokens that count for limits.
    pub(super) fn tokens(&self) -> u64 {
        self.usage.total().saturating_add(self.guessed)
    }

    /// The limit that does not let the next step begin.
    pub(super) fn over(&self, limits: &Limits, steps: u32) -> Option<String> {
        let turns = limits.turns.unwrap_or(DEFAULT_TURNS);
        if steps >= turns {
            return Some(format!(
                "the run has reached its limit of {turns} turns: raise `limits.turns` to let it go on"
            ));
        }
        self.over_tokens(limits, 0).or_else(|| {
            let cost = limits.cost?;
            (self.cost >= cost).then(|| {
                format!(
                    "the run has cost {:.4} US dollars, and its limit is {cost:.4}: raise `limits.cost` to let it go on",
                    self.cost
                )
            })
        })
    }

    /// The limit of tokens, with so many that are being written.
    pub(super) fn over_tokens(&self, limits: &Limits, writing: u64) -> Option<String> {
        let most = limits.tokens?;
        let tokens = self.tokens().saturating_add(writing);
        (tokens >= most).then(|| {
            format!("the run has used {tokens} tokens, and its limit is {most}: raise `limits.tokens` to let it go on")
        })
    }
}
