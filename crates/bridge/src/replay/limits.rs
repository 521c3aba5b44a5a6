//! Owns how much of a text is shown, and that what is missing is said. Everything shown goes through here.

use std::path::Path;

use crate::scrub::Scrubber;

/// The longest text of a trace or of an expanded card.
pub(super) const TRANSCRIPT: Limit = Limit { chars: 24_000, lines: 800 };
/// What a trace holds below its headline, and above a line for images.
pub(super) const TRACE_BODY: Limit = Limit { chars: 24_000 - 300, lines: 800 - 2 };
/// What a card shows of a file that was read.
pub(super) const READ_CARD: Limit = Limit { chars: 4_000, lines: 20 };
/// What a trace shows of a file that was read.
pub(super) const READ_TRACE: Limit = Limit { chars: 4_000, lines: 12 };
/// What a collapsed card shows.
pub(super) const PREVIEW: Limit = Limit { chars: 4_000, lines: 8 };
/// One line of a collapsed card.
pub(super) const PREVIEW_LINE: usize = 240;
/// Lines of a difference in an expanded card.
pub(super) const DIFF: Limit = Limit { chars: 24_000, lines: 40 };
/// Items of a list.
pub(super) const ITEMS: usize = 200;
/// The longest text that is coloured by its syntax.
pub(super) const COLOURED: usize = 12_000;
/// A label of one line.
pub(super) const LABEL: usize = 240;
/// Arguments in one line.
pub(super) const ARGS: usize = 120;
/// The name of a tool.
pub(super) const NAME: usize = 80;
/// A piece of a running command's output.
pub(super) const OUTPUT: usize = 160;

/// Texts longer than this are looked at in their beginning only; of the rest the length is counted.
const WHOLE: usize = 256 << 10;
/// What is looked at beyond a limit, so that a secret at the edge is seen whole.
const MARGIN: usize = 16 << 10;
/// Room for the note that says what is missing.
const NOTE: usize = 80;

/// Characters and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) chars: usize,
    pub(super) lines: usize,
}

/// The beginning of a text, and what is not in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cut {
    pub(super) text: String,
    pub(super) lines: usize,
    pub(super) missing_lines: usize,
    pub(super) missing_chars: usize,
}

impl Cut {
    pub(super) fn is_whole(&self) -> bool {
        self.missing_chars == 0 && self.missing_lines == 0
    }

    /// What is missing, in words.
    fn note(&self) -> String {
        let chars = plural(self.missing_chars, "more character");
        match self.missing_lines {
            0 => format!("[{chars} not shown]"),
            lines => format!("[{} ({chars}) not shown]", plural(lines, "more line")),
        }
    }
}

/// "1 line", "4201 lines".
pub(super) fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The text within the limit, without secrets and control characters; where it was cut a last line says how much is
/// missing, within the limit as well.
pub(super) fn block(scrubber: &Scrubber, text: &str, limit: Limit) -> String {
    let whole = cut(scrubber, text, limit);
    if whole.is_whole() {
        return whole.text;
    }
    let room = Limit { chars: limit.chars.saturating_sub(NOTE), lines: limit.lines.saturating_sub(1) };
    let mut cut = cut(scrubber, text, room);
    let note = cut.note();
    if !cut.text.is_empty() && !cut.text.ends_with('\n') {
        cut.text.push('\n');
    }
    cut.text.push_str(&note);
    if cut.text.chars().count() > limit.chars || cut.text.lines().count() > limit.lines {
        return note.chars().take(if limit.lines == 0 { 0 } else { limit.chars }).collect();
    }
    cut.text
}

/// The beginning of the text within the limit, cleaned and scrubbed, and how much is missing.
pub(super) fn cut(scrubber: &Scrubber, text: &str, limit: Limit) -> Cut {
    let window = if text.len() <= WHOLE { text } else { head(text, limit.chars * 4 + MARGIN) };
    let rest = text.get(window.len()..).unwrap_or_default();
    let clean = clean(window);
    let clean = scrubber.scrub(&clean);
    let clean = if rest.is_empty() { clean.trim_end_matches('\n') } else { &*clean };
    let mut end = 0;
    let mut chars = 0;
    let mut lines = 0;
    for line in clean.split_inclusive('\n').take(limit.lines) {
        let length = line.chars().count();
        // The line break at the end of what is shown does not count.
        let shown = line.trim_end_matches('\n').chars().count();
        if chars + shown > limit.chars {
            // A line that is too long by itself is shown in part; others are left out whole.
            if lines == 0 {
                end = line.char_indices().nth(limit.chars).map_or(line.len(), |(at, _)| at);
            }
            break;
        }
        (end, chars, lines) = (end + line.len(), chars + length, lines + 1);
    }
    let missing = clean.get(end..).unwrap_or_default();
    // A line that begins where the window ends is in neither count.
    let rest_lines = rest.trim_end_matches('\n');
    let at_break = usize::from(clean.ends_with('\n') && !rest_lines.is_empty());
    let total = clean.lines().count() + memchr::memchr_iter(b'\n', rest_lines.as_bytes()).count() + at_break;
    Cut {
        text: clean.get(..end).unwrap_or_default().trim_end_matches('\n').to_owned(),
        lines,
        missing_lines: if clean.is_empty() { 0 } else { total.saturating_sub(lines) },
        missing_chars: missing.chars().count() + rest.chars().count(),
    }
}

