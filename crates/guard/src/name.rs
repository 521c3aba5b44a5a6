//! Owns the names of saved files: nothing from outside can steer a path. Does no I/O.

use time::OffsetDateTime;
use time::macros::format_description;

/// The most characters that one part from outside gets in a name.
const SLUG: usize = 40;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// What a saved file is called before its extension, and the short id that finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedName {
    /// `20261130T103709.123456Z-tools-call-build-7-k3v9x2m8qa`
    pub(crate) stem: String,
    /// `k3v9x2m8qa`: 50 random bits.
    pub(crate) id: String,
}

impl SavedName {
    /// A name of this time, these parts and this random number.
    pub(crate) fn new(
        at: OffsetDateTime,
        method: &str,
        subject: Option<&str>,
        id: Option<&str>,
        random: u64,
    ) -> Self {
        let format = format_description!("[year][month][day]T[hour][minute][second].[subsecond digits:6]Z");
        let mut stem = at.to_offset(time::UtcOffset::UTC).format(&format).unwrap_or_else(|_| "0".to_owned());
        for part in [Some(method), subject, id].into_iter().flatten() {
            let part = slug(part);
            if !part.is_empty() {
                stem.push('-');
                stem.push_str(&part);
            }
        }
        let id = random_text(random, 10);
        stem.push('-');
        stem.push_str(&id);
        Self { stem, id }
    }
}

/// `length` characters (5 bits each) of a random number, in letters and digits that are not mistaken.
pub(crate) fn random_text(random: u64, length: usize) -> String {
    (0..length)
        .map(|index| {
            let bits = usize::try_from((random >> (5 * index.min(11))) & 31).unwrap_or(0);
            char::from(*ALPHABET.get(bits).unwrap_or(&b'0'))
        })
        .collect()
}

/// 64 random bits from the operating system; if it has none, from the time and the address space layout.
pub(crate) fn random_bits() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
        hasher.write_i128(OffsetDateTime::now_utc().unix_timestamp_nanos());
        hasher.finish()
    })
}

/// ASCII letters, digits, `_` and single dashes; of a long text the end, which tells more in a URI.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for ch in text.chars() {
        if ch.is_ascii_alphanumeric() || ch == '_' {
            out.push(ch);
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
        if out.len() > 4096 {
            break;
        }
    }
    let out = out.trim_matches('-');
    let cut = out.len().saturating_sub(SLUG);
    out.get(cut..).unwrap_or_default().trim_matches('-').to_owned()
}

/// Whether a name from an index file can only be a file of that directory that this program made.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn names_hold_time_method_subject_id_and_a_random_end() {
        let name = SavedName::new(
            datetime!(2026-11-30 10:37:09.123456 UTC),
            "tools/call",
            Some("../../etc/passwd\0"),
            Some("\"é/7\""),
            0x1234_5678_9abc,
        );
        assert_eq!(name.stem, format!("20261130T103709.123456Z-tools-call-etc-passwd-7-{}", name.id));
        assert_eq!(name.id.len(), 10);
        assert!(is_plain(&name.stem));
        let empty = SavedName::new(datetime!(2026-11-30 10:37:09 UTC), "日本", Some("///"), None, 0);
        assert_eq!(empty.stem, "20261130T103709.000000Z-0000000000");
    }

    #[test]
    fn only_plain_names_are_taken_from_an_index() {
        for bad in ["", "..", ".x", "a/b", "a\\b", "/abs", "C:x", "a\0b", "ü"] {
            assert!(!is_plain(bad), "{bad:?}");
        }
        assert!(is_plain("20261130T103709.000000Z-a-b_c-0.1.png"));
    }

    proptest::proptest! {
        #[test]
        fn nothing_from_outside_steers_the_path(method in ".*", subject in ".*", id in ".*", random: u64) {
            let name = SavedName::new(OffsetDateTime::UNIX_EPOCH, &method, Some(&subject), Some(&id), random);
            proptest::prop_assert!(is_plain(&name.stem) && name.stem.len() <= 160, "{}", name.stem);
        }
    }
}
