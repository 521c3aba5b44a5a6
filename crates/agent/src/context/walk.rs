//! Owns looking through folders and reading texts: bounded in number, depth and size.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use toolway_config::{Problem, read_bytes};

/// The largest text that is used whole: 256 KiB.
const LARGEST: usize = 256 * 1024;
/// All texts together: 4 MiB.
const ALL: usize = 4 * 1024 * 1024;
/// No more files.
const FILES: usize = 1000;
/// No more entries of folders are looked at.
const ENTRIES: usize = 20_000;
/// No deeper folders.
const DEPTH: usize = 8;

/// Reads files until there are enough.
#[derive(Debug, Default)]
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
    seen: HashSet<PathBuf>,
    bytes: usize,
    entries: usize,
    is_full: bool,
}

impl Reader {
    /// A file's text. `None`: there is no such file, it was read before, or it cannot be used, which is told.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        let real = match path.canonicalize() {
            Ok(real) => real,
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && path.symlink_metadata().is_err() =>
            {
                return None;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return None,
            Err(error) => {
                self.problems.push(Problem::warning(format!("cannot be read: {error}")).file(path));
                return None;
            }
        };
        if self.seen.contains(&real) || self.is_enough(path) {
            return None;
        }
        let bytes = match read_bytes(&real) {
            Ok(bytes) => bytes,
            Err(problem) => {
                self.problems.push(problem.file(path));
                return None;
            }
        };
        self.seen.insert(real);
        let Ok(mut text) = String::from_utf8(bytes) else {
            self.problems.push(Problem::error("is no UTF-8 text").file(path));
            return None;
        };
        if text.len() > LARGEST {
            let cut = (0..=LARGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            text.truncate(cut);
            let problem = Problem::warning(format!("is longer than {LARGEST} bytes and is used up to there"));
            self.problems.push(problem.file(path));
        }
        self.bytes += text.len();
        Some(text)
    }

    fn is_enough(&mut self, path: &Path) -> bool {
        let full = self.seen.len() >= FILES || self.bytes >= ALL;
        if full && !self.is_full {
            self.is_full = true;
            let message =
                format!("and what follows is not read: there are {FILES} files or {ALL} bytes already");
            self.problems.push(Problem::warning(message).file(path));
        }
        full
    }

    /// The files below a folder with this ending, in the order of their names. Links to folders are not followed.
    pub(super) fn files(&mut self, folder: &Path, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.walk(folder, ending, 0, &mut found);
        found
    }

    fn walk(&mut self, folder: &Path, ending: &str, depth: usize, found: &mut Vec<PathBuf>) {
        for path in self.entries(folder) {
            let Ok(kind) = path.symlink_metadata() else { continue };
            if kind.is_dir() {
                if depth < DEPTH {
                    self.walk(&path, ending, depth + 1, found);
                }
            } else if path.extension().is_some_and(|own| own == ending) {
                found.push(path);
            }
        }
    }

    /// What is in a folder, in the order of its names.
    pub(super) fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let left = ENTRIES.saturating_sub(self.entries);
        let mut paths: Vec<PathBuf> = entries.take(left + 1).flatten().map(|entry| entry.path()).collect();
        if paths.len() > left {
            paths.truncate(left);
            if left > 0 {
                let message =
                    format!("is not looked through to its end: it makes more than {ENTRIES} entries");
                self.problems.push(Problem::warning(message).file(folder));
            }
        }
        self.entries += paths.len();
        paths.sort();
        paths
    }
}
