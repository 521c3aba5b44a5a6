//! Owns the register of the secrets that this process uses. Knows values, not whose they are: who holds one, holds a
//! [`Registration`], and when the last of them is gone, the value is forgotten after a while.

mod forms;
mod patterns;
#[cfg(test)]
mod tests;
mod views;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

use patterns::Patterns;
use secrecy::{ExposeSecret, SecretString};

/// Values that are known at the same time. Of more, those that nobody holds any longer go first, then the oldest.
const MOST: usize = 4096;
/// Values that nobody holds any longer and that are still known: an error may be on its way that names one.
const LINGERING: usize = 256;

/// How many values are known, so that a process without any pays one load for a text.
static KNOWN: AtomicUsize = AtomicUsize::new(0);
static REGISTER: LazyLock<RwLock<Register>> = LazyLock::new(RwLock::default);

/// Keeps the parts of one value known.
#[derive(Debug)]
pub(crate) struct Registration(Vec<u64>);

impl Drop for Registration {
    fn drop(&mut self) {
        let mut register = REGISTER.write().unwrap_or_else(PoisonError::into_inner);
        for id in &self.0 {
            register.release(*id);
        }
        KNOWN.store(register.entries.len(), Ordering::Release);
    }
}

/// Makes a value known; `None`: nothing in it is worth looking for.
pub(crate) fn register(text: &str) -> Option<Registration> {
    let parts = forms::parts(text);
    if parts.is_empty() {
        return None;
    }
    let mut register = REGISTER.write().unwrap_or_else(PoisonError::into_inner);
    let ids = parts.into_iter().map(|part| register.hold(part)).collect();
    KNOWN.store(register.entries.len(), Ordering::Release);
    Some(Registration(ids))
}

/// Where known values stand in a text, in any form; ordered by their beginnings.
pub(crate) fn find(text: &[u8]) -> Vec<Range<usize>> {
    if KNOWN.load(Ordering::Acquire) == 0 {
        return Vec::new();
    }
    let register = REGISTER.read().unwrap_or_else(PoisonError::into_inner);
    let mut found = views::find(&register.patterns, text);
    found.sort_by_key(|range| (range.start, range.end));
    found.dedup();
    found
}

/// Up to where a text holds no beginning of a value that may go on in what comes after it.
pub(crate) fn finished(text: &[u8]) -> usize {
    if KNOWN.load(Ordering::Acquire) == 0 {
        return text.len();
    }
    views::unfinished(&REGISTER.read().unwrap_or_else(PoisonError::into_inner).patterns, text)
}

/// A text with its backslashes undone, where it has any.
pub(crate) fn unescaped(text: &[u8]) -> Option<views::View> {
    views::View::of(text, views::backslash)
}

/// A text by which a value is found again in the register.
#[derive(Debug)]
struct Key(SecretString);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.expose_secret().hash(state);
    }
}

#[derive(Debug)]
struct Entry {
    value: SecretString,
    holders: usize,
    patterns: Vec<usize>,
}

#[derive(Debug, Default)]
struct Register {
    next: u64,
    /// The oldest first.
    entries: BTreeMap<u64, Entry>,
    by_value: HashMap<Key, u64>,
    /// Those without a holder, the longest so first.
    lingering: VecDeque<u64>,
    patterns: Patterns,
}

impl Register {
    fn hold(&mut self, value: SecretString) -> u64 {
        let key = Key(value);
        if let Some(id) = self.by_value.get(&key).copied()
            && let Some(entry) = self.entries.get_mut(&id)
        {
            if entry.holders == 0 {
                self.lingering.retain(|other| *other != id);
            }
            entry.holders += 1;
            return id;
        }
        if self.entries.len() >= MOST {
            let oldest = self.lingering.pop_front();
            if let Some(id) = oldest.or_else(|| self.entries.keys().next().copied()) {
                self.forget(id);
            }
        }
        let id = self.next;
        self.next += 1;
        let patterns =
            forms::of(key.0.expose_secret()).into_iter().map(|form| self.patterns.add(form)).collect();
        self.entries.insert(id, Entry { value: key.0.clone(), holders: 1, patterns });
        self.by_value.insert(key, id);
        id
    }

    fn release(&mut self, id: u64) {
        // It may have been the oldest of too many.
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.holders = entry.holders.saturating_sub(1);
        if entry.holders > 0 {
            return;
        }
        self.lingering.push_back(id);
        if self.lingering.len() > LINGERING
            && let Some(id) = self.lingering.pop_front()
        {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.patterns.remove(&entry.patterns);
        self.by_value.remove(&Key(entry.value));
    }
}
