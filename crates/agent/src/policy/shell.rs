//! Owns what a command line does, as far as its text shows it: which commands it runs, also inside of others, and which
//! files it writes. What cannot be known is said to be unknown. It runs nothing.

mod expansion;
mod inner;
mod matching;
mod parser;
mod word;

#[cfg(test)]
mod tests;

use std::cell::Cell;

pub(super) use matching::{Denial, allows, denies};

/// A longer text is not looked through.
const LONGEST: usize = 64 * 1024;
/// No more commands in one text.
const MOST: usize = 1000;

/// Texts inside of texts that are looked through, in all.
const TEXTS: usize = 500;

/// How much is looked through.
#[derive(Clone, Copy)]
struct Limits<'a> {
    depth: usize,
    /// What is left of [`TEXTS`].
    texts: &'a Cell<usize>,
}

/// A command line taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Every simple command, also in subshells, substitutions and bodies.
    pub(super) commands: Vec<Command>,
    /// Files that it writes by redirection.
    pub(super) writes: Vec<Word>,
    /// Files that it reads by redirection.
    pub(super) reads: Vec<Word>,
    /// It goes to another folder: relative paths mean something else afterwards.
    pub(super) moves: bool,
    /// Why not all of it is understood.
    pub(super) unclear: Option<&'static str>,
    /// What its commands run in their turn: `sudo X`, `sh -c X`, `find -exec X`. More than there is, rather than less.
    pub(super) inner: Vec<Self>,
}

/// A simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Variables are set for it, or it is nothing but that.
    pub(super) assigns: bool,
    /// Its input comes from the text: a pipe, a here-document, a file.
    pub(super) fed: bool,
}

/// A word without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// The text is all of it, and what the command gets.
    pub(super) known: bool,
    /// Nothing in it was quoted.
    pub(super) bare: bool,
    /// It begins like `NAME=`.
    pub(super) assigns: bool,
}

impl Script {
    /// Takes a command line apart.
    pub(super) fn of(text: &str) -> Self {
        Self::within(text, Limits { depth: 0, texts: &Cell::new(TEXTS) })
    }

    fn within(text: &str, limits: Limits<'_>) -> Self {
        let mut script = Self::default();
        let left = limits.texts.get();
        if text.len() > LONGEST || left == 0 {
            script.unclear("it is too long to be looked through");
            return script;
        }
        limits.texts.set(left - 1);
        parser::Parser::new(text, limits.depth, &mut script).whole();
        inner::reveal(&mut script, limits);
        script
    }

    fn unclear(&mut self, why: &'static str) {
        self.unclear.get_or_insert(why);
    }

    fn add(&mut self, command: Command) {
        if self.commands.len() >= MOST {
            return self.unclear("it has too many commands");
        }
        let first = command.words.first().map(|word| word.text.as_str()).unwrap_or_default();
        self.moves |= matches!(first, "cd" | "pushd" | "popd");
        self.commands.push(command);
    }

    /// This one and all inside.
    pub(super) fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(script) = all.get(next).copied() {
            all.extend(&script.inner);
            next += 1;
        }
        all
    }
}

impl Command {
    /// The program's name: without folders, and as file systems compare that know no case.
    fn name(&self) -> Option<String> {
        let first = self.words.first().filter(|word| word.known)?;
        let name = first.text.rsplit(['/', '\\']).next().unwrap_or_default().to_lowercase();
        let name = name.strip_prefix('=').unwrap_or(&name);
        Some(name.strip_suffix(".exe").unwrap_or(name).to_owned())
    }

    /// As one text, for people.
    pub(super) fn shown(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(|word| word.text.as_str()).collect();
        words.join(" ")
    }
}
