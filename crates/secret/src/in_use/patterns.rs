//! Owns the search for many texts at once. An automaton of all of them would have to be built anew for each token that
//! comes, and would hold them in memory that nobody wipes; here the last four bytes of a text lead to it.

use std::collections::HashMap;
use std::ops::Range;

use secrecy::ExposeSecret;

use super::forms::Form;

/// Bytes by which a text is found.
const WINDOW: usize = 4;
const BITS: u32 = 16;
const WORDS: usize = (1 << BITS) / 64;

/// The texts that are looked for.
#[derive(Debug)]
pub(super) struct Patterns {
    all: Vec<Option<Form>>,
    free: Vec<usize>,
    by_end: HashMap<u32, Vec<usize>>,
    /// Which ends there are, roughly: nearly every byte of a text is done with one look here.
    ends: Box<[u64]>,
}

impl Default for Patterns {
    fn default() -> Self {
        let ends = vec![0; WORDS].into_boxed_slice();
        Self { all: Vec::new(), free: Vec::new(), by_end: HashMap::new(), ends }
    }
}

impl Patterns {
    /// Looks for this one too, which is not shorter than four bytes.
    pub(super) fn add(&mut self, form: Form) -> usize {
        let end = last(form.text.expose_secret().as_bytes());
        let place = if let Some(place) = self.free.pop() {
            if let Some(free) = self.all.get_mut(place) {
                *free = Some(form);
            }
            place
        } else {
            self.all.push(Some(form));
            self.all.len() - 1
        };
        if let Some(end) = end {
            self.by_end.entry(end).or_default().push(place);
            mark(&mut self.ends, end);
        }
        place
    }

    /// Looks for these no longer.
    pub(super) fn remove(&mut self, places: &[usize]) {
        for place in places {
            let form = self.all.get_mut(*place).and_then(Option::take);
            let Some(end) = form.and_then(|form| last(form.text.expose_secret().as_bytes())) else {
                continue;
            };
            self.free.push(*place);
            if let Some(same) = self.by_end.get_mut(&end) {
                same.retain(|other| other != place);
                if same.is_empty() {
                    self.by_end.remove(&end);
                }
            }
        }
        self.ends.fill(0);
        for end in self.by_end.keys() {
            mark(&mut self.ends, *end);
        }
    }

    /// Where the end of the text begins that may be the beginning of one of them; its length where there is none.
    pub(super) fn unfinished(&self, text: &[u8]) -> usize {
        let mut least = text.len();
        for form in self.all.iter().flatten() {
            let value = form.text.expose_secret().as_bytes();
            // A whole one is none that is only begun.
            let from = (text.len() + 1).saturating_sub(value.len());
            let begins = |at: &usize| text.get(*at..).is_some_and(|end| value.starts_with(end));
            least = (from..least).find(begins).unwrap_or(least);
        }
        least
    }

    /// Every place where one of them stands.
    pub(super) fn find(&self, text: &[u8], found: &mut Vec<Range<usize>>) {
        let mut window = 0;
        for (at, byte) in text.iter().enumerate() {
            window = (window >> 8) | (u32::from(*byte) << 24);
            if is_marked(&self.ends, window) && at + 1 >= WINDOW {
                self.ending(text, at + 1, window, found);
            }
        }
    }

    #[cold]
    fn ending(&self, text: &[u8], end: usize, window: u32, found: &mut Vec<Range<usize>>) {
        for place in self.by_end.get(&window).into_iter().flatten() {
            let Some(Some(form)) = self.all.get(*place) else { continue };
            let value = form.text.expose_secret().as_bytes();
            let Some(start) = end.checked_sub(value.len()) else { continue };
            if text.get(start..end) == Some(value) {
                found.push(if form.base64 { with_neighbours(text, start..end) } else { start..end });
            }
        }
    }
}

/// A find in base64 with the characters beside it that hold some of its bits.
fn with_neighbours(text: &[u8], mut range: Range<usize>) -> Range<usize> {
    let is_base64 =
        |at: usize| text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte));
    if range.start > 0 && is_base64(range.start - 1) {
        range.start -= 1;
    }
    if is_base64(range.end) {
        range.end += 1;
    }
    while text.get(range.end) == Some(&b'=') {
        range.end += 1;
    }
    range
}

fn last(text: &[u8]) -> Option<u32> {
    text.last_chunk::<WINDOW>().map(|bytes| u32::from_le_bytes(*bytes))
}

fn slot(end: u32) -> (usize, u64) {
    let hash = end.wrapping_mul(0x9E37_79B1) >> (32 - BITS);
    ((hash / 64) as usize, 1 << (hash % 64))
}

fn mark(ends: &mut [u64], end: u32) {
    let (word, bit) = slot(end);
    if let Some(word) = ends.get_mut(word) {
        *word |= bit;
    }
}

fn is_marked(ends: &[u64], end: u32) -> bool {
    let (word, bit) = slot(end);
    ends.get(word).is_some_and(|word| word & bit != 0)
}
