//! Owns a JSON value as the bytes it came with: what the bridge carries and does not look into. No numbers change here.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value, byte for byte, in one line. Well-formed by construction.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

impl RawJson {
    /// `{}`.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// Checks the bytes and keeps them. Raw line breaks, which are white space between tokens, become spaces.
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, serde_json::Error> {
        let bytes = bytes.into();
        let _: &RawValue = serde_json::from_slice(&bytes)?;
        Ok(Self::scanned(bytes))
    }

    /// The same for bytes that the scanner has seen as part of a message without lenience, in UTF-8.
    pub(crate) fn scanned(bytes: Bytes) -> Self {
        if memchr::memchr2(b'\n', b'\r', &bytes).is_none() {
            return Self(bytes);
        }
        let flat = bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
        Self(flat.collect::<Vec<u8>>().into())
    }

    /// The same with whole characters alone.
    pub(crate) fn with_whole_characters(self) -> Self {
        if memchr::memmem::find(&self.0, b"\\u").is_none() {
            return self;
        }
        let mut bytes = self.0.to_vec();
        if mend_halves(&mut bytes) { Self(bytes.into()) } else { self }
    }

    /// A value that was built here.
    pub fn of(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// The text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("null")
    }

    /// The value as a tree, for those who look inside. Numbers beyond 64 bits are rounded in it.
    pub fn tree(&self) -> serde_json::Value {
        self.read().unwrap_or_default()
    }

    /// The value as a type. Lone surrogates, which hosts in some languages write when they cut a text and which no text
    /// here can hold, are left out.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0).or_else(|error| match without_lone_surrogates(&self.0) {
            Some(mended) => serde_json::from_slice(&mended).map_err(|_| error),
            None => Err(error),
        })
    }

    /// Its first byte decides: the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{')
    }

    /// No more than `most` objects and lists stand in one another.
    pub(crate) fn is_nested_within(&self, most: usize) -> bool {
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(byte) = self.0.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' if depth == most => return false,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => at = after_string(&self.0, at),
                _ => {}
            }
        }
        true
    }
}

/// Replaces escapes of half a character, which many readers refuse together with all that stands around them. They are as
/// long as what replaces them, so that nothing else moves. Gives whether there was one.
pub(crate) fn mend_halves(json: &mut [u8]) -> bool {
    let mut mended = false;
    let mut from = 0;
    while let Some((at, half)) = next_half(json, &mut from) {
        if let Some(digits) = json.get_mut(at + 2..at + 6).filter(|_| half) {
            digits.copy_from_slice(b"fffd");
            mended = true;
        }
    }
    mended
}

/// The next escape of a surrogate, and whether it stands alone; the search goes on at `from`.
fn next_half(json: &[u8], from: &mut usize) -> Option<(usize, bool)> {
    loop {
        let at = *from + memchr::memmem::find(json.get(*from..)?, b"\\u")?;
        let before = json.get(..at)?.iter().rev().take_while(|byte| **byte == b'\\').count();
        *from = at + 2;
        if before % 2 == 1 {
            // The backslash is itself escaped.
            continue;
        }
        let Some(unit @ 0xd800..=0xdfff) = unit(json, at) else { continue };
        let is_pair = unit < 0xdc00 && matches!(self::unit(json, at + 6), Some(0xdc00..=0xdfff));
        *from = at + if is_pair { 12 } else { 6 };
        return Some((at, !is_pair));
    }
}

/// The number in an escape that begins there.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

impl fmt::Debug for RawJson {
    /// Its length alone: values are arguments and results, which no log shows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawJson({} bytes)", self.0.len())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_slice(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::new(Bytes::from(raw.get().to_owned().into_bytes())).map_err(serde::de::Error::custom)
    }
}

/// Where it goes on behind the string whose first character is there.
fn after_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| Some((memchr::memchr2(b'"', b'\\', rest)?, rest)))
    {
        let (place, rest) = found;
        if rest.get(place) == Some(&b'"') {
            return at + place + 1;
        }
        at += place + 2;
    }
    bytes.len()
}

/// A JSON text without its lone surrogates; `None` if it has none.
fn without_lone_surrogates(json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let (mut from, mut kept) = (0, 0);
    while let Some((at, half)) = next_half(json, &mut from) {
        if half {
            out.extend_from_slice(json.get(kept..at)?);
            kept = from;
        }
    }
    out.extend_from_slice(json.get(kept..)?);
    (kept > 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spelling_stay() {
        let text = r#"{"n":9007199254740993123456789,"e":1e400,"s":"\u00e9"}"#;
        let json = RawJson::new(text.as_bytes().to_vec()).unwrap();
        assert_eq!(json.text(), text);
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        let again: RawJson = serde_json::from_str(text).unwrap();
        assert_eq!(again, json);
        assert_eq!(format!("{json:?}"), format!("RawJson({} bytes)", text.len()));
    }

    #[test]
    fn half_characters_are_replaced_and_nothing_else_moves() {
        for (json, mended) in [
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\ude00 \uD83D x""#, r#""\ufffd \ufffd x""#),
            (r#""\ud83d\ude00 \u00e9""#, r#""\ud83d\ude00 \u00e9""#),
            (r#""\ud83d\ud83d\ude00\ude00""#, r#""\ufffd\ud83d\ude00\ufffd""#),
            (r#""\\ud83d \\\ud83d""#, r#""\\ud83d \\\ufffd""#),
            (r#"{"\ud83d":["\udfff\n",1e999]}"#, r#"{"\ufffd":["\ufffd\n",1e999]}"#),
            (r#""\ud83dx\u0020""#, r#""\ufffdx\u0020""#),
            ("[]", "[]"),
        ] {
            let raw = RawJson::new(json).unwrap();
            assert_eq!(raw.clone().with_whole_characters().text(), mended, "{json}");
            let mut bytes = json.as_bytes().to_vec();
            assert_eq!(mend_halves(&mut bytes), json != mended, "{json}");
            if json != mended {
                assert!(
                    serde_json::from_slice::<serde_json::Value>(&bytes).is_ok() || json.contains("1e999")
                );
            }
        }
        for broken in [r"\u", r"\ud8", r"\ud83d\u", r"\ud83d\udc", "\\"] {
            mend_halves(&mut broken.as_bytes().to_vec());
        }
    }

    #[test]
    fn line_breaks_between_tokens_go_and_bad_bytes_are_refused() {
        assert_eq!(RawJson::new("{\n\"a\":1\r\n}").unwrap().text(), "{ \"a\":1  }");
        assert!(RawJson::new("{\"a\":}").is_err());
        assert!(RawJson::new("1 2").is_err());
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        let within = |text: &str, most| RawJson::new(text.to_owned()).unwrap().is_nested_within(most);
        let text = r#"{"[[[":"]{{\"[[[\\","a":[{},{"b":[1]}],"c":[]}"#;
        assert!(within(text, 4) && !within(text, 3));
        assert!(within("7", 0) && within("\"[\"", 0) && !within("[]", 0));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(within(&deep, 100_000) && !within(&deep, 99_999));
    }

    #[test]
    fn lone_surrogates_go_and_pairs_stay() {
        let json = RawJson::new(r#"{"a":"x\ud83d y\udc00","b":"\ud83d\ude00","c":"\\ud800","n":1}"#).unwrap();
        assert_eq!(json.tree(), serde_json::json!({"a": "x y", "b": "😀", "c": "\\ud800", "n": 1}));
    }
}
