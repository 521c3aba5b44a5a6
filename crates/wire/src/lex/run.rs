//! Owns the search for the end of the plain part of a string: the innermost loop of the project.

/// The plain part at the start of some bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plain {
    /// Bytes before the first quote or backslash.
    pub(super) length: usize,
    /// They are all below 0x80.
    pub(super) ascii: bool,
    /// One of them is below 0x20.
    pub(super) control: bool,
}

const HIGHS: u64 = 0x8080_8080_8080_8080;
const SPACES: u64 = 0x2020_2020_2020_2020;

/// Finds the end as fast as the machine can, then looks at what stands before it.
#[inline]
pub(super) fn plain(rest: &[u8]) -> Plain {
    let length = memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
    let found = rest.get(..length).unwrap_or_default();
    let (ascii, control) = match found.len() {
        0..8 => match rest.first_chunk::<8>() {
            Some(word) => look_masked(u64::from_le_bytes(*word), found.len()),
            None => look_short(found),
        },
        8..=16 => look_word(found),
        _ => look_long(found),
    };
    Plain { length, ascii, control }
}

/// The first `length` bytes of a word, fewer than eight.
#[inline]
fn look_masked(word: u64, length: usize) -> (bool, bool) {
    let mask = (1u64 << (length * 8)) - 1;
    let word = (word & mask) | (SPACES & !mask);
    (word & HIGHS == 0, word.wrapping_sub(SPACES) & !word & HIGHS != 0)
}

/// Fewer than eight bytes, with nothing behind them.
fn look_short(bytes: &[u8]) -> (bool, bool) {
    let (mut any, mut low) = (0u8, false);
    for &byte in bytes {
        any |= byte;
        low |= byte < 0x20;
    }
    (any < 0x80, low)
}

/// Eight to sixteen bytes: the first eight and the last eight.
#[inline]
fn look_word(bytes: &[u8]) -> (bool, bool) {
    let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) else {
        return look_short(bytes);
    };
    let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    let low = |word: u64| word.wrapping_sub(SPACES) & !word & HIGHS;
    ((first | last) & HIGHS == 0, low(first) | low(last) != 0)
}

#[inline]
fn look_long(bytes: &[u8]) -> (bool, bool) {
    let (mut high, mut control) = (0u8, false);
    for block in bytes.chunks(64) {
        let (mut any, mut low) = (0u8, 0u8);
        for &byte in block {
            any |= byte;
            low |= u8::from(byte < 0x20);
        }
        high |= any;
        control |= low != 0;
    }
    (high < 0x80, control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simply(rest: &[u8]) -> Plain {
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
        let plain = &rest[..length];
        Plain { length, ascii: plain.is_ascii(), control: plain.iter().any(|byte| *byte < 0x20) }
    }

    proptest::proptest! {
        #[test]
        fn every_way_of_looking_agrees(
            bytes in proptest::collection::vec(proptest::prop_oneof![6 => 0x20u8..0x7F, 1 => proptest::prelude::any::<u8>()], 0..200)
        ) {
            proptest::prop_assert_eq!(plain(&bytes), simply(&bytes));
            proptest::prop_assert_eq!(look_long(&bytes), (bytes.is_ascii(), bytes.iter().any(|byte| *byte < 0x20)));
        }
    }
}
