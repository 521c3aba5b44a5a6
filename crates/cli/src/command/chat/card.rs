//! Owns how a record of what the agent did is shown: a head that says what, and a body as the tool of that name has it.
//! Pure.

use std::fmt::Write as _;

use toolway_bridge::{Card, Details};

use super::markdown::{BOLD, CYAN, DIM, END, GREEN, RED};
use crate::show::{one_line, safe};

/// Lines of a body.
const LINES: usize = 8;
/// Lines of a difference.
const DIFF: usize = 40;
/// Characters of a line.
const LINE: usize = 240;

/// The card.
pub(super) fn shown(card: &Card, colours: bool) -> String {
    let paint = |text: &str, code: &str| {
        if colours && !text.is_empty() { format!("{code}{text}{END}") } else { text.to_owned() }
    };
    let (title, what) = head(card);
    let what = if what.is_empty() { String::new() } else { format!(" {what}") };
    let sign = paint("●", if card.is_error { RED } else { GREEN });
    let mut text = format!("{sign} {}{what}\n", paint(&title, BOLD));
    if !card.is_error
        && let Some(diff) = difference(card)
    {
        text.push_str(&painted_diff(diff, colours));
        return text;
    }
    text.push_str(&body(&preview(&content(card)), card.is_error, colours));
    text
}

/// What it is, and about what.
fn head(card: &Card) -> (String, String) {
    let args = card.args.tree();
    let arg = |names: &[&str]| {
        let found = names.iter().find_map(|name| args.get(*name)?.as_str());
        found.map(|text| one_line(text, LINE / 2)).unwrap_or_default()
    };
    match (&card.details, card.tool.as_str()) {
        (Some(Details::NativeEdit { path, lines_added, lines_removed, .. }), _) => {
            ("edit".to_owned(), format!("{} (+{lines_added} -{lines_removed})", one_line(path, LINE / 2)))
        }
        (Some(Details::NativeWrite { path, lines, .. }), _) => {
            ("write".to_owned(), format!("{} ({lines} lines)", one_line(path, LINE / 2)))
        }
        (_, "bash") => ("$".to_owned(), arg(&["command"])),
        (_, "grep" | "find") => {
            let place = arg(&["path"]);
            let place = if place.is_empty() { place } else { format!(" in {place}") };
            (card.tool.clone(), format!("{}{place}", arg(&["pattern"])))
        }
        (_, "read" | "ls" | "edit" | "write") => (card.tool.clone(), arg(&["path", "file_path"])),
        _ => (one_line(&card.title, LINE / 2), one_line(&card.summary, LINE / 2)),
    }
}

/// The difference that it made, where it is one.
fn difference(card: &Card) -> Option<&str> {
    let diff = match card.details.as_ref()? {
        Details::NativeEdit { diff, .. } => diff.as_str(),
        Details::Activity(it) | Details::GenerateImage(it) | Details::GenericFallback(it) => {
            it.diff.as_deref()?
        }
        Details::NativeWrite { .. } => return None,
    };
    Some(diff).filter(|diff| !diff.trim().is_empty())
}

/// What stands below the head.
fn content(card: &Card) -> String {
    match &card.details {
        Some(Details::Activity(it) | Details::GenerateImage(it) | Details::GenericFallback(it))
            if !card.is_error =>
        {
            it.collapsed_text.clone().unwrap_or_default()
        }
        Some(Details::NativeWrite { .. }) if !card.is_error => String::new(),
        _ => card.text(),
    }
}

/// Added lines green, removed ones red, places dim.
pub(super) fn painted_diff(diff: &str, colours: bool) -> String {
    let mut text = String::new();
    let all = diff.lines().count();
    for line in diff.lines().take(DIFF) {
        let shown = cut(line);
        let code = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] => DIM,
            [b'@', ..] => CYAN,
            [b'+', ..] => GREEN,
            [b'-', ..] => RED,
            _ => "",
        };
        if colours && !code.is_empty() {
            text.extend(["  ", code, &shown, END, "\n"]);
        } else {
            text.extend(["  ", &shown, "\n"]);
        }
    }
    if all > DIFF {
        writeln!(text, "  … {} more lines", all - DIFF).unwrap_or_default();
    }
    text
}

/// The first lines, and how many there are more.
pub(super) fn preview(text: &str) -> Vec<String> {
    let all = text.trim_end().lines().count();
    let mut lines: Vec<String> = text.trim_end().lines().take(LINES).map(cut).collect();
    if all > LINES {
        lines.push(format!("… {} more lines", all - LINES));
    }
    lines
}

/// The lines below a head.
pub(super) fn body(lines: &[String], is_error: bool, colours: bool) -> String {
    let code = if is_error { RED } else { DIM };
    let mut text = String::new();
    for line in lines {
        if colours {
            text.extend(["  ", code, line, END, "\n"]);
        } else {
            text.extend(["  ", line, "\n"]);
        }
    }
    text
}

fn cut(line: &str) -> String {
    let shown = safe(line);
    match shown.char_indices().nth(LINE) {
        Some((at, _)) => format!("{}…", shown.get(..at).unwrap_or_default()),
        None => shown.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use toolway_bridge::{Activity, CardBlock, RawJson};

    use super::*;

    fn card(tool: &str, args: &str, text: &str, details: Option<Details>) -> Card {
        Card {
            tool: tool.to_owned(),
            title: "Agent MCP".to_owned(),
            summary: "db: query".to_owned(),
            args: RawJson::new(args.to_owned()).unwrap(),
            content: vec![CardBlock::Text { text: text.to_owned() }],
            details,
            is_error: false,
        }
    }

    #[test]
    fn each_tool_has_its_own_look() {
        let long = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
        let of = |card: Card| shown(&card, false);
        assert_eq!(of(card("bash", r#"{"command":"ls"}"#, "a\n", None)), "● $ ls\n  a\n");
        assert!(of(card("read", r#"{"path":"f"}"#, long, None)).ends_with("  8\n  … 2 more lines\n"));
        assert_eq!(of(card("grep", r#"{"pattern":"x","path":"src"}"#, "", None)), "● grep x in src\n");
        let activity = Activity { collapsed_text: Some("3 rows".to_owned()), ..Activity::default() };
        assert_eq!(
            of(card("agent", "{}", "all", Some(Details::Activity(activity)))),
            "● Agent MCP db: query\n  3 rows\n"
        );
        let failed = Card { is_error: true, ..card("bash", r#"{"command":"x"}"#, "no \u{1b}[2J such", None) };
        assert_eq!(of(failed), "● $ x\n  no \\x1b[2J such\n");
    }

    #[test]
    fn a_difference_is_coloured() {
        let edit = Details::NativeEdit {
            path: "f".to_owned(),
            diff: "@@ -1 +1 @@\n-a\n+b\n c".to_owned(),
            lines_added: 1,
            lines_removed: 1,
        };
        let text = shown(&card("edit", r#"{"path":"f"}"#, "ok", Some(edit)), true);
        assert!(text.contains("edit\x1b[0m f (+1 -1)\n"), "{text:?}");
        assert!(text.contains("  \x1b[31m-a\x1b[0m\n  \x1b[32m+b\x1b[0m\n   c\n"), "{text:?}");
    }
}
