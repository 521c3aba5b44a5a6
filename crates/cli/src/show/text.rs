//! Owns what text of servers may do to a terminal: nothing. Pure.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::width::cut;

/// The text with everything that steers a terminal, or turns the order of what is shown, written out: `\x1b`,
/// `\u{202e}`. Line breaks and tabs stay.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            // A line break of another system.
            '\r' if letters.peek() == Some(&'\n') => {}
            '\r' => out.push_str("\\r"),
            letter if steers(letter) && (letter as u32) < 0x80 => {
                write!(out, "\\x{:02x}", letter as u32).unwrap_or_default();
            }
            letter if steers(letter) => write!(out, "\\u{{{:x}}}", letter as u32).unwrap_or_default(),
            letter => out.push(letter),
        }
    }
    Cow::Owned(out)
}

/// JSON with a line break at its end; for a terminal everything that steers one is escaped as JSON has it.
pub(crate) fn json(value: &Value, terminal: bool) -> String {
    let text = format!("{value:#}\n");
    if !terminal || !text.contains(steers) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if steers(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}").unwrap_or_default();
            }
        } else {
            out.push(letter);
        }
    }
    out
}

/// Control characters of both sets, marks and overrides of direction, invisible tags.
fn steers(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{200e}'
        | '\u{200f}'
        | '\u{061c}'
        | '\u{feff}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2066}'..='\u{206f}'
        | '\u{e0000}'..='\u{e007f}' => true,
        letter => letter.is_control(),
    }
}

/// The text on one line, whole: line breaks and tabs are written out too.
pub(crate) fn whole_line(text: &str) -> String {
    safe(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// The text on one line of at most `most` characters, with `…` for what is cut.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = safe(&joined);
    if shown.chars().nth(most).is_none() {
        return shown.into_owned();
    }
    let mut cut: String = shown.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// The same of at most so many columns of a terminal.
pub(crate) fn fit(text: &str, most: usize) -> String {
    cut(one_line(text, most), most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_written_out() {
        for (text, shown) in [
            ("plain\tänd\nsimple 👩‍💻", "plain\tänd\nsimple 👩‍💻"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}", r"\x1b[2J\x1b]0;title\x07"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\r\nb\rc", "a\nb\\rc"),
            ("abc\u{202e}fed", r"abc\u{202e}fed"),
            ("\u{7f}\u{0}", r"\x7f\x00"),
            ("tag\u{e0041}", r"tag\u{e0041}"),
        ] {
            assert_eq!(safe(text), shown);
        }
        assert!(matches!(safe("as it is"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_for_a_terminal_is_the_same_json() {
        let value = serde_json::json!({"a\u{1b}": "\u{9b}1m \u{202e} \u{e0041} \u{7f} ä\n"});
        let shown = json(&value, true);
        assert!(!shown.contains(steers), "{shown:?}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
        assert_eq!(json(&value, false), format!("{value:#}\n"));
    }

    #[test]
    fn one_line_is_one_line_of_a_bounded_length() {
        assert_eq!(one_line("a \n\n b\tc ", 10), "a b c");
        assert_eq!(one_line("abcdef", 4), "abc…");
        assert_eq!(one_line("\u{1b}[1mx", 20), r"\x1b[1mx");
    }
}
