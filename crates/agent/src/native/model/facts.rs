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

/// One line of what is known: name, context, then prices of input, output, cache read and cache write.
type Line = (&'static str, u64, [f64; 4]);

/// Prices as their makers publish them for the plain service. Models whose price depends on the length of the prompt
/// have none here.
const KNOWN: [Line; 20] = [
    ("gpt-5", 400_000, [1.25, 10.0, 0.125, 1.25]),
    ("gpt-5-codex", 400_000, [1.25, 10.0, 0.125, 1.25]),
    ("gpt-5.1", 400_000, [1.25, 10.0, 0.125, 1.25]),
    ("gpt-5-mini", 400_000, [0.25, 2.0, 0.025, 0.25]),
    ("gpt-5-nano", 400_000, [0.05, 0.4, 0.005, 0.05]),
    ("gpt-4.1", 1_047_576, [2.0, 8.0, 0.5, 2.0]),
    ("gpt-4.1-mini", 1_047_576, [0.4, 1.6, 0.1, 0.4]),
    ("gpt-4.1-nano", 1_047_576, [0.1, 0.4, 0.025, 0.1]),
    ("gpt-4o", 128_000, [2.5, 10.0, 1.25, 2.5]),
    ("gpt-4o-mini", 128_000, [0.15, 0.6, 0.075, 0.15]),
    ("o3", 200_000, [2.0, 8.0, 0.5, 2.0]),
    ("o4-mini", 200_000, [1.1, 4.4, 0.275, 1.1]),
    ("claude-opus-4-5", 200_000, [5.0, 25.0, 0.5, 6.25]),
    ("claude-opus-4-1", 200_000, [15.0, 75.0, 1.5, 18.75]),
    ("claude-opus-4", 200_000, [15.0, 75.0, 1.5, 18.75]),
    ("claude-sonnet-4-5", 200_000, [3.0, 15.0, 0.3, 3.75]),
    ("claude-sonnet-4", 200_000, [3.0, 15.0, 0.3, 3.75]),
    ("claude-haiku-4-5", 200_000, [1.0, 5.0, 0.1, 1.25]),
    ("claude-3-5-haiku", 200_000, [0.8, 4.0, 0.08, 1.0]),
    ("gemini-2.5-flash", 1_048_576, [0.3, 2.5, 0.03, 0.3]),
];

impl ModelFacts {
    /// What is known of a model by its name, at a service whose models read pictures or not. Prices hold at the
    /// service's own address alone.
    pub(super) fn of(model: &str, images: bool, official: bool) -> Self {
        let line = KNOWN.iter().find(|(name, ..)| is(model, name));
        Self {
            images,
            context: line.map(|(_, context, _)| *context),
            prices: line.filter(|_| official).map(|(.., [input, output, cache_read, cache_write])| Prices {
                input: *input,
                output: *output,
                cache_read: *cache_read,
                cache_write: *cache_write,
            }),
        }
    }
}

/// The names of the models that are known.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(name, ..)| *name)
}

/// The name itself, or with the date of a version: `-2025-04-14`, `-20250929`, `-latest`.
fn is(model: &str, name: &str) -> bool {
    model.strip_prefix(name).is_some_and(|rest| {
        let version = rest.strip_prefix('-').is_some_and(|rest| {
            rest == "latest"
                || (rest.len() >= 8 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
        });
        rest.is_empty() || version
    })
}
