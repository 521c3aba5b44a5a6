//! Owns expansions: what stands behind a dollar sign, and backquotes. Their values are unknown; the commands in them are
//! read.

use super::Word;
use super::parser::{DEPTH, Parser};

impl Parser<'_> {
    /// Reads what begins with `$` or a backquote.
    pub(super) fn expansion(&mut self, word: &mut Word, in_double: bool) {
        if self.next() == Some('`') {
            return self.backquoted(word, in_double);
        }
        let Some(c) = self.peek(0) else {
            word.text.push('$');
            return;
        };
        match c {
            '(' => {
                self.at += 1;
                if self.peek(0) == Some('(') {
                    self.script.unclear("it calculates");
                }
                unknown(word);
                self.substitution();
            }
            '{' => {
                self.at += 1;
                unknown(word);
                self.braces(in_double);
            }
            '[' => {
                self.script.unclear("it calculates");
                unknown(word);
            }
            '\'' if !in_double => {
                self.at += 1;
                self.ansi(word);
            }
            '"' if !in_double => {
                self.at += 1;
                self.double(word);
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                unknown(word);
                while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            '0'..='9' | '?' | '$' | '!' | '#' | '@' | '*' | '-' => {
                unknown(word);
                self.at += 1;
            }
            _ => word.text.push('$'),
        }
    }

    /// `${...}`, from behind the opening brace.
    fn braces(&mut self, in_double: bool) {
        if self.depth >= DEPTH {
            self.script.unclear("its expansions are too deep in one another");
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        if self.peek(0).is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '|' | '!')) {
            self.script.unclear("an expansion runs commands, or names another variable");
        }
        let mut inside = Word::default();
        loop {
            match self.peek(0) {
                None => {
                    self.script.unclear("an expansion is not closed");
                    break;
                }
                Some('}') => {
                    self.at += 1;
                    break;
                }
                Some('\\') => self.at += 2,
                Some('\'') => {
                    if in_double {
                        self.script.unclear("a quote stands in an expansion");
                    }
                    self.at += 1;
                    while !in_double && self.next().is_some_and(|c| c != '\'') {}
                }
                Some('"') => {
                    self.at += 1;
                    self.double(&mut inside);
                }
                Some('$' | '`') => self.expansion(&mut inside, in_double),
                Some('@') if self.peek(1).is_some_and(|c| c.is_ascii_alphabetic()) => {
                    self.script.unclear("an expansion may run what a variable holds");
                    self.at += 1;
                }
                Some(_) => self.at += 1,
            }
        }
        self.at = self.at.min(self.text.len());
        self.depth -= 1;
    }

    /// From behind the opening backquote.
    fn backquoted(&mut self, word: &mut Word, in_double: bool) {
        unknown(word);
        let mut text = String::new();
        loop {
            match self.next() {
                None => {
                    self.script.unclear("a backquote is not closed");
                    break;
                }
                Some('`') => break,
                Some('\\') => match self.next() {
                    Some(c @ ('`' | '$' | '\\')) => text.push(c),
                    Some('"') if in_double => text.push('"'),
                    Some(c) => text.extend(['\\', c]),
                    None => {}
                },
                Some(c) => text.push(c),
            }
        }
        if !self.pending.is_empty() {
            self.script.unclear("a substitution stands before the body of a here-document");
        }
        Parser::new(&text, self.depth + 1, self.script).whole();
    }

    /// A text in which nothing but expansions counts: the body of a here-document.
    pub(super) fn expansions(mut self) {
        let mut word = Word::default();
        while let Some(c) = self.peek(0) {
            match c {
                '\\' => self.at += 2,
                '$' | '`' => self.expansion(&mut word, true),
                _ => self.at += 1,
            }
        }
    }
}

fn unknown(word: &mut Word) {
    word.known = false;
    word.bare = false;
    word.text.push('…');
}
