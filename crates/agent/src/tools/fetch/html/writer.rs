//! Owns the text that is written while a page is gone through: breaks, lists, links, white space.

use url::Url;

use super::Tag;

/// Lists within lists that are indented.
const MOST_DEPTH: usize = 8;

/// The text so far.
pub(super) struct Writer<'a> {
    base: &'a Url,
    out: String,
    /// Line breaks before whatever comes next.
    breaks: usize,
    space: bool,
    preformatted: usize,
    /// The next number for each open list; `None`: without numbers.
    lists: Vec<Option<u32>>,
    /// Where an open link began, and where it leads.
    link: Option<(usize, String)>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(base: &'a Url) -> Self {
        let lists = Vec::new();
        Self { base, out: String::new(), breaks: 0, space: false, preformatted: 0, lists, link: None }
    }

    /// Text, with its entities resolved.
    pub(super) fn text(&mut self, text: &str) {
        if self.preformatted > 0 {
            if !text.is_empty() {
                self.settle();
                self.out.push_str(text);
            }
            return;
        }
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else {
            self.space |= !text.is_empty();
            return;
        };
        self.space |= text.starts_with(char::is_whitespace);
        self.settle();
        self.out.push_str(first);
        for word in words {
            self.out.push(' ');
            self.out.push_str(word);
        }
        self.space = text.ends_with(char::is_whitespace);
    }

    /// Something that stands as it is.
    fn mark(&mut self, mark: &str) {
        self.settle();
        self.out.push_str(mark);
    }

    /// Writes the breaks or the space that stand before what comes.
    fn settle(&mut self) {
        if self.breaks > 0 {
            if !self.out.is_empty() {
                let trimmed = self.out.trim_end_matches(' ').len();
                self.out.truncate(trimmed);
                self.out.push_str(if self.breaks > 1 { "\n\n" } else { "\n" });
            }
        } else if self.space && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.space = false;
    }

    fn break_lines(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
    }

    pub(super) fn open(&mut self, name: &str, tag: &Tag<'_>) {
        match name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.break_lines(2);
                let level = name.as_bytes().get(1).map_or(1, |digit| usize::from(digit - b'0'));
                self.mark(&format!("{} ", "#".repeat(level)));
            }
            "br" if self.preformatted > 0 => self.mark("\n"),
            "hr" => {
                self.break_lines(2);
                self.mark("---");
                self.break_lines(2);
            }
            "ul" | "ol" => {
                self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
                self.lists.push((name == "ol").then_some(1));
            }
            "li" => {
                self.break_lines(1);
                let depth = self.lists.len().saturating_sub(1).min(MOST_DEPTH);
                let mark = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number = number.saturating_add(1);
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                self.mark(&format!("{}{mark}", "  ".repeat(depth)));
            }
            "pre" => {
                self.break_lines(2);
                self.mark("```\n");
                self.preformatted += 1;
            }
            "code" if self.preformatted == 0 => self.mark("`"),
            "td" | "th" if !self.out.ends_with('\n') && self.breaks == 0 => self.mark(" | "),
            "a" => self.open_link(tag),
            "img" => {
                if let Some(alt) = tag.attribute("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.text(&format!("[image: {}]", alt.trim()));
                }
            }
            _ => self.break_lines(breaks_around(name)),
        }
    }

    pub(super) fn close(&mut self, name: &str) {
        match name {
            "ul" | "ol" => {
                self.lists.pop();
                self.break_lines(if self.lists.is_empty() { 2 } else { 1 });
            }
            "pre" if self.preformatted > 0 => {
                self.preformatted -= 1;
                let trimmed = self.out.trim_end().len();
                self.out.truncate(trimmed);
                self.out.push_str("\n```");
                self.break_lines(2);
            }
            "code" if self.preformatted == 0 => {
                // Belongs to what is before it.
                self.out.push('`');
            }
            "a" => self.close_link(),
            _ => self.break_lines(breaks_around(name)),
        }
    }

    fn open_link(&mut self, tag: &Tag<'_>) {
        self.close_link();
        let Some(to) = tag.attribute("href") else { return };
        let to = to.trim();
        if self.preformatted > 0 || to.is_empty() || to.starts_with('#') {
            return;
        }
        let Some(to) =
            self.base.join(to).ok().filter(|to| matches!(to.scheme(), "http" | "https" | "mailto"))
        else {
            return;
        };
        self.settle();
        self.link = Some((self.out.len(), to.into()));
        self.out.push('[');
    }

    fn close_link(&mut self) {
        let Some((begin, to)) = self.link.take() else { return };
        let inner = self.out.get(begin + 1..).unwrap_or_default();
        if inner.trim().is_empty() {
            self.out.truncate(begin);
        } else {
            self.out.extend(["](", &to, ")"]);
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.close_link();
        if self.preformatted > 0 {
            self.out.push_str("\n```");
        }
        self.out.trim().to_owned()
    }
}

/// Line breaks before and after an element.
fn breaks_around(name: &str) -> usize {
    match name {
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "blockquote" | "section" | "article"
        | "header" | "footer" | "main" | "nav" | "aside" | "figure" | "dl" | "fieldset" | "form"
        | "details" => 2,
        "div" | "tr" | "br" | "dt" | "dd" | "li" | "caption" | "figcaption" | "address" | "summary"
        | "option" | "body" | "head" | "html" | "thead" | "tbody" | "legend" => 1,
        _ => 0,
    }
}
