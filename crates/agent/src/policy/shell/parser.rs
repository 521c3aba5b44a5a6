//! Owns the grammar of command lists: separators, subshells, redirections, here-documents (POSIX.1-2024, XCU 2, and what
//! bash adds). Where shells differ, the text counts as unclear.

use super::{Command, Script, Word};

/// Deeper substitutions are not looked into.
pub(super) const DEPTH: usize = 16;

/// Reads one text from its beginning to its end.
pub(super) struct Parser<'a> {
    pub(super) text: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) script: &'a mut Script,
    /// Here-documents whose bodies begin with the next line.
    pub(super) pending: Vec<HereDocument>,
}

pub(super) struct HereDocument {
    end: String,
    /// Nothing in it is replaced.
    quoted: bool,
    tabs: bool,
}

/// A command that is being read.
#[derive(Default)]
struct Reading {
    command: Command,
    /// Words that are data: `for x in ...`.
    data: bool,
    /// The next word is a name: `function NAME`.
    name: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &str, depth: usize, script: &'a mut Script) -> Self {
        Self { text: text.chars().collect(), at: 0, depth, script, pending: Vec::new() }
    }

    pub(super) fn whole(mut self) {
        if self.depth > DEPTH {
            return self.script.unclear("its commands are too deep in one another");
        }
        self.list(false);
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek(0);
        self.at += usize::from(next.is_some());
        next
    }

    fn take(&mut self, wanted: &str) -> bool {
        let fits = wanted.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c));
        if fits {
            self.at += wanted.chars().count();
        }
        fits
    }

    fn blanks(&mut self) {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Reads commands, in a substitution up to the bracket that closes it.
    pub(super) fn list(&mut self, in_brackets: bool) {
        let mut reading = Reading::default();
        let mut open = 0_usize;
        loop {
            self.blanks();
            let Some(next) = self.peek(0) else { break };
            match next {
                '#' => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '\n' => {
                    self.at += 1;
                    self.finish(&mut reading, false);
                    self.bodies();
                }
                '&' if self.peek(1) == Some('>') => self.redirection(&mut reading),
                ';' | '&' | '|' => self.separator(&mut reading),
                '(' => {
                    self.at += 1;
                    if self.peek(0) == Some('(') {
                        self.script.unclear("it calculates");
                    }
                    self.finish(&mut reading, false);
                    open += 1;
                }
                ')' => {
                    self.at += 1;
                    self.finish(&mut reading, false);
                    if open == 0 && in_brackets {
                        if !self.pending.is_empty() {
                            self.script.unclear("a here-document ends in another command than it begins in");
                        }
                        return;
                    }
                    if open == 0 {
                        self.script.unclear("a bracket closes nothing");
                    }
                    open = open.saturating_sub(1);
                }
                '<' | '>' => self.redirection(&mut reading),
                _ => self.one_word(&mut reading),
            }
        }
        self.finish(&mut reading, false);
        if in_brackets || open > 0 || !self.pending.is_empty() {
            self.script.unclear("it ends in the middle");
        }
    }

    fn separator(&mut self, reading: &mut Reading) {
        let is_pipe = self.peek(0) == Some('|') && self.peek(1) != Some('|');
        self.at += if is_pipe && self.peek(1) == Some('&') { 2 } else { 1 };
        if !is_pipe && matches!(self.peek(0), Some('|' | '&' | ';')) {
            self.at += 1;
        }
        self.finish(reading, is_pipe);
    }

    fn finish(&mut self, reading: &mut Reading, feeds_next: bool) {
        let done = std::mem::take(reading);
        if !done.command.words.is_empty() || done.command.assigns {
            self.script.add(done.command);
        }
        reading.command.fed = feeds_next;
    }

    fn one_word(&mut self, reading: &mut Reading) {
        let word = self.word();
        let is_number = !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit());
        if word.bare && is_number && matches!(self.peek(0), Some('<' | '>')) {
            return;
        }
        if reading.data {
            return;
        }
        if std::mem::take(&mut reading.name) {
            return;
        }
        let command = &mut reading.command;
        if !command.words.is_empty() {
            command.words.push(word);
            return;
        }
        if word.assigns {
            command.assigns = true;
            return;
        }
        match word.text.as_str() {
            "if" | "then" | "else" | "elif" | "while" | "until" | "do" | "!" | "{" | "}" | "fi" | "done"
            | "esac"
                if word.bare => {}
            "for" | "select" if word.bare => reading.data = true,
            "function" if word.bare => reading.name = true,
            "case" if word.bare => {
                // Its patterns end in brackets that open nowhere.
                self.script.unclear("it chooses by patterns");
                reading.data = true;
            }
            _ => command.words.push(word),
        }
    }

    fn redirection(&mut self, reading: &mut Reading) {
        if self.take("<<") {
            if self.take("<") {
                reading.command.fed = true;
                self.target();
                return;
            }
            return self.here_document(reading);
        }
        if self.take("<(") || self.take(">(") {
            self.substitution();
            reading.command.words.push(Word::default());
            return;
        }
        let operators = ["&>>", "&>", ">>", ">|", ">&", "<>", "<&", ">", "<"];
        let operator = operators.into_iter().find(|operator| self.take(operator)).unwrap_or_default();
        let Some(target) = self.target() else { return };
        let is_descriptor = target.bare
            && target.text.trim_end_matches('-').chars().all(|c| c.is_ascii_digit())
            && target.known;
        match operator {
            ">&" | "<&" if is_descriptor => {}
            "<" | "<&" => {
                reading.command.fed = true;
                self.script.reads.push(target);
            }
            _ => self.script.writes.push(target),
        }
    }

    fn target(&mut self) -> Option<Word> {
        self.blanks();
        let is_word =
            self.peek(0).is_some_and(|c| !matches!(c, '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'));
        if !is_word {
            self.script.unclear("a redirection leads nowhere");
        }
        is_word.then(|| self.word())
    }

    fn here_document(&mut self, reading: &mut Reading) {
        let tabs = self.take("-");
        reading.command.fed = true;
        let Some(end) = self.target() else { return };
        if !end.known {
            self.script.unclear("the end of a here-document cannot be known");
        }
        self.pending.push(HereDocument { end: end.text, quoted: !end.bare, tabs });
    }

    fn bodies(&mut self) {
        for document in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            while self.at < self.text.len() {
                let line = self.line();
                let shown = if document.tabs { line.trim_start_matches('\t') } else { &line };
                if shown == document.end {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if !document.quoted {
                if body.contains("\\\n") {
                    self.script.unclear("lines of a here-document are joined");
                }
                Parser::new(&body, self.depth + 1, self.script).expansions();
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        while let Some(c) = self.next().filter(|c| *c != '\n') {
            line.push(c);
        }
        line
    }

    /// A substitution from behind its opening bracket to its end.
    pub(super) fn substitution(&mut self) {
        if !self.pending.is_empty() {
            self.script.unclear("a substitution stands before the body of a here-document");
        }
        if self.depth >= DEPTH {
            self.script.unclear("its commands are too deep in one another");
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        self.list(true);
        self.depth -= 1;
    }
}
