//! Owns what of a value is looked for: its parts, and the forms in which each may stand in a text. Escapes (JSON,
//! percent-encoding) are undone in the text instead, since there are too many ways to write them.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use secrecy::{ExposeSecret, SecretString};

/// A shorter text is no secret: replacing it would tear every text apart.
const SHORTEST: usize = 4;
/// A shorter encoded text would be found by chance.
const SHORTEST_FORM: usize = 6;
/// A shorter number stands in any text.
const SHORTEST_NUMBER: usize = 6;
/// A line of a longer text is a secret by itself from this length on.
const SHORTEST_LINE: usize = 16;
/// A longer value is looked for in pieces.
const PIECE: usize = 1024;
/// What is longer is known up to here.
const LONGEST: usize = 64 << 10;

/// Words that stand in any text.
const WORDS: [&str; 22] = [
    "true",
    "false",
    "null",
    "none",
    "undefined",
    "enabled",
    "disabled",
    "default",
    "auto",
    "debug",
    "info",
    "warn",
    "warning",
    "error",
    "trace",
    "production",
    "development",
    "localhost",
    "bearer",
    "basic",
    "text/plain",
    "application/json",
];

/// What is looked for.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) text: SecretString,
    /// Its first and last bits may be in the characters beside it.
    pub(super) base64: bool,
}

/// The values in a text: the whole, the credential behind the name of a scheme (RFC 9110, 11.4) and the password in it
/// (RFC 7617), and the long lines.
pub(super) fn parts(text: &str) -> Vec<SecretString> {
    let mut parts = Vec::new();
    let text = text.trim();
    pieces(text, &mut parts);
    if let Some((scheme, credential)) = text.split_once(' ') {
        let credential = credential.trim();
        if ["bearer", "basic", "token", "digest"].contains(&scheme.to_ascii_lowercase().as_str()) {
            pieces(credential, &mut parts);
        }
        if scheme.eq_ignore_ascii_case("basic")
            && let Ok(plain) = STANDARD.decode(credential)
            && let Ok(plain) = String::from_utf8(plain)
        {
            pieces(plain.split_once(':').map_or(plain.as_str(), |(_, password)| password), &mut parts);
        }
    }
    if text.contains('\n') {
        for line in text.lines().map(str::trim) {
            let is_text = line.contains(char::is_whitespace) || line.starts_with("-----");
            if line.len() >= SHORTEST_LINE && !is_text {
                pieces(line, &mut parts);
            }
        }
    }
    parts
}

fn pieces(text: &str, parts: &mut Vec<SecretString>) {
    if !is_telling(text) {
        return;
    }
    let mut rest = text;
    let mut left = LONGEST;
    while rest.len() > PIECE + SHORTEST_LINE && left > PIECE {
        let cut = (0..=PIECE).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(cut);
        parts.push(SecretString::from(piece.to_owned()));
        rest = behind;
        left = left.saturating_sub(cut);
    }
    let end = (0..=rest.len().min(PIECE + SHORTEST_LINE)).rev().find(|at| rest.is_char_boundary(*at));
    let last = rest.get(..end.unwrap_or(0)).unwrap_or_default();
    if last.len() >= SHORTEST {
        parts.push(SecretString::from(last.to_owned()));
    }
}

/// Whether a text can be told from what stands in any text.
fn is_telling(text: &str) -> bool {
    let is_word = WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    let is_small = text.len() < SHORTEST_NUMBER && text.bytes().all(|byte| byte.is_ascii_digit());
    text.len() >= SHORTEST && !is_word && !is_small
}

/// The forms of a value: as it is, with blanks as forms write them, as base64 at each of the three places that it can
/// have within three bytes (RFC 4648, both alphabets), and as hexadecimal digits.
pub(super) fn of(value: &str) -> Vec<Form> {
    let plain = |text: String| Form { text: SecretString::from(text), base64: false };
    let mut forms = vec![plain(value.to_owned())];
    if value.contains(' ') {
        forms.push(plain(value.replace(' ', "+")));
    }
    let hex = |digits: &[u8; 16]| -> String {
        let digit = |nibble: u8| digits.get(usize::from(nibble)).copied().unwrap_or_default() as char;
        value.bytes().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    };
    forms.extend([hex(b"0123456789abcdef"), hex(b"0123456789ABCDEF")].map(plain));
    for before in 0..3 {
        for text in [within(value, before, &STANDARD_NO_PAD), within(value, before, &URL_SAFE_NO_PAD)] {
            if text.len() >= SHORTEST_FORM {
                forms.push(Form { text: SecretString::from(text), base64: true });
            }
        }
    }
    forms.sort_by(|a, b| a.text.expose_secret().cmp(b.text.expose_secret()));
    forms.dedup_by(|a, b| a.text.expose_secret() == b.text.expose_secret());
    forms
}

/// The characters of base64 that depend on the value alone, where `before` bytes come before it.
fn within(value: &str, before: usize, engine: &impl base64::Engine) -> String {
    let mut bytes = Vec::with_capacity(before + value.len());
    bytes.resize(before, 0);
    bytes.extend_from_slice(value.as_bytes());
    let whole = bytes.len() * 8 / 6;
    let encoded = engine.encode(&bytes);
    bytes.fill(0);
    encoded.get((before * 8).div_ceil(6)..whole).unwrap_or_default().to_owned()
}
