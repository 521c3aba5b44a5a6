//! Owns the MCP names of host tools: pure, injective, in any order of registration the same. Knows no tool but its name.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::profile::Profile;

/// Server key, separator and name fit into this many bytes: the strictest client that is known.
const CLIENT_LIMIT: usize = 60;
/// What model APIs take for the name of a tool.
const API_LIMIT: usize = 64;
/// The stem of a name that has no character of its own.
const NAMELESS: &str = "tool";

/// The names of a set of host tools, both ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    by_real: HashMap<String, String>,
    by_mcp: HashMap<String, String>,
}

impl Naming {
    /// Names every host tool of the set; a name that occurs twice is one. The order plays no part: names that need no
    /// change get theirs first, then all others in the order of their bytes.
    pub fn new<'a>(profile: &Profile, names: impl IntoIterator<Item = &'a str>) -> Self {
        let limit = limit(profile);
        let set: HashSet<&str> = names.into_iter().collect();
        let mut naming =
            Self { by_real: HashMap::with_capacity(set.len()), by_mcp: HashMap::with_capacity(set.len()) };
        let mut changed: Vec<(&str, Cow<'_, str>)> = Vec::new();
        for real in set {
            let stem = stem(real);
            if stem == real && profile.prefix.len() + stem.len() <= limit {
                naming.insert(real, format!("{}{stem}", profile.prefix));
            } else {
                changed.push((real, stem));
            }
        }
        changed.sort_unstable();
        for (real, stem) in changed {
            let name = naming.free(profile.prefix, &stem, real, limit);
            naming.insert(real, name);
        }
        naming
    }

    /// The name under which the agent calls the host tool.
    pub fn mcp_name(&self, real: &str) -> Option<&str> {
        self.by_real.get(real).map(String::as_str)
    }

    /// The host tool behind a name that the agent calls.
    pub fn real_name(&self, mcp: &str) -> Option<&str> {
        self.by_mcp.get(mcp).map(String::as_str)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_real.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.by_real.is_empty()
    }

    fn insert(&mut self, real: &str, mcp: String) {
        self.by_mcp.insert(mcp.clone(), real.to_owned());
        self.by_real.insert(real.to_owned(), mcp);
    }

    /// The plain name; else, when it is too long or taken, the one with the hash; else that with a number.
    fn free(&self, prefix: &str, stem: &str, real: &str, limit: usize) -> String {
        let plain = format!("{prefix}{stem}");
        if plain.len() <= limit && !self.by_mcp.contains_key(&plain) {
            return plain;
        }
        let hash = short_hash(real);
        let mut suffix = format!("__{hash}");
        let mut number = 1_u64;
        loop {
            let room = limit.saturating_sub(prefix.len() + suffix.len());
            // A stem is ASCII alone, so that every place is the border of a character.
            let cut = stem.get(..room).unwrap_or(stem);
            let name = format!("{prefix}{cut}{suffix}");
            if !self.by_mcp.contains_key(&name) {
                return name;
            }
            number += 1;
            suffix = format!("__{hash}_{number}");
        }
    }
}

/// The longest MCP name of a profile: 51 bytes with the server key `pi_tools`.
fn limit(profile: &Profile) -> usize {
    (CLIENT_LIMIT - 1).saturating_sub(profile.server_key.len()).min(API_LIMIT)
}

/// What is left of a name when everything but letters, digits, `_` and `-` has become `_`.
pub(crate) fn stem(real: &str) -> Cow<'_, str> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let trimmed = real.trim();
    if trimmed.bytes().all(fits) {
        return or_nameless(Cow::Borrowed(trimmed.trim_matches('_')));
    }
    let mut stem = String::with_capacity(trimmed.len());
    let mut in_run = false;
    for character in trimmed.chars() {
        let keep = u8::try_from(character).is_ok_and(fits);
        if keep {
            stem.push(character);
        } else if !in_run {
            stem.push('_');
        }
        in_run = !keep;
    }
    or_nameless(Cow::Owned(stem.trim_matches('_').to_owned()))
}

fn or_nameless(stem: Cow<'_, str>) -> Cow<'_, str> {
    if stem.is_empty() { Cow::Borrowed(NAMELESS) } else { stem }
}

/// The first eight hexadecimal digits of the SHA-256 of the name as the host has it.
fn short_hash(real: &str) -> String {
    hex(&Sha256::digest(real.as_bytes()), 4)
}

/// The first bytes of a digest, two digits each.
pub(crate) fn hex(digest: &[u8], bytes: usize) -> String {
    digest.iter().take(bytes).fold(String::with_capacity(bytes * 2), |mut text, byte| {
        // Writing into a string cannot fail.
        write!(text, "{byte:02x}").unwrap_or_default();
        text
    })
}

/// A name that somebody else wrote, for texts that people and models read: one line, at most 128 characters of it.
pub(crate) fn quoted(name: &str) -> String {
    const SHOWN: usize = 128;
    match name.char_indices().nth(SHOWN) {
        None => format!("{name:?}"),
        Some((place, _)) => format!("{:?}...", name.get(..place).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
