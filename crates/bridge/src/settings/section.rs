//! Owns the reading of one JSON object key by key: what fits is taken, what does not is left with a warning. A value
//! is looked at only when its key is asked for, so that no value costs another one.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::warning::Warning;

/// Not more warnings than somebody reads.
const MOST_WARNINGS: usize = 50;
/// Not more of a key than is needed to find it.
const KEY_SHOWN: usize = 80;

/// The warnings of one file.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    list: Vec<Warning>,
    more: usize,
}

impl Warnings {
    pub(super) fn push(&mut self, key: impl Into<String>, message: impl Into<String>) {
        if self.list.len() < MOST_WARNINGS {
            self.list.push(Warning::new(key, message));
        } else {
            self.more += 1;
        }
    }

    fn is_full(&self) -> bool {
        self.list.len() >= MOST_WARNINGS
    }

    pub(super) fn finish(mut self) -> Vec<Warning> {
        if self.more > 0 {
            self.list.push(Warning::file(format!("{} more warnings", self.more)));
        }
        self.list
    }
}

/// The members of an object in their order, values unread. `None` if it is none.
pub(super) fn members(raw: &RawValue) -> Option<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(raw.get()).deserialize_map(Members).ok()
}

/// One object of the file.
pub(super) struct Section<'a, 'w> {
    path: String,
    members: Vec<(String, &'a RawValue)>,
    asked: Vec<&'static str>,
    tolerated: Vec<&'static str>,
    warnings: &'w mut Warnings,
}

impl<'a, 'w> Section<'a, 'w> {
    /// The file's own object.
    pub(super) fn root(members: Vec<(String, &'a RawValue)>, warnings: &'w mut Warnings) -> Self {
        Self { path: String::new(), members, asked: Vec::new(), tolerated: Vec::new(), warnings }
    }

    /// The object under a key, read by `read`. Without one, `read` sees an empty object.
    pub(super) fn section(&mut self, key: &'static str, read: impl FnOnce(&mut Section<'a, '_>)) {
        let members = match self.raw(key) {
            None => Vec::new(),
            Some(raw) => members(raw).unwrap_or_else(|| {
                self.wrong(key, "is no object, so that everything in it has its default");
                Vec::new()
            }),
        };
        let path = self.path_of(key);
        let mut section =
            Section { path, members, asked: Vec::new(), tolerated: Vec::new(), warnings: self.warnings };
        read(&mut section);
        section.finish();
    }

    pub(super) fn flag(&mut self, key: &'static str, value: &mut bool) {
        self.read(key, value, "is neither true nor false");
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let mut text = String::new();
        self.read(key, &mut text, "is no text").then_some(text)
    }

    /// A number that 64 bits hold.
    pub(super) fn number(&mut self, key: &'static str) -> Option<f64> {
        let mut number = 0.0_f64;
        let is_read = self.read(key, &mut number, "is no finite number");
        (is_read && number.is_finite()).then_some(number)
    }

    /// A list of texts; others in it are left out.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<String>> {
        let raw = self.raw(key)?;
        let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) else {
            self.wrong(key, "is no list of texts");
            return None;
        };
        let texts: Vec<String> =
            items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect();
        if texts.len() < items.len() {
            self.wrong(
                key,
                format!("has {} values that are no texts, which are left out", items.len() - texts.len()),
            );
        }
        Some(texts)
    }

    /// One of a few texts.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, value: &mut T, choices: &[(&str, T)]) {
        let Some(raw) = self.raw(key) else { return };
        let text = serde_json::from_str::<String>(raw.get()).ok();
        if let Some((_, chosen)) = choices.iter().find(|(name, _)| text.as_deref() == Some(name)) {
            *value = *chosen;
        } else {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            self.wrong(key, format!("is none of {}", names.join(", ")));
        }
    }

    /// An object of `true` and `false` under keys of the user's own.
    pub(super) fn flags(&mut self, key: &'static str, flags: &mut BTreeMap<String, bool>) {
        let Some(raw) = self.raw(key) else { return };
        let Some(members) = members(raw) else {
            self.wrong(key, "is no object");
            return;
        };
        for (name, raw) in members {
            if let Ok(flag) = serde_json::from_str(raw.get()) {
                flags.insert(name, flag);
            } else {
                let path = format!("{}.{}", self.path_of(key), shown(&name));
                self.warnings.push(path, "is neither true nor false");
            }
        }
    }

    /// A key that this edition does not read, and what to say about it.
    pub(super) fn legacy(&mut self, key: &'static str, message: &str) {
        self.tolerated.push(key);
        if self.members.iter().any(|(name, _)| name == key) {
            self.wrong(key, message);
        }
    }

    /// A key that may stand there.
    pub(super) fn ignored(&mut self, key: &'static str) {
        self.tolerated.push(key);
    }

    /// Warns of every key that nobody asked for.
    pub(super) fn finish(self) {
        for (name, _) in &self.members {
            if self.asked.iter().chain(&self.tolerated).any(|known| known == name) {
                continue;
            }
            let meant = if self.warnings.is_full() { None } else { nearest(name, &self.asked) };
            let message = match meant {
                Some(meant) => format!("is unknown; did you mean {}", self.path_of(meant)),
                None => "is unknown".to_owned(),
            };
            let path = self.path_of(&shown(name));
            self.warnings.push(path, message);
        }
    }

    /// The value of a key. Of several the last one counts.
    fn raw(&mut self, key: &'static str) -> Option<&'a RawValue> {
        self.asked.push(key);
        self.members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    fn read<T: serde::de::DeserializeOwned>(
        &mut self,
        key: &'static str,
        value: &mut T,
        wrong: &str,
    ) -> bool {
        let Some(raw) = self.raw(key) else { return false };
        let read = serde_json::from_str(raw.get()).map(|read| *value = read);
        if read.is_err() {
            self.wrong(key, wrong);
        }
        read.is_ok()
    }

    fn wrong(&mut self, key: &str, message: impl Into<String>) {
        let path = self.path_of(key);
        self.warnings.push(path, message);
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// A key for a warning: one line, not too long.
fn shown(key: &str) -> String {
    let plain = key.chars().all(|character| character.is_ascii_graphic());
    let cut = key.char_indices().nth(KEY_SHOWN).map_or(key.len(), |(place, _)| place);
    let start = key.get(..cut).unwrap_or_default();
    match (plain && !key.is_empty(), cut < key.len()) {
        (true, false) => key.to_owned(),
        (true, true) => format!("{start}..."),
        (false, false) => format!("{start:?}"),
        (false, true) => format!("{start:?}..."),
    }
}

/// The key that somebody meant who wrote another one: at most every third sign is wrong.
fn nearest(written: &str, keys: &[&'static str]) -> Option<&'static str> {
    if written.len() > KEY_SHOWN {
        return None;
    }
    let written = written.to_ascii_lowercase().replace(['_', '-'], "");
    keys.iter()
        .map(|key| (strsim::osa_distance(&key.to_ascii_lowercase(), &written), *key))
        .filter(|(distance, key)| *distance <= key.len().max(written.len()) / 3)
        .min()
        .map(|(_, key)| key)
}
