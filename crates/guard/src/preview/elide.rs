//! Owns the rule that base64 is named, never shown. Pure.

use std::ops::Range;

use super::grouped;

/// Longest run of base64 characters that is shown whatever it is, if it stands alone.
const SHOWN: usize = 64;
/// A shorter run begins base64 when lines like it follow: some programs break after 48 or 64 characters (RFC 7468).
const WRAPPED: usize = 40;
/// A line of this length goes on with a run, whatever the length of the line before: RFC 2045 breaks after 76.
const FULL: usize = 60;
/// A longer run is left out whatever it is.
const ALWAYS: usize = 256;

/// Replaces long runs of base64 characters by their length. `open`: the text goes on, so that a run at its end may
/// be longer than it seems.
pub(crate) fn elide(text: &str, open: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len().min(64 << 10));
    let (mut plain, mut at) = (0, 0);
    // Up to here the text was looked at with `-` and `_`, and is not left out because of them.
    let mut looked = 0;
    while at < bytes.len() {
        let narrow = run(bytes, at, is_base64);
        let mut found = None;
        if at >= looked {
            let wide = run(bytes, at, is_either);
            looked = wide.end.max(at + 1);
            if wide.len() > narrow.len() {
                found = block(bytes, wide, is_either, open);
            }
        }
        let next = narrow.end.max(at + 1);
        let Some(block) = found.or_else(|| block(bytes, narrow, is_base64, open)) else {
            at = next;
            continue;
        };
        out.push_str(text.get(plain..at).unwrap_or_default());
        let more = if open && block.end == bytes.len() { "more than " } else { "" };
        let (name, chars) = (block.name, grouped(block.chars as u64));
        out.push_str(&format_args!("[{name}{more}{chars} characters]").to_string());
        plain = block.end;
        at = block.end;
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out
}

/// Lines that are left out as one.
struct Block {
    name: &'static str,
    chars: usize,
    end: usize,
}

/// What begins with this run, if it is to be left out.
fn block(bytes: &[u8], first: Range<usize>, is: fn(u8) -> bool, open: bool) -> Option<Block> {
    if first.len() < WRAPPED {
        return None;
    }
    let of = |range: &Range<usize>| bytes.get(range.clone()).unwrap_or_default();
    let name = if first.len() > SHOWN {
        name_of(of(&first))?
    } else {
        let second = next_line(bytes, first.end, is).filter(|line| line.len() == first.len())?;
        let third = next_line(bytes, second.end, is).filter(|line| line.len() == first.len())?;
        // Lines of other characters, such as hashes, are no base64 however many they are.
        is_mixed(&[of(&first), of(&second), of(&third)].concat()).then_some("base64, ")?
    };
    let (mut chars, mut end) = (first.len(), first.end);
    while let Some(line) = next_line(bytes, end, is) {
        let goes_on = line.len() >= FULL || line.len() == first.len();
        let cut_off = open && line.end == bytes.len();
        if !goes_on && !cut_off && !is_last(of(&line)) {
            break;
        }
        chars += line.len();
        end = line.end;
        if !goes_on {
            break;
        }
    }
    Some(Block { name, chars, end })
}

fn run(bytes: &[u8], at: usize, is: fn(u8) -> bool) -> Range<usize> {
    let length = bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is(**byte)).count();
    at..at + length
}

