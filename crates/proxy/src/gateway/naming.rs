//! Owns the names that clients see: `SERVER__TOOL`, made to fit what every model API takes. Pure; knows no definition.
//!
//! A name depends on its pair (server, tool) and on nothing else: not on what other servers have, not on any order,
//! not on the run. The mapping is injective up to 38 bits of a hash:
//!
//! * A pair whose plain name fits keeps it. The first `__` of such a name ends the server's part, because servers
//!   with `__` inside or `_` at the end do not count as plain.
//! * Every other pair gets a readable part and `__` with eight characters of a hash of the pair. Plain names never
//!   end like that.

use sha2::{Digest, Sha256};

/// What every model API known takes.
pub const MAX_NAME_CHARS: usize = 64;
/// The least that leaves room for something to read.
pub const MIN_NAME_CHARS: usize = 20;
/// What a tool of the gateway itself begins with; no server's tool gets such a name.
pub const RESERVED_PREFIX: &str = "toolway_";
/// Between server and tool.
const SEPARATOR: &str = "__";
/// Characters of the hash, the first of them a digit.
const HASH_CHARS: usize = 8;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// How names are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    limit: usize,
    bare: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Self::new(MAX_NAME_CHARS, false)
    }
}

impl Naming {
    /// Names of at most `limit` characters (kept within 20 to 64). `bare`: the server's name stands in those names
    /// only that cannot be kept as they are.
    pub fn new(limit: usize, bare: bool) -> Self {
        Self { limit: limit.clamp(MIN_NAME_CHARS, MAX_NAME_CHARS), bare }
    }

    /// The most characters of a name.
    pub fn limit(self) -> usize {
        self.limit
    }

    /// The name that clients see for a server's tool or prompt. It matches `^[A-Za-z0-9_-]{1,64}$`, whatever the
    /// script of the two.
    pub fn exposed(self, server: &str, tool: &str) -> String {
        let plain = if self.bare { tool.to_owned() } else { format!("{server}{SEPARATOR}{tool}") };
        if self.is_plain(server, tool, &plain) { plain } else { self.hashed(server, tool) }
    }

    /// The exposed name differs from the plain one.
    pub fn is_changed(self, server: &str, tool: &str) -> bool {
        let exposed = self.exposed(server, tool);
        if self.bare { exposed != tool } else { exposed != format!("{server}{SEPARATOR}{tool}") }
    }

    fn is_plain(self, server: &str, tool: &str, plain: &str) -> bool {
        let splits = self.bare || !(server.is_empty() || server.contains(SEPARATOR) || server.ends_with('_'));
        splits
            && !tool.is_empty()
            && plain.len() <= self.limit
            && plain.bytes().all(is_allowed)
            && !is_reserved(plain)
            && !ends_hashed(plain)
    }

    fn hashed(self, server: &str, tool: &str) -> String {
        let room = self.limit - SEPARATOR.len() - HASH_CHARS;
        let (server_part, tool_part) = (readable(server), readable(tool));
        let mut name = match (server_part.as_str(), tool_part.as_str()) {
            ("", "") => "tool".to_owned(),
            ("", one) | (one, "") => cut(one, room).to_owned(),
            (first, second) => {
                let room = room - SEPARATOR.len();
                // Each has half of the room, and what the other one leaves.
                let first = cut(first, (room / 2).max(room.saturating_sub(second.len())));
                format!("{first}{SEPARATOR}{}", cut(second, room - first.len()))
            }
        };
        if is_reserved(&name) {
            name.replace_range(..RESERVED_PREFIX.len(), "toolway-");
        }
        name.push_str(SEPARATOR);
        name.push_str(&hash(server, tool));
        name
    }
}

/// Belongs to the gateway itself; `toolway__x` is a tool of a server called `toolway`.
fn is_reserved(name: &str) -> bool {
    name.strip_prefix(RESERVED_PREFIX).is_some_and(|rest| !rest.starts_with('_'))
}

fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Ends as a hashed name does (or is nothing else).
fn ends_hashed(name: &str) -> bool {
    let Some((before, tail)) = name.len().checked_sub(HASH_CHARS).and_then(|at| name.split_at_checked(at))
    else {
        return false;
    };
    (before.is_empty() || before.ends_with(SEPARATOR))
        && tail.starts_with(|first: char| first.is_ascii_digit())
        && tail.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// What of a name can be kept: each run of other characters is one `_`, none at the ends.
fn readable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        if u8::try_from(letter).is_ok_and(is_allowed) {
            out.push(letter);
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.trim_matches('_').to_owned()
}

/// The beginning of an ASCII text, without `_` at its end.
fn cut(text: &str, chars: usize) -> &str {
    text.get(..chars).unwrap_or(text).trim_end_matches('_')
}

/// The same for ever: clients keep names in their permission rules.
fn hash(server: &str, tool: &str) -> String {
    let mut sha = Sha256::new();
    sha.update((server.len() as u64).to_be_bytes());
    sha.update(server);
    sha.update(tool);
    let bytes = sha.finalize();
    let mut bits = bytes.iter().take(8).fold(0_u64, |bits, byte| (bits << 8) | u64::from(*byte));
    let mut out = String::with_capacity(HASH_CHARS);
    for at in 0..HASH_CHARS {
        let base = if at == 0 { 10 } else { 32 };
        let letter = usize::try_from(bits % base).ok().and_then(|index| ALPHABET.get(index));
        out.push(char::from(letter.copied().unwrap_or(b'0')));
        bits /= base;
    }
    out
}

#[cfg(test)]
mod tests;
