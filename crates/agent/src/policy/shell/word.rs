//! Owns words: quotes, escapes, and what makes a word's text unknown.

use super::Word;
use super::parser::Parser;

impl Parser<'_> {
    /// Reads a word. What is there is the beginning of one.
    pub(super) fn word(&mut self) -> Word {
        let mut word = Word { known: true, bare: true, ..Word::default() };
        let start = self.at;
        // An opening brace that a comma or two dots may follow.
        let mut brace = false;
        while let Some(c) = self.peek(0) {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' => break,
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some('\n') => {}
                        Some(escaped) => {
                            word.text.push(escaped);
                            word.bare = false;
                        }
                        None => word.text.push('\\'),
                    }
                    continue;
                }
                '\'' => {
                    self.at += 1;
                    self.single(&mut word);
                    continue;
                }
                '"' => {
                    self.at += 1;
                    self.double(&mut word);
                    continue;
                }
                '$' | '`' => {
                    self.expansion(&mut word, false);
                    continue;
                }
                '*' | '?' | '[' => word.known = false,
                '{' => brace = true,
                ',' | '.' if brace && (c == ',' || self.peek(1) == Some('.')) => word.known = false,
                '~' if self.at == start && self.peek(1).is_some_and(|c| c.is_alphanumeric() || c == '+') => {
                    word.known = false;
                }
                '=' if word.bare && is_name(&word.text) => word.assigns = true,
                _ => {}
            }
            word.text.push(c);
            self.at += 1;
        }
        word
    }

    fn single(&mut self, word: &mut Word) {
        word.bare = false;
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\n' => self.line_break(),
                _ => {}
            }
            word.text.push(c);
        }
        self.script.unclear("a quote is not closed");
    }

    /// Text in double quotes, from behind the first one.
    pub(super) fn double(&mut self, word: &mut Word) {
        word.bare = false;
        while let Some(c) = self.peek(0) {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' => {
                    self.at += 1;
                    match self.next() {
                        Some(c @ ('$' | '`' | '"' | '\\')) => word.text.push(c),
                        Some('\n') | None => {}
                        Some(c) => word.text.extend(['\\', c]),
                    }
                }
                '$' | '`' => self.expansion(word, true),
                _ => {
                    if c == '\n' {
                        self.line_break();
                    }
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        self.script.unclear("a quote is not closed");
    }

    fn line_break(&mut self) {
        if !self.pending.is_empty() {
            self.script.unclear("a quote goes on before the body of a here-document");
        }
    }

    /// `$'...'`, from behind the first quote.
    pub(super) fn ansi(&mut self, word: &mut Word) {
        word.bare = false;
        while let Some(c) = self.next() {
            match c {
                '\'' => return,
                '\\' => {
                    let Some(c) = self.next() else { break };
                    match self.ansi_escape(c) {
                        Some('\0') => word.known = false,
                        Some(c) => word.text.push(c),
                        None => word.text.extend(['\\', c]),
                    }
                }
                _ => word.text.push(c),
            }
        }
        self.script.unclear("a quote is not closed");
    }

    fn ansi_escape(&mut self, c: char) -> Option<char> {
        Some(match c {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\x07',
            'b' => '\x08',
            'e' | 'E' => '\x1b',
            'f' => '\x0c',
            'v' => '\x0b',
            '\\' | '\'' | '"' | '?' => c,
            'x' => self.digits(16, 2, 0)?,
            'u' => self.digits(16, 4, 0)?,
            'U' => self.digits(16, 8, 0)?,
            '0'..='7' => self.digits(8, 2, c.to_digit(8).unwrap_or(0))?,
            'c' => {
                let control = self.next()?;
                char::from_u32(u32::from(control) & 0x1f)?
            }
            _ => return None,
        })
    }

    fn digits(&mut self, radix: u32, most: usize, first: u32) -> Option<char> {
        let mut value = first;
        for _ in 0..most {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        char::from_u32(value)
    }
}

/// `NAME`, `NAME+`.
fn is_name(text: &str) -> bool {
    let name = text.strip_suffix('+').unwrap_or(text);
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
