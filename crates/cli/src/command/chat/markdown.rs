//! Owns markdown as a terminal shows it, line by line as it comes: headings, lists, quotes, code, tables. Pure. Text comes
//! from a model: everything that steers a terminal was written out before.

mod inline;
mod table;

use inline::inline;
use table::{is_row, table};

/// The beginnings and the end of what a terminal shows otherwise.
pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const DIM: &str = "\x1b[2m";
pub(super) const ITALIC: &str = "\x1b[3m";
pub(super) const UNDERLINE: &str = "\x1b[4m";
pub(super) const STRUCK: &str = "\x1b[9m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const GREEN: &str = "\x1b[32m";
pub(super) const CYAN: &str = "\x1b[36m";
pub(super) const END: &str = "\x1b[0m";
/// Rows of a table that are held back until it ends.
const ROWS: usize = 500;

/// A text on its way. Where it is plain, it passes as it is.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    plain: bool,
    /// The line that is not ended.
    line: String,
    /// What ends the code that was begun.
    fence: Option<String>,
    rows: Vec<String>,
}

impl Markdown {
    pub(super) fn new(plain: bool) -> Self {
        Self { plain, ..Self::default() }
    }

    /// More text: what is to be shown now.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.plain {
            return text.to_owned();
        }
        let mut shown = String::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if self.line.ends_with('\n') {
                let line = std::mem::take(&mut self.line);
                self.whole(line.trim_end_matches('\n'), &mut shown);
            }
        }
        shown
    }

    /// The end of the text.
    pub(super) fn finish(&mut self) -> String {
        let mut shown = String::new();
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.whole(&line, &mut shown);
        }
        self.flush(&mut shown);
        self.fence = None;
        shown
    }

    fn whole(&mut self, line: &str, shown: &mut String) {
        if let Some(fence) = &self.fence {
            if line.trim_start().starts_with(fence.as_str()) && line.trim().chars().all(|c| fence.contains(c))
            {
                self.fence = None;
            } else {
                shown.extend(["  ", CYAN, line, END, "\n"]);
            }
            return;
        }
        if is_row(line) && self.rows.len() < ROWS {
            self.rows.push(line.to_owned());
            return;
        }
        self.flush(shown);
        let Some((fence, language)) = fence(line) else {
            shown.push_str(&block(line));
            shown.push('\n');
            return;
        };
        self.fence = Some(fence);
        if !language.is_empty() {
            shown.extend(["  ", DIM, &language, END, "\n"]);
        }
    }

    fn flush(&mut self, shown: &mut String) {
        let rows = std::mem::take(&mut self.rows);
        match table(&rows) {
            Some(table) => shown.push_str(&table),
            None => rows.iter().for_each(|row| shown.extend([inline(row).as_str(), "\n"])),
        }
    }
}

/// The fence that begins code, and its language.
fn fence(line: &str) -> Option<(String, String)> {
    let text = line.trim_start();
    let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let count = text.chars().take_while(|c| *c == mark).count();
    let rest = text.get(count..)?;
    let is_fence = count >= 3 && line.len() - text.len() <= 12 && !(mark == '`' && rest.contains('`'));
    is_fence.then(|| (mark.to_string().repeat(count), rest.trim().to_owned()))
}

/// A line outside of code and tables.
fn block(line: &str) -> String {
    let text = line.trim_start();
    let indent = line.get(..line.len() - text.len()).unwrap_or_default();
    let level = text.chars().take_while(|c| *c == '#').count();
    if (1..=6).contains(&level)
        && let Some(title) = text.get(level..).and_then(|rest| rest.strip_prefix(' '))
    {
        let under = if level == 1 { UNDERLINE } else { "" };
        return format!("{BOLD}{under}{}{END}", title.trim().trim_end_matches('#').trim_end());
    }
    let is_rule = |mark: char| {
        text.chars().filter(|c| *c == mark).count() >= 3 && text.chars().all(|c| c == mark || c == ' ')
    };
    if ['-', '*', '_'].into_iter().any(is_rule) {
        return format!("{DIM}{}{END}", "─".repeat(40));
    }
    if let Some(rest) = text.strip_prefix('>') {
        return format!("{indent}{DIM}│{END} {}", inline(rest.strip_prefix(' ').unwrap_or(rest)));
    }
    for mark in ["- ", "* ", "+ "] {
        if let Some(item) = text.strip_prefix(mark) {
            let (sign, item) = match item.get(..4) {
                Some("[ ] ") => ("☐", item.get(4..).unwrap_or_default()),
                Some("[x] " | "[X] ") => ("☑", item.get(4..).unwrap_or_default()),
                _ => ("•", item),
            };
            return format!("{indent}{sign} {}", inline(item));
        }
    }
    format!("{indent}{}", inline(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text in pieces of every length, which must come to the same; colours as letters.
    fn shown(text: &str) -> String {
        let whole = |size: usize| {
            let mut markdown = Markdown::new(false);
            let letters: Vec<char> = text.chars().collect();
            let mut out: String =
                letters.chunks(size).map(|piece| markdown.push(&piece.iter().collect::<String>())).collect();
            out.push_str(&markdown.finish());
            out
        };
        let out = whole(1000);
        assert_eq!((whole(1), whole(3)), (out.clone(), out.clone()));
        [
            (BOLD, "<b>"),
            (DIM, "<d>"),
            (ITALIC, "<i>"),
            (UNDERLINE, "<u>"),
            (CYAN, "<c>"),
            (STRUCK, "<s>"),
            (END, "</>"),
        ]
        .iter()
        .fold(out, |out, (code, tag)| out.replace(code, tag))
    }

    #[test]
    fn headings_lists_quotes_and_rules() {
        assert_eq!(shown("# Top #\n## Next\n#no\n"), "<b><u>Top</>\n<b>Next</>\n#no\n");
        assert_eq!(shown("- a\n  * **b**\n1. c\n- [x] d"), "• a\n  • <b>b</>\n1. c\n☑ d\n");
        assert_eq!(shown("> said\n"), "<d>│</> said\n");
        assert!(shown("---\n").starts_with("<d>───"));
        assert_eq!(shown("plain"), "plain\n");
    }

    #[test]
    fn code_is_shown_as_it_stands() {
        assert_eq!(
            shown("```rust\nlet a = **b**;\n| x |\n```\nafter `code` it"),
            "  <d>rust</>\n  <c>let a = **b**;</>\n  <c>| x |</>\nafter <c>code</> it\n"
        );
        assert_eq!(shown("~~~~\n~~~\n~~~~\nout"), "  <c>~~~</>\nout\n");
        assert_eq!(shown("```\nopen"), "  <c>open</>\n");
    }

    #[test]
    fn tables_stand_in_columns() {
        assert_eq!(
            shown("| a | long |\n|---|---:|\n| **x** | 1 |\nend"),
            "<b>a</>  <b>long</>\n<b>x</>     1\nend\n"
        );
        assert_eq!(
            shown("| 大小 | b |\n|---|---|\n| **日** | 1 |\n"),
            "<b>大小</>  <b>b</>\n<b>日</>    1\n"
        );
        assert_eq!(shown("| no table\nend"), "| no table\nend\n");
    }

    #[test]
    fn plain_text_passes_as_it_is() {
        let mut markdown = Markdown::new(true);
        assert_eq!((markdown.push("# a **b"), markdown.finish()), ("# a **b".to_owned(), String::new()));
    }
}
