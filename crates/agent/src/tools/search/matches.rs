//! Owns what is kept of the finds in one file, and how it is written down.

use std::io;
use std::path::{Path, PathBuf};

use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

/// Characters of a line that are shown.
const LINE_CHARS: usize = 500;

/// The finds in one file.
#[derive(Debug)]
pub(super) struct FileMatches {
    pub(super) path: PathBuf,
    /// Lines with finds.
    pub(super) finds: usize,
    lines: Vec<Line>,
}

#[derive(Debug)]
enum Line {
    /// With a find, and which number it has.
    Find(u64, String),
    /// Beside one.
    Beside(u64, String),
    /// Something is left out.
    Gap,
}

/// A line of the answer.
pub(super) struct Entry {
    pub(super) text: String,
    /// It counts for the limit.
    pub(super) counts: bool,
}

impl FileMatches {
    /// The lines of the answer.
    pub(super) fn entries(&self, mode: &str, named: &str) -> Vec<Entry> {
        match mode {
            "files" => vec![Entry { text: named.to_owned(), counts: true }],
            "count" => vec![Entry { text: format!("{named}:{}", self.finds), counts: true }],
            _ => self
                .lines
                .iter()
                .map(|line| match line {
                    Line::Find(number, text) => {
                        Entry { text: format!("{named}:{number}:{text}"), counts: true }
                    }
                    Line::Beside(number, text) => {
                        Entry { text: format!("{named}-{number}-{text}"), counts: false }
                    }
                    Line::Gap => Entry { text: "--".to_owned(), counts: false },
                })
                .collect(),
        }
    }
}

/// Takes what is found in one file.
#[derive(Debug)]
pub(super) struct Taking {
    keep: usize,
    first_only: bool,
    finds: usize,
    lines: Vec<Line>,
    binary: bool,
}

impl Taking {
    /// At most `keep` finds are kept, the others counted; `first_only`: the first is enough.
    pub(super) fn new(keep: usize, first_only: bool) -> Self {
        Self { keep, first_only, finds: 0, lines: Vec::new(), binary: false }
    }

    /// What was found; a file that proved to be binary counts as having nothing.
    pub(super) fn done(self, path: &Path) -> Option<FileMatches> {
        let found = self.finds > 0 && !self.binary;
        found.then(|| FileMatches { path: path.to_owned(), finds: self.finds, lines: self.lines })
    }
}

impl Sink for &mut Taking {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        // A find over several lines has all of them.
        for (number, line) in (found.line_number().unwrap_or(0)..).zip(found.lines()) {
            self.finds += 1;
            if self.finds <= self.keep {
                self.lines.push(Line::Find(number, shown(line)));
            }
        }
        Ok(!self.first_only)
    }

    fn context(&mut self, _searcher: &Searcher, beside: &SinkContext<'_>) -> io::Result<bool> {
        if self.finds <= self.keep && self.keep > 0 {
            self.lines.push(Line::Beside(beside.line_number().unwrap_or(0), shown(beside.bytes())));
        }
        Ok(true)
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        if self.finds < self.keep {
            self.lines.push(Line::Gap);
        }
        Ok(true)
    }

    fn binary_data(&mut self, _searcher: &Searcher, _at: u64) -> io::Result<bool> {
        self.binary = true;
        Ok(false)
    }
}

fn shown(line: &[u8]) -> String {
    // Of a very long line only the beginning is looked at.
    let most = line.get(..line.len().min(LINE_CHARS * 4 + 4)).unwrap_or_default();
    let text = String::from_utf8_lossy(most);
    let text = text.trim_end_matches(['\n', '\r']);
    let mut places = text.char_indices().skip(LINE_CHARS);
    match places.next() {
        None => text.to_owned(),
        Some((end, _)) => {
            format!("{} [... cut, the line has {} bytes]", text.get(..end).unwrap_or_default(), line.len())
        }
    }
}
