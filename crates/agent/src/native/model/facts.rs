//! Owns what is known of models: how much they read, whether they see, and what they cost. It must not know services.

use crate::event::Usage;

/// What is known of a model. What is not known is `None`, never guessed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ModelFacts {
    /// It reads pictures. Of an unknown model, as its service's models do.
    pub(crate) images: bool,
    /// Tokens that it reads and writes at most in one call.
    pub(crate) context: Option<u64>,
    /// What it costs.
    pub(crate) prices: Option<Prices>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Prices {
    /// Read.
    pub(crate) input: f64,
    /// Written.
    pub(crate) output: f64,
    /// Read from a cache.
    pub(crate) cache_read: f64,
    /// Written to a cache.
    pub(crate) cache_write: f64,
}

impl Prices {
    /// What that much costs, in US dollars.
    pub(crate) fn cost(&self, usage: &Usage) -> f64 {
        let parts = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
        ];
        parts.into_iter().map(|(tokens, price)| millions(tokens) * price).sum()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a number of tokens is far below what a float counts exactly")]
fn millions(tokens: u64) -> f64 {
    tokens as f64 / 1_000_000.0
}
