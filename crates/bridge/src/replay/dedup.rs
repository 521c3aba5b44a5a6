//! Owns which completions were shown already: they arrive by update, by step and by the transcript after the run.

use std::collections::{HashMap, HashSet, VecDeque};

use sha2::{Digest, Sha256};

use super::card::{Card, CardBlock};

/// Calls that are remembered; the oldest is forgotten first.
const REMEMBERED: usize = 16_384;

/// What a card shows: its name, arguments and result.
pub(super) type Fingerprint = [u8; 32];

pub(super) fn fingerprint(card: &Card) -> Fingerprint {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update(bytes.len().to_le_bytes());
        hash.update(bytes);
    };
    part(card.tool.as_bytes());
    part(card.title.as_bytes());
    part(card.args.bytes());
    part(&[u8::from(card.is_error)]);
    for block in &card.content {
        match block {
            CardBlock::Text { text } => part(text.as_bytes()),
            CardBlock::Image { data, .. } => part(data.as_bytes()),
        }
    }
    hash.finalize().into()
}

/// Who was shown of one fingerprint.
#[derive(Debug, Default, Clone, Copy)]
struct Shown {
    /// Completions without a known start whose start has not completed under its own id.
    unstarted: usize,
}

/// The completions of a session's run.
#[derive(Debug, Default)]
pub(super) struct Dedup {
    seen: HashSet<String>,
    seen_order: VecDeque<String>,
    shown: HashMap<Fingerprint, Shown>,
    shown_order: VecDeque<Fingerprint>,
}

impl Dedup {
    /// The id is seen for the first time; an empty id says nothing.
    pub(super) fn is_new(&mut self, id: &str) -> bool {
        if id.is_empty() {
            return true;
        }
        if !self.seen.insert(id.to_owned()) {
            return false;
        }
        self.seen_order.push_back(id.to_owned());
        if self.seen_order.len() > REMEMBERED
            && let Some(oldest) = self.seen_order.pop_front()
        {
            self.seen.remove(&oldest);
        }
        true
    }

    /// The id was seen.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.seen.contains(id)
    }

    /// Whether a completion is to be shown. Two calls that were started both show, also when they did the same; one
    /// without a known start is taken for a repetition of what was shown, and the other way round.
    pub(super) fn admit(&mut self, fingerprint: Fingerprint, started: bool) -> bool {
        let known = self.shown.get_mut(&fingerprint);
        match (started, known) {
            (false, Some(_)) => return false,
            (true, Some(shown)) if shown.unstarted > 0 => {
                shown.unstarted -= 1;
                return false;
            }
            (true, Some(_)) => return true,
            (_, None) => {}
        }
        self.shown.insert(fingerprint, Shown { unstarted: usize::from(!started) });
        self.shown_order.push_back(fingerprint);
        if self.shown_order.len() > REMEMBERED
            && let Some(oldest) = self.shown_order.pop_front()
        {
            self.shown.remove(&oldest);
        }
        true
    }
}
