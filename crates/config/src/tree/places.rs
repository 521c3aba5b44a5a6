//! Owns the way from offsets to lines and columns, in one walk over the text for offsets that mostly grow.

use crate::problem::Position;

/// Places in a text.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    text: &'a str,
    /// The bytes before the text.
    before: usize,
    /// Where the last question was answered, in bytes and in characters of the text.
    offset: usize,
    characters: usize,
    line: u32,
    column: u32,
}

impl<'a> Places<'a> {
    /// Places in this text, which stands behind so many bytes.
    pub(crate) fn new(text: &'a str, before: usize) -> Self {
        Self { text, before, offset: 0, characters: 0, line: 1, column: 1 }
    }

    /// The place of a byte of the text.
    pub(crate) fn at(&mut self, offset: usize) -> Position {
        self.walk(|place| place.offset < offset, offset < self.offset)
    }

    /// The place of a character of the text, counted from 0.
    pub(crate) fn at_character(&mut self, index: usize) -> Position {
        self.walk(|place| place.characters < index, index < self.characters)
    }

    /// The offset in the file of an offset in the text.
    pub(crate) fn in_file(&self, offset: usize) -> usize {
        self.before + offset
    }

    fn walk(&mut self, go_on: impl Fn(&Self) -> bool, again: bool) -> Position {
        if again {
            *self = Self::new(self.text, self.before);
        }
        let rest = self.text.get(self.offset..).unwrap_or_default();
        for character in rest.chars() {
            if !go_on(self) {
                break;
            }
            self.offset += character.len_utf8();
            self.characters += 1;
            if character == '\n' {
                (self.line, self.column) = (self.line.saturating_add(1), 1);
            } else {
                self.column = self.column.saturating_add(1);
            }
        }
        Position { line: self.line, column: self.column, offset: self.before + self.offset }
    }
}