/// The text in one line of at most `max` characters, without secrets and control characters; where it was cut its end
/// says how much is missing.
pub(super) fn label(scrubber: &Scrubber, text: &str, max: usize) -> String {
    let window = head(text, if text.len() <= WHOLE { WHOLE } else { max * 4 + MARGIN });
    let rest = text.get(window.len()..).unwrap_or_default().chars().count();
    let clean = clean(window);
    let scrubbed = scrubber.scrub(&clean);
    let line = scrubbed.split_whitespace().collect::<Vec<_>>().join(" ");
    shorten(&line, rest, max)
}

/// One line of at most `max` characters; `more` are missing already.
pub(super) fn shorten(line: &str, more: usize, max: usize) -> String {
    let total = line.chars().count();
    if total <= max && more == 0 {
        return line.to_owned();
    }
    // The number can get one digit longer by what its own note pushes out.
    let room = format!("… (+{})", total + more).chars().count();
    let kept = max.saturating_sub(room).min(total);
    let note = format!("… (+{})", total - kept + more);
    let text: String = line.chars().take(kept).chain(note.chars()).collect();
    if text.chars().count() <= max { text } else { "…".chars().take(max).collect() }
}

/// A collapsed card's lines.
pub(super) fn preview(scrubber: &Scrubber, text: &str) -> String {
    let shown = block(scrubber, text, PREVIEW);
    shown.lines().map(|line| shorten(line, 0, PREVIEW_LINE)).collect::<Vec<_>>().join("\n")
}

/// A list of at most so many items, one a line, and how many more there are.
pub(super) fn list(items: &[String], total: usize) -> String {
    let shown = items.iter().take(ITEMS).cloned();
    let missing = total.max(items.len()) - items.len().min(ITEMS);
    let note = (missing > 0).then(|| format!("[{} not shown]", plural(missing, "more item")));
    shown.chain(note).collect::<Vec<_>>().join("\n")
}

/// Relative to the working directory, where it is in it.
pub(super) fn relative(cwd: &Path, path: &str) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.to_string_lossy().into_owned(),
        Err(_) => path.to_owned(),
    }
}

/// At most so many bytes from the beginning, not within a character.
fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// Without what moves the cursor, colours, hides or reorders text. Line breaks become `\n`, tabs stay.
pub(super) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\n' | '\t' => out.push(char),
            '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' => {
                if char == '\r' {
                    chars.next_if_eq(&'\n');
                }
                out.push('\n');
            }
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => {}
            _ if char.is_control() => {}
            _ => out.push(char),
        }
    }
    out
}

/// The rest of an escape sequence (ECMA-48): of a control sequence up to its final byte, of a command string up to its
/// end; none of them crosses a line.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_control_sequence(chars);
        }
        Some(']' | 'P' | '^' | '_' | 'X') => {
            while let Some(char) = chars.next_if(|char| *char != '\n') {
                if char == '\u{7}'
                    || char == '\u{9c}'
                    || (char == '\u{1b}' && chars.next_if_eq(&'\\').is_some())
                {
                    break;
                }
            }
        }
        Some('(' | ')' | '#' | '%') => {
            chars.next();
            chars.next_if(char::is_ascii_alphanumeric);
        }
        Some(char) if ('\u{30}'..='\u{7e}').contains(char) => {
            chars.next();
        }
        _ => {}
    }
}

/// Parameters up to the final byte.
fn skip_control_sequence(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while chars.next_if(|char| ('\u{20}'..='\u{3f}').contains(char)).is_some() {}
    chars.next_if(|char| ('\u{40}'..='\u{7e}').contains(char));
}

#[cfg(test)]
mod tests;
