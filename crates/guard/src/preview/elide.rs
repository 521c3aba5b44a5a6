//! Owns the rule that base64 is named, never shown. Pure.

use super::grouped;

/// Longest run of base64 characters that is shown whatever it is.
const SHOWN: usize = 64;
/// A longer run is left out whatever it is.
const ALWAYS: usize = 256;

/// Replaces long runs of base64 characters by their length. `open`: the text goes on, so that a run at its end may
/// be longer than it seems.
pub(crate) fn elide(text: &str, open: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len().min(64 << 10));
    let (mut plain, mut at) = (0, 0);
    while at < bytes.len() {
        let run = bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is_base64(**byte)).count();
        if run <= SHOWN {
            at += run.max(1);
            continue;
        }
        let (mut end, mut chars) = (at + run, run);
        let Some(name) = name_of(bytes.get(at..end).unwrap_or_default()) else {
            at = end;
            continue;
        };
        // Lines of one text (RFC 2045 breaks them after 76 characters) are one run.
        while let Some(next) = next_line(bytes, end) {
            chars += next.len();
            end = next.end;
        }
        out.push_str(text.get(plain..at).unwrap_or_default());
        let more = if open && end == bytes.len() { "more than " } else { "" };
        out.push_str(&format_args!("[{name}{more}{} characters]", grouped(chars as u64)).to_string());
        plain = end;
        at = end;
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out
}

fn next_line(bytes: &[u8], end: usize) -> Option<std::ops::Range<usize>> {
    let rest = bytes.get(end..)?;
    let gap = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
    let run = rest.get(gap..)?.iter().take_while(|byte| is_base64(**byte)).count();
    (gap > 0 && run >= 60).then_some(end + gap..end + gap + run)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// What a run is called, if it is to be left out: base64 mixes cases and digits; a path has many slashes.
fn name_of(run: &[u8]) -> Option<&'static str> {
    let has = |test: fn(&u8) -> bool| run.iter().any(test);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    let slashes = memchr::memchr_iter(b'/', run).count();
    match (mixed && slashes * 12 <= run.len(), run.len() > ALWAYS) {
        (true, _) => Some("base64, "),
        (false, true) => Some("a run of "),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_base64_is_named_and_words_stay() {
        let base64 = "iVBORw0KGgoAAAANSUhEUgAA".repeat(10);
        for (text, open, expected) in [
            ("plain words".to_owned(), false, "plain words".to_owned()),
            (
                format!("{{\"image\":\"{base64}\",\"n\":1}}"),
                false,
                "{\"image\":\"[base64, 240 characters]\",\"n\":1}".into(),
            ),
            (format!("a {base64}"), true, "a [base64, more than 240 characters]".into()),
            (
                format!("HEAD {} TAIL", "x".repeat(30_000)),
                false,
                "HEAD [a run of 30,000 characters] TAIL".into(),
            ),
            ("/usr/lib/some/long/path/".repeat(5), false, "/usr/lib/some/long/path/".repeat(5)),
            ("0123456789abcdef".repeat(8), false, "0123456789abcdef".repeat(8)),
            (format!("é{base64}é"), false, "é[base64, 240 characters]é".into()),
        ] {
            assert_eq!(elide(&text, open), expected);
        }
        let lines = format!("{}\r\n{}\nend", base64.get(..76).unwrap(), base64.get(..76).unwrap());
        assert_eq!(elide(&lines, false), "[base64, 152 characters]\nend");
    }
}
