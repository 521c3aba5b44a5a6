//! Owns changes to a JSON text as splices: all of them are found first and made in one pass. Knows no protocol.

use std::borrow::Cow;
use std::ops::Range;

use toolway_wire::find::{Member, is_named, members};
use toolway_wire::push_string;

/// Splices of one text. They must not overlap.
#[derive(Debug, Default, Clone)]
pub struct Edits {
    splices: Vec<(Range<usize>, Cow<'static, [u8]>)>,
}

impl Edits {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing changes.
    pub fn is_empty(&self) -> bool {
        self.splices.is_empty()
    }

    /// What stands at `at` becomes `with`.
    pub fn replace(&mut self, at: Range<usize>, with: impl Into<Cow<'static, [u8]>>) {
        self.splices.push((at, with.into()));
    }

    /// `with` goes in before the byte at `at`.
    pub fn insert(&mut self, at: usize, with: impl Into<Cow<'static, [u8]>>) {
        self.replace(at..at, with);
    }

    /// The text with all changes.
    pub fn apply(mut self, text: &[u8]) -> Vec<u8> {
        self.splices.sort_by_key(|(at, _)| (at.start, at.end));
        let grows: usize = self.splices.iter().map(|(_, with)| with.len()).sum();
        let mut out = Vec::with_capacity(text.len() + grows);
        let mut from = 0;
        for (at, with) in &self.splices {
            out.extend_from_slice(text.get(from..at.start).unwrap_or_default());
            out.extend_from_slice(with);
            from = at.end.max(from);
        }
        out.extend_from_slice(text.get(from..).unwrap_or_default());
        out
    }

    /// Removes members of the object at `object`, and sets others (raw JSON values): in place where they are, else in
    /// front. A name that stands twice is removed twice, and set where it stands last.
    pub fn object(&mut self, json: &[u8], object: Range<usize>, remove: &[&str], set: &[(&str, &[u8])]) {
        let all: Vec<Member> = members(json, object.clone()).collect();
        let removed: Vec<bool> =
            all.iter().map(|member| remove.iter().any(|name| is_named(json, member, name))).collect();
        self.remove_runs(&all, &removed);
        let mut added = Vec::new();
        for (name, value) in set {
            let place =
                all.iter().zip(&removed).rfind(|(member, gone)| !**gone && is_named(json, member, name));
            if let Some((member, _)) = place {
                self.replace(member.value.clone(), value.to_vec());
                continue;
            }
            if !added.is_empty() {
                added.push(b',');
            }
            push_string(name, &mut added);
            added.push(b':');
            added.extend_from_slice(value);
        }
        if added.is_empty() {
            return;
        }
        if removed.iter().any(|gone| !gone) {
            added.push(b',');
        }
        // Before the first name, so that white space stays where it is.
        let place = all.first().map_or(object.start + 1, |first| first.name.start);
        self.insert(place, added);
    }

    /// Takes out runs of members with the commas that belong to them.
    fn remove_runs(&mut self, all: &[Member], removed: &[bool]) {
        let mut at = 0;
        while at < all.len() {
            let length = removed.iter().skip(at).take_while(|gone| **gone).count();
            if length == 0 {
                at += 1;
                continue;
            }
            let (first, last) = (all.get(at), all.get(at + length - 1));
            let before = at.checked_sub(1).and_then(|index| all.get(index));
            let after = all.get(at + length);
            if let (Some(first), Some(last)) = (first, last) {
                let range = match (before, after) {
                    (_, Some(after)) => first.name.start..after.name.start,
                    (Some(before), None) => before.value.end..last.value.end,
                    (None, None) => first.name.start..last.value.end,
                };
                self.replace(range, &b""[..]);
            }
            at += length;
        }
    }
}

/// The object `json` with these members set.
pub fn set_members(json: &[u8], set: &[(&str, &[u8])]) -> Vec<u8> {
    let mut edits = Edits::new();
    if let Some(object) = toolway_wire::find::find(json, &[]) {
        edits.object(json, object, &[], set);
    }
    edits.apply(json)
}

/// The object `json` without these members.
pub fn without_members(json: &[u8], remove: &[&str]) -> Vec<u8> {
    let mut edits = Edits::new();
    if let Some(object) = toolway_wire::find::find(json, &[]) {
        edits.object(json, object, remove, &[]);
    }
    edits.apply(json)
}
