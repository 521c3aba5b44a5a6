//! Owns how numbers, ages and foreign text are shown to a person, and the way to stdout. Knows no command.

use std::borrow::Cow;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::path::Path;

/// `1,234,567`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `812 B`, `205.1 kB`, `1.3 GB`: powers of 1000.
pub(crate) fn size(bytes: u64) -> String {
    let mut unit = 1000;
    for name in ["kB", "MB", "GB"] {
        if bytes >= unit && (bytes < unit * 1000 || name == "GB") {
            // Rounded down, so that nothing is shown larger than it is.
            return format!("{}.{} {name}", grouped(bytes / unit), bytes % unit / (unit / 10));
        }
        unit *= 1000;
    }
    format!("{bytes} B")
}

/// `now`, `5 min`, `3 h`, `2 d`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => "now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Text from outside on one line: control characters, which could steer a terminal, become `?`; at most `most`
/// characters, with `…` for what is cut.
pub(crate) fn plain(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).map(|c| if is_control(c) { '?' } else { c }).collect();
    if text.chars().nth(most).is_some() {
        out.pop();
        out.push('…');
    }
    out
}

fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A word for a shell command: quoted where a shell would read more than a word.
pub(crate) fn quoted(word: &str, windows: bool) -> String {
    let safe = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c) || (windows && c == '\\');
    if !word.is_empty() && word.chars().all(safe) {
        word.to_owned()
    } else if windows {
        format!("\"{word}\"")
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A path for a shell command.
pub(crate) fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy(), cfg!(windows))
}

/// Stdout for content from outside: as it is to a file or pipe, without what steers a terminal to a terminal.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: io::BufWriter<StdoutLock<'static>>,
    terminal: bool,
}

impl Output {
    /// Locks stdout.
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        Self { terminal: stdout.is_terminal(), stdout: io::BufWriter::new(stdout.lock()) }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let shown = if self.terminal { for_terminal(bytes) } else { Cow::Borrowed(bytes) };
        self.stdout.write_all(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Control characters but line breaks and tabs, and what turns the order of letters, become `?`.
fn for_terminal(bytes: &[u8]) -> Cow<'_, [u8]> {
    let steers = |byte: u8| (byte < 0x20 && !matches!(byte, b'\n' | b'\t' | b'\r')) || byte == 0x7f;
    let turns = |at: usize| {
        let [0xe2, second, third, ..] = bytes.get(at..).unwrap_or_default() else { return false };
        // U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069.
        matches!((second, third), (0x80, 0x8e | 0x8f | 0xa8..=0xae) | (0x81, 0xa6..=0xa9))
    };
    if !bytes.iter().copied().any(steers) && !(0..bytes.len()).any(turns) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let turned = turns(at);
        out.push(if turned || steers(*byte) { b'?' } else { *byte });
        at += if turned { 3 } else { 1 };
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ages_are_short() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [0, 999, 1000, 205_199, 999_999, 1_000_000, 5_250_000_000_000].map(size),
            ["0 B", "999 B", "1.0 kB", "205.1 kB", "999.9 kB", "1.0 MB", "5,250.0 GB"]
        );
        assert_eq!(
            [59, 60, 3599, 3600, 172_799, 172_800].map(age),
            ["now", "1 min", "59 min", "1 h", "47 h", "2 d"]
        );
    }

    #[test]
    fn foreign_text_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{202e}", 20), "a?[2Jb?c?");
        assert_eq!(plain("abcdef", 4), "abc…");
        assert_eq!(plain("abcd", 4), "abcd");
        assert_eq!(&*for_terminal(b"a\x1b[2J\tb\r\n\x7f"), b"a?[2J\tb\r\n?");
        assert_eq!(&*for_terminal("höh€".as_bytes()), "höh€".as_bytes());
        assert_eq!(&*for_terminal("a\u{202e}b\u{2066}€".as_bytes()), "a?b?€".as_bytes());
    }

    #[test]
    fn words_survive_a_shell() {
        for (word, unix, windows) in [
            ("/a/b-c.d", "/a/b-c.d", "/a/b-c.d"),
            ("/a b", "'/a b'", "\"/a b\""),
            ("it's", r"'it'\''s'", "\"it's\""),
            ("$HOME", "'$HOME'", "\"$HOME\""),
            ("", "''", "\"\""),
            (r"C:\x", r"'C:\x'", r"C:\x"),
        ] {
            assert_eq!((quoted(word, false).as_str(), quoted(word, true).as_str()), (unix, windows));
        }
    }
}
