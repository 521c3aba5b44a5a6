//! Owns the short digest that tells one text from another: the first 16 hexadecimal digits of SHA-256.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// The first eight bytes of SHA-256, written as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 8]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let whole: [u8; 32] = Sha256::digest(bytes).into();
        Self(*whole.first_chunk().unwrap_or(&[0; 8]))
    }

    /// A digest as it is written: exactly 16 hexadecimal digits in lower case.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let value = u64::from_str_radix(text, 16).ok()?;
        digits.then(|| Self(value.to_be_bytes()))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a digest has 16 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_beginning_of_sha_256() {
        // SHA-256 of the empty text begins with these digits (FIPS 180-4).
        assert_eq!(Digest::of(b"").to_string(), "e3b0c44298fc1c14");
        assert_eq!(Digest::of(b"abc").to_string(), "ba7816bf8f01cfea");
    }

    #[test]
    fn it_is_read_as_it_was_written_and_nothing_else_is() {
        let digest = Digest::of(b"abc");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        for wrong in ["", "ba7816bf8f01cfe", "BA7816BF8F01CFEA", "+a7816bf8f01cfea", "ba7816bf8f01cfeaa"] {
            assert_eq!(Digest::parse(wrong), None, "{wrong}");
        }
    }
}
