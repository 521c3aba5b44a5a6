//! Owns request ids: the bytes as they came, and equality by value. Knows nothing of who waits for an answer.

use std::fmt;
use std::hash::{Hash, Hasher};

const INLINE: usize = 22;

/// Bytes that need no allocation while they are few.
#[derive(Clone)]
enum Text {
    Inline { length: u8, bytes: [u8; INLINE] },
    Heap(Box<[u8]>),
}

impl Text {
    fn new(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE];
        match (inline.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(slot), Ok(length)) => {
                slot.copy_from_slice(bytes);
                Self::Inline { length, bytes: inline }
            }
            _ => Self::Heap(bytes.into()),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Inline { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Self::Heap(bytes) => bytes,
        }
    }
}

/// The id of a request: a JSON string or number, or `null` (JSON-RPC 2.0, section 4).
///
/// Two ids are equal when their values are: `1` and `1.0` are, `"a"` and `"\u0061"` are, `1` and `"1"` are not.
/// [`Id::raw`] is the spelling that came.
#[derive(Clone)]
pub struct Id {
    raw: Text,
    canonical: Option<Box<[u8]>>,
}

impl Id {
    /// An id from its JSON text. `None` when that is not a string, a number or `null`.
    pub fn from_json(raw: &[u8]) -> Option<Self> {
        let raw = raw.trim_ascii();
        match raw.first()? {
            b'"' => {
                let text: String = serde_json::from_slice(raw).ok()?;
                Some(Self::string(raw, raw.contains(&b'\\').then(|| text.into_bytes())))
            }
            b'-' | b'0'..=b'9' => {
                struct Nothing;
                impl crate::lex::Sink for Nothing {}
                let mut lexer = crate::lex::Lexer::new();
                lexer.feed(raw, &mut Nothing).and_then(|()| lexer.finish(&mut Nothing)).ok()?;
                (!lexer.is_lax()).then(|| Self::number(raw))
            }
            b'n' if raw == b"null" => Some(Self { raw: Text::new(raw), canonical: None }),
            _ => None,
        }
    }

    /// An integer id.
    pub fn from_number(number: u64) -> Self {
        let mut bytes = [b'0'; 20];
        let (mut from, mut rest) = (bytes.len(), number);
        loop {
            from -= 1;
            if let Some(byte) = bytes.get_mut(from) {
                *byte = b'0' + (rest % 10) as u8;
            }
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        Self { raw: Text::new(bytes.get(from..).unwrap_or_default()), canonical: None }
    }

    /// `raw` with its quotes; `decoded` when an escape makes the value differ from the spelling.
    pub(crate) fn string(raw: &[u8], decoded: Option<Vec<u8>>) -> Self {
        let canonical = decoded.map(|text| {
            let mut quoted = Vec::with_capacity(text.len() + 2);
            quoted.push(b'"');
            quoted.extend_from_slice(&text);
            quoted.push(b'"');
            quoted.into_boxed_slice()
        });
        Self { raw: Text::new(raw), canonical }
    }

    pub(crate) fn number(raw: &[u8]) -> Self {
        let plain =
            raw.iter().enumerate().all(|(i, byte)| byte.is_ascii_digit() || (i == 0 && *byte == b'-'));
        let canonical = if plain && raw != b"-0" { None } else { normal_form(raw) };
        Self { raw: Text::new(raw), canonical }
    }

    pub(crate) fn null() -> Self {
        Self { raw: Text::new(b"null"), canonical: None }
    }

    /// The id as it was spelled, valid JSON.
    pub fn raw(&self) -> &[u8] {
        self.raw.as_bytes()
    }

    /// The id is `null`, which answers no request.
    pub fn is_null(&self) -> bool {
        self.raw() == b"null"
    }

    /// Characters of the id as it was spelled, quotes excluded.
    pub fn chars(&self) -> usize {
        let raw = String::from_utf8_lossy(self.raw());
        raw.chars().count().saturating_sub(if raw.starts_with('"') { 2 } else { 0 })
    }

    fn key(&self) -> &[u8] {
        self.canonical.as_deref().unwrap_or_else(|| self.raw.as_bytes())
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.key());
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.raw()))
    }
}

/// A fast hasher for ids. They come from the one client that is served: nobody else can make them collide.
#[derive(Debug, Default, Clone, Copy)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        }
        for byte in rest {
            self.0 = (self.0.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(FACTOR);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

/// Decimal normal form of a JSON number: an integer without fraction or exponent where it is one of fewer than
/// 40 digits, else `digits e exponent`. `None` when the exponent is out of reach; then the spelling is the value.
fn normal_form(raw: &[u8]) -> Option<Box<[u8]>> {
    let text = std::str::from_utf8(raw).ok()?;
    let (sign, text) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let exponent = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let significant = digits.trim_start_matches('0');
    let trimmed = significant.trim_end_matches('0');
    if trimmed.is_empty() {
        return Some(Box::from(*b"0"));
    }
    let exponent = exponent.checked_add(i64::try_from(significant.len() - trimmed.len()).ok()?)?;
    let form = match usize::try_from(exponent) {
        Ok(zeros) if zeros + trimmed.len() < 40 => format!("{sign}{trimmed}{}", "0".repeat(zeros)),
        _ => format!("{sign}{trimmed}e{exponent}"),
    };
    Some(form.into_bytes().into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(json: &str) -> Id {
        Id::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn numbers_are_spelled_in_decimal() {
        for number in [0, 7, 10, 1 << 53, u64::MAX] {
            assert_eq!(Id::from_number(number).raw(), number.to_string().as_bytes());
        }
    }

    #[test]
    fn equality_is_by_type_and_value() {
        for (left, right) in
            [("1", "1.0"), ("100", "1e2"), ("0", "-0"), ("\"a\"", "\"\\u0061\""), ("2.50", "2.5")]
        {
            assert_eq!(id(left), id(right));
            assert_eq!(id(right).raw(), right.as_bytes());
        }
        for (left, right) in
            [("1", "\"1\""), ("null", "\"null\""), ("9007199254740993", "9007199254740992"), ("1", "-1")]
        {
            assert_ne!(id(left), id(right));
        }
    }

    #[test]
    fn only_strings_numbers_and_null_are_ids() {
        for raw in ["true", "{}", "[1]", "", "01", "\"open"] {
            assert!(Id::from_json(raw.as_bytes()).is_none(), "{raw}");
        }
        assert!(id("null").is_null());
    }

    #[test]
    fn huge_exponents_do_not_allocate() {
        assert_eq!(id("1e999999999").raw(), b"1e999999999");
        assert_ne!(id("1e999999999"), id("1e999999998"));
    }
}
