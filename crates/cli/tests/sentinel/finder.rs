//! Sentinels, and the search for them in any bytes. It shares nothing with what it judges: it decodes what it looks
//! through, and looks for either end of a sentinel alone, since half a secret is too much too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A text within a text within a text.
const DEEPEST: usize = 3;
/// Letters of each end.
const END: usize = 12;

/// A secret that stands nowhere else on this machine.
#[derive(Debug, Clone)]
pub(crate) struct Sentinel {
    /// Where it was put.
    pub(crate) name: String,
    pub(crate) value: String,
    ends: [String; 2],
}

impl Sentinel {
    /// With letters and digits alone, as a token.
    pub(crate) fn plain(name: &str) -> Self {
        Self::with(name, "-._~")
    }

    /// With every sign that a header may have and some encoding spells otherwise.
    pub(crate) fn header(name: &str) -> Self {
        Self::with(name, "/+= \"%41\\<&>'~;,")
    }

    /// With what a variable may have as well.
    pub(crate) fn awkward(name: &str) -> Self {
        Self::with(name, "/+= \"%41\\<&>'~;,\u{fc}\u{1f511}|$")
    }

    /// A secret that somebody else has made.
    pub(crate) fn of(name: &str, value: &str) -> Self {
        let end = END.min(value.len());
        let ends = [value.get(..end), value.get(value.len() - end..)];
        Self {
            name: name.to_owned(),
            value: value.to_owned(),
            ends: ends.map(|end| end.unwrap_or(value).to_owned()),
        }
    }

    fn with(name: &str, middle: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let salt = u64::try_from(now & u128::from(u64::MAX)).unwrap_or_default();
        let mut state =
            salt ^ (u64::from(std::process::id()) << 32) ^ (NEXT.fetch_add(1, Ordering::Relaxed) << 8);
        let mut end = || -> String {
            let letter = |state: &mut u64| {
                *state =
                    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let letters = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789";
                char::from(letters[usize::try_from(*state >> 33).unwrap_or_default() % letters.len()])
            };
            (0..END).map(|_| letter(&mut state)).collect()
        };
        let ends = [end(), end()];
        Self { name: name.to_owned(), value: format!("{}{middle}{}", ends[0], ends[1]), ends }
    }
}

/// Which of them stand in the bytes, in whole or in part, in any encoding.
pub(crate) fn found<'a>(bytes: &[u8], sentinels: &'a [Sentinel]) -> Vec<&'a Sentinel> {
    let mut views = Vec::new();
    look(bytes, DEEPEST, &mut views);
    let is_in = |end: &String| views.iter().any(|view| contains(view, end.as_bytes()));
    sentinels.iter().filter(|sentinel| sentinel.ends.iter().any(is_in)).collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The bytes, and what they are once they are decoded, each way.
fn look(bytes: &[u8], deeper: usize, views: &mut Vec<Vec<u8>>) {
    if deeper > 0 {
        for decode in [unpercented, unescaped, of_base64, of_hex] {
            let decoded = decode(bytes);
            if !decoded.is_empty() && decoded != bytes {
                look(&decoded, deeper - 1, views);
            }
        }
    }
    views.push(bytes.to_vec());
}

fn digits(bytes: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(bytes).ok()?;
    u32::from_str_radix(text, 16).ok().filter(|_| bytes.iter().all(u8::is_ascii_hexdigit))
}

fn unpercented(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        let code = (*byte == b'%').then(|| bytes.get(at + 1..at + 3).and_then(digits)).flatten();
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(decoded) => (out.push(decoded), at += 3).1,
            None => (out.push(*byte), at += 1).1,
        }
    }
    out
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        if *byte != b'\\' {
            out.push(*byte);
            at += 1;
            continue;
        }
        let code = match bytes.get(at + 1) {
            Some(b'u') => bytes.get(at + 2..at + 6).and_then(digits),
            _ => None,
        };
        if let Some(code) = code {
            let letter = char::from_u32(code).unwrap_or('?');
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            at += 6;
        } else {
            out.push(match bytes.get(at + 1) {
                Some(b'n') => b'\n',
                Some(b't') => b'\t',
                Some(b'r') => b'\r',
                Some(other) => *other,
                None => b'\\',
            });
            at += 2;
        }
    }
    out
}

/// Every run that may be base64, decoded from each of its first four letters on.
fn of_base64(bytes: &[u8]) -> Vec<u8> {
    let value = |byte: u8| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        })
    };
    let mut out = Vec::new();
    for run in bytes.split(|byte| value(*byte).is_none()).filter(|run| run.len() >= END) {
        for from in 0..4 {
            let (mut bits, mut held) = (0_u32, 0);
            for byte in run.iter().skip(from) {
                bits = (bits << 6) | u32::from(value(*byte).unwrap_or_default());
                held += 6;
                if held >= 8 {
                    held -= 8;
                    out.push(u8::try_from((bits >> held) & 0xff).unwrap_or_default());
                }
            }
            out.push(b'\n');
        }
    }
    out
}

fn of_hex(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for run in bytes.split(|byte| !byte.is_ascii_hexdigit()).filter(|run| run.len() >= 2 * END) {
        for from in 0..2 {
            let pairs = run.get(from..).unwrap_or_default().chunks_exact(2);
            out.extend(pairs.filter_map(digits).filter_map(|code| u8::try_from(code).ok()));
            out.push(b'\n');
        }
    }
    out
}

/// The encodings in which servers give back what they were sent.
pub(crate) fn encodings(text: &str) -> Vec<String> {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    let percent = |keep: &str, lower: bool| -> String {
        let one = |byte: u8| match byte {
            _ if byte.is_ascii_alphanumeric() || keep.as_bytes().contains(&byte) => {
                char::from(byte).to_string()
            }
            _ if lower => format!("%{byte:02x}"),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(one).collect()
    };
    let json = |text: &str| serde_json::Value::from(text).to_string().trim_matches('"').to_owned();
    vec![
        text.to_owned(),
        json(text),
        json(&json(text)),
        percent("-._~", false),
        percent("-._~/", true),
        percent("-._* ", false).replace(' ', "+"),
        STANDARD.encode(text),
        STANDARD.encode(format!("user:{text}")),
        STANDARD.encode(format!("id:{text}!")),
        URL_SAFE_NO_PAD.encode(format!("\u{3c0}{text}")),
        text.bytes()
            .flat_map(|byte| [byte >> 4, byte & 15])
            .filter_map(|digit| char::from_digit(digit.into(), 16))
            .collect(),
    ]
}

#[test]
fn the_finder_finds_each_encoding_and_each_half() {
    for sentinel in [Sentinel::plain("a"), Sentinel::header("b"), Sentinel::awkward("c")] {
        let all = [sentinel.clone()];
        for form in encodings(&sentinel.value) {
            let text = format!("{{\"x\":\"{form}\"}}");
            assert_eq!(found(text.as_bytes(), &all).len(), 1, "{form}");
        }
        let (half, _) = sentinel.value.split_at(END);
        assert_eq!(found(format!("<{half}>").as_bytes(), &all).len(), 1, "{half}");
        assert!(found(b"[redacted] and whatever else is here", &all).is_empty());
    }
}
