//! Owns the estimate of tokens, and which messages of a conversation fit. It must not know what they say.

/// How many characters make a token, about, in any script.
pub(super) const CHARACTERS_PER_TOKEN: usize = 4;
/// What an image costs.
pub(super) const IMAGE_TOKENS: usize = 1200;

/// What a prompt costs in tokens, about: a token begun counts whole.
pub fn estimate(text: &str, images: usize) -> usize {
    text.chars().count().div_ceil(CHARACTERS_PER_TOKEN).saturating_add(images.saturating_mul(IMAGE_TOKENS))
}

/// Which entries fit, and how many do not.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fit {
    /// One answer for each entry.
    pub(super) shown: Vec<bool>,
    /// How many entries that have a text are not shown.
    pub(super) omitted: usize,
}

/// What there is to decide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand<'a> {
    /// The characters of each entry, oldest first, with what separates it from its neighbour; 0 is no entry.
    pub(super) entries: &'a [usize],
    /// The entry that is shown in any case.
    pub(super) kept: Option<usize>,
    /// The characters of everything else that is sent in any case.
    pub(super) fixed: usize,
    /// The characters of the notice that entries are missing.
    pub(super) notice: usize,
    /// The images that are sent in any case.
    pub(super) images: usize,
    /// The most tokens.
    pub(super) budget_tokens: Option<usize>,
}

impl Demand<'_> {
    /// The newest entries up to the first that does not fit; those before it go, also smaller ones, so that what is shown
    /// has no gap but the one.
    pub(super) fn fit(&self) -> Fit {
        let kept = self.kept.and_then(|kept| self.entries.get(kept)).copied().unwrap_or(0);
        let all = self.entries.iter().fold(self.fixed, |sum, entry| sum.saturating_add(*entry));
        let limit = self.budget_tokens.map(|tokens| {
            let text = tokens.saturating_sub(self.images.saturating_mul(IMAGE_TOKENS));
            text.saturating_mul(CHARACTERS_PER_TOKEN)
        });
        let Some(limit) = limit.filter(|limit| *limit < all) else {
            return Fit { shown: vec![true; self.entries.len()], omitted: 0 };
        };
        let mut left = limit.saturating_sub(self.fixed.saturating_add(kept).saturating_add(self.notice));
        let mut is_full = false;
        let mut shown = vec![false; self.entries.len()];
        for (place, (entry, shown)) in self.entries.iter().zip(&mut shown).enumerate().rev() {
            if self.kept == Some(place) {
                *shown = true;
                continue;
            }
            is_full |= *entry > left;
            if !is_full {
                left -= entry;
                *shown = true;
            }
        }
        let omitted =
            self.entries.iter().zip(&shown).filter(|(entry, shown)| **entry > 0 && !**shown).count();
        Fit { shown, omitted }
    }
}

#[cfg(test)]
mod tests;