/// The next line, where nothing but one run stands on it; it may be indented.
fn next_line(bytes: &[u8], end: usize, is: fn(u8) -> bool) -> Option<Range<usize>> {
    let rest = bytes.get(end..)?;
    let gap = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
    let indent = rest.get(gap..)?.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let line = run(bytes, end + gap + indent, is);
    let closed = bytes.get(line.end).is_none_or(|byte| b"\r\n\"'`<,;)]}".contains(byte));
    (gap > 0 && !line.is_empty() && closed).then_some(line)
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Base64, or base64url (RFC 4648, section 5).
fn is_either(byte: u8) -> bool {
    is_base64(byte) || matches!(byte, b'-' | b'_')
}

/// The shorter line after full ones is their end, and not a word: four characters stand for three bytes.
fn is_last(line: &[u8]) -> bool {
    let has = |test: fn(&u8) -> bool| line.iter().any(test);
    let inner_capital = line.iter().skip(1).any(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let whole = line.len().is_multiple_of(4) || (line.len() >= 16 && is_mixed(line));
    whole && line.first() != Some(&b'-') && (line.ends_with(b"=") || has(u8::is_ascii_digit) || inner_capital)
}

/// What a run is called, if it is to be left out.
fn name_of(run: &[u8]) -> Option<&'static str> {
    if is_mixed(run) {
        return Some("base64, ");
    }
    let unbroken = run.split(|byte| matches!(byte, b'-' | b'_')).any(|part| part.len() > ALWAYS);
    unbroken.then_some("a run of ")
}

/// Base64 mixes cases and digits. A path has many slashes; a name has many dashes, or few capitals and digits.
fn is_mixed(run: &[u8]) -> bool {
    let count = |test: fn(&u8) -> bool| run.iter().filter(|byte| test(byte)).count();
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let digits = count(u8::is_ascii_digit);
    let (slashes, dashes) = (count(|byte| *byte == b'/'), count(|byte| matches!(byte, b'-' | b'_')));
    let mixed = if dashes == 0 {
        upper > 0 && lower > 0 && digits > 0
    } else {
        upper.min(lower) * 5 >= run.len() && digits * 20 >= run.len()
    };
    mixed && (slashes + dashes) * 12 <= run.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Base64 of bytes without a pattern, of this many characters.
    fn noise(characters: usize, last: [char; 2]) -> String {
        let mut state = 7_u32;
        let mut letter = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match u8::try_from(state >> 26).unwrap() {
                digit @ 0..26 => char::from(b'A' + digit),
                digit @ 26..52 => char::from(b'a' + digit - 26),
                digit @ 52..62 => char::from(b'0' + digit - 52),
                digit => last[usize::from(digit - 62)],
            }
        };
        (0..characters).map(|_| letter()).collect()
    }

    fn wrapped(text: &str, width: usize, indent: &str) -> String {
        let lines = text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap());
        lines.flat_map(|line| [indent, line, "\n"]).collect()
    }

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

    #[test]
    fn wrapped_base64_is_named_whole_whatever_its_width_and_indentation() {
        for width in [40, 48, 60, 64, 76] {
            for indent in ["", "    ", "\t"] {
                let base64 = noise(width * 4 + 21, ['+', '/']) + "4p=";
                for text in
                    [wrapped(&base64, width, indent), wrapped(&base64, width, indent).replace('\n', "\r\n")]
                {
                    let text = format!("-----BEGIN THING-----\n{text}-----END THING-----\n");
                    let shown = elide(&text, false);
                    let named = format!("{indent}[base64, {} characters]", base64.len());
                    assert_eq!(
                        shown.lines().collect::<Vec<_>>(),
                        ["-----BEGIN THING-----", &named, "-----END THING-----"],
                        "{width}"
                    );
                }
            }
        }
        let cut = wrapped(&noise(64 * 3 + 7, ['+', '/']), 64, "");
        assert_eq!(elide(cut.trim_end(), true), "[base64, more than 199 characters]");
    }

    #[test]
    fn base64url_without_a_break_is_named() {
        for length in [100, 300, 5_000] {
            let base64 = noise(length, ['-', '_']);
            assert!(base64.contains('-') || base64.contains('_'));
            let named = format!("[base64, {} characters]", grouped(length as u64));
            assert_eq!(elide(&format!("token: {base64}.\n"), false), format!("token: {named}.\n"));
        }
        let base64 = noise(80, ['+', '+']);
        let text = format!("a-rather-long-name-of-a-key-in-a-file_{base64}");
        assert_eq!(elide(&text, false), "a-rather-long-name-of-a-key-in-a-file_[base64, 80 characters]");
    }

    #[test]
    fn names_paths_hashes_and_rulers_are_shown() {
        let hash = "da39a3ee5e6b4b0d3255bfef95601890afd80709\n";
        for text in [
            hash.repeat(40),
            "/home/User2/my-projects/some_long_name/target-dir/deps_2024/lib-Toolkit_7/".repeat(4),
            "2024-11-30_MyPresentationFinalVersionForCustomer_ReviewedByLegalDepartment-v2".to_owned(),
            "test_VeryLongCamelCaseNameForTheParserThatHandles_Http2Frames_withPadding_and_more".to_owned(),
            "6f1c1f5e-0b5c-4a4e-9d5f-2f8f6a1f0c11_".repeat(9),
            "-".repeat(400),
            "_-".repeat(4_000),
            format!("{}\n", "MIIDdzCCAl7gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUF").repeat(2),
        ] {
            assert_eq!(elide(&text, false), text);
        }
    }

    #[test]
    fn the_line_after_base64_stays_when_it_is_a_word() {
        let lines = wrapped(&noise(64 * 3, ['+', '/']), 64, "");
        for word in ["end", "Done", "DONE", "done and more", "--boundary-12", "some-words-here1 x"] {
            let shown = elide(&format!("{lines}{word}\n"), false);
            assert_eq!(shown, format!("[base64, 192 characters]\n{word}\n"));
        }
        for last in ["AAE=", "qA8x", "Ck5vdGhpbmcgZWxzZQ=="] {
            let shown = elide(&format!("{lines}{last}\n"), false);
            assert_eq!(shown, format!("[base64, {} characters]\n", 192 + last.len()));
        }
    }
}
