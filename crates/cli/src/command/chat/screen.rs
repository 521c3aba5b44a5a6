//! Owns what is shown of a chat: the answer as markdown, what the agent thinks and does, notices. It decides nothing.

use std::io::{self, Write};

use toolway_bridge::{Card, NoticeLevel};

use super::super::person::Console;
use super::card;
use super::markdown::{BOLD, CYAN, DIM, END, Markdown, RED};
use crate::show::{Terminal, fit, one_line, safe};

/// The screen, or the two streams where there is none.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "what is known of the streams and of what stands on them")]
pub(super) struct Screen {
    console: Console,
    terminal: Terminal,
    /// stdout is a terminal, and colours are wanted.
    colours: bool,
    /// stdout is a terminal.
    out: bool,
    answer: Markdown,
    /// The last line that was shown is not ended.
    in_line: bool,
    thinks: bool,
    /// Nobody reads stdout.
    pub(super) gone: bool,
}

impl Screen {
    pub(super) fn new(
        console: Console,
        terminal: Terminal,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let unwanted = variable("NO_COLOR").is_some_and(|value| !value.is_empty())
            || variable("TERM").is_some_and(|term| term == "dumb");
        let colours = terminal.out && !unwanted;
        Self {
            console,
            terminal,
            colours,
            out: terminal.out,
            answer: Markdown::new(!colours),
            in_line: false,
            thinks: false,
            gone: false,
        }
    }

    /// More of the answer.
    pub(super) fn text(&mut self, text: &str) {
        self.end_thinking();
        let safe = if self.out { safe(text).into_owned() } else { text.to_owned() };
        let shown = self.answer.push(&safe);
        self.put(&shown);
    }

    /// More of what it thinks, and of what it does where there is no card.
    pub(super) fn thinking(&mut self, text: &str) {
        self.end_answer();
        // A line that is whole needs no end.
        self.thinks = !text.ends_with('\n');
        if self.colours {
            let (text, end) = text.strip_suffix('\n').map_or((text, ""), |text| (text, "\n"));
            self.put(&format!("{DIM}{}{END}{end}", safe(text)));
        } else {
            self.console.tell(&safe(text));
        }
    }

    /// A tool of the chat is about to run.
    pub(super) fn call(&mut self, name: &str, arguments: &str) {
        self.end_answer();
        let line = format!("{} {}", self.painted("●", CYAN), self.painted(&one_line(name, 80), BOLD));
        let arguments =
            if arguments == "{}" { String::new() } else { format!(" {}", one_line(arguments, 120)) };
        self.put(&format!("{line}{}\n", self.painted(&arguments, DIM)));
    }

    /// What it gave.
    pub(super) fn result(&mut self, text: &str, is_error: bool) {
        let body = card::preview(text);
        let shown = card::body(&body, is_error, self.colours);
        self.put(&shown);
    }

    /// What the agent did with one of its own tools.
    pub(super) fn card(&mut self, card: &Card) {
        self.end_answer();
        let shown = card::shown(card, self.colours);
        self.put(&shown);
    }

    /// The answer is whole.
    pub(super) fn end_answer(&mut self) {
        let rest = self.answer.finish();
        self.put(&rest);
        self.end_thinking();
        if std::mem::take(&mut self.in_line) {
            self.put("\n");
            self.in_line = false;
        }
    }

    /// An answer to a command of the user's.
    pub(super) fn page(&mut self, text: &str) {
        self.end_answer();
        let text = if self.out { safe(text).into_owned() } else { text.to_owned() };
        self.put(&text);
        self.end_answer();
    }

    /// The sign that a prompt may be typed.
    pub(super) fn prompt(&mut self, sign: &str) {
        if self.out {
            let sign = self.painted(sign, BOLD);
            self.put(&sign);
            self.in_line = false;
        }
    }

    /// A notice on stderr; whoever reads it may be gone.
    pub(super) fn notice(&mut self, level: NoticeLevel, text: &str) {
        self.end_answer();
        let word = match level {
            NoticeLevel::Info => "note",
            NoticeLevel::Warning => "warning",
            NoticeLevel::Error => "error",
        };
        let word = if self.colours && level == NoticeLevel::Error {
            format!("{RED}{word}{END}")
        } else {
            word.to_owned()
        };
        self.console.tell(&format!("{word}: {}\n", safe(text)));
    }

    /// What goes on, on a line of its own, until something is said. Only where the cursor may be moved.
    pub(super) fn status(&mut self, line: &str) {
        if self.colours && !self.in_line && !self.thinks && !self.gone {
            let line = fit(line, self.terminal.width_now().saturating_sub(1));
            self.console.status(&format!("{DIM}{line}{END}"));
        }
    }

    /// Ctrl-C was pressed: its sign stands on the line, or a question.
    pub(super) fn interrupted(&mut self) {
        if self.terminal.asks {
            self.console.tell("\n");
        }
    }

    fn end_thinking(&mut self) {
        if std::mem::take(&mut self.thinks) {
            if self.colours {
                self.put("\n");
                self.in_line = false;
            } else {
                self.console.tell("\n");
            }
        }
    }

    fn painted(&self, text: &str, code: &str) -> String {
        if self.colours && !text.is_empty() { format!("{code}{text}{END}") } else { text.to_owned() }
    }

    fn put(&mut self, text: &str) {
        if text.is_empty() || self.gone {
            return;
        }
        self.console.clear();
        let mut out = io::stdout().lock();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            self.gone = true;
        }
        self.in_line = !text.ends_with('\n');
    }
}
