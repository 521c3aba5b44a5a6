//! Owns the list of files that belong to a skill: what is there, never what is in it. Links lead nowhere.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::Skill;
use super::escape::visible;

/// The folders of a skill whose files are listed, in this order.
pub(super) const RESOURCE_FOLDERS: [&str; 3] = ["scripts", "references", "assets"];
/// The most files that are listed.
pub(super) const MAX_RESOURCES: usize = 80;
/// How many folders below the skill's are looked into.
pub(super) const MAX_DEPTH: usize = 8;
/// The most entries that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The files that belong to a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resources {
    /// Their paths from the skill's folder, with `/`; characters that cannot be seen are escaped.
    pub(super) files: Vec<String>,
    /// There are more files than [`MAX_RESOURCES`].
    is_cut: bool,
    /// There are more entries than [`MAX_ENTRIES`].
    is_partial: bool,
    /// There are folders below [`MAX_DEPTH`], which nobody looked into.
    is_deeper: bool,
    /// How many entries were looked at.
    seen: usize,
}

/// The folder of a skill with all links followed.
pub(super) fn folder_of(skill: &Skill) -> Option<PathBuf> {
    let folder = Path::new(&skill.base_dir);
    if !folder.is_absolute() {
        return None;
    }
    fs::canonicalize(folder).ok()
}

impl Resources {
    /// Lists the files below a folder. What cannot be read is passed over.
    pub(super) fn below(folder: &Path) -> Self {
        let mut resources = Self::default();
        for name in RESOURCE_FOLDERS {
            let path = folder.join(name);
            if fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir()) {
                resources.walk(&path, name, 1);
            }
        }
        resources
    }

    fn walk(&mut self, folder: &Path, shown: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        let left = MAX_ENTRIES.saturating_sub(self.seen);
        let mut entries: Vec<fs::DirEntry> = entries.take(left + 1).flatten().collect();
        if entries.len() > left {
            entries.truncate(left);
            self.is_partial = true;
        }
        self.seen += entries.len();
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            // The type of the entry itself: a link is neither a folder nor a file.
            let Ok(kind) = entry.file_type() else { continue };
            let shown = format!("{shown}/{}", shown_name(&entry.file_name()));
            if kind.is_dir() && depth >= MAX_DEPTH {
                self.is_deeper = true;
            } else if kind.is_dir() {
                self.walk(&entry.path(), &shown, depth + 1);
            } else if kind.is_file() && self.files.len() >= MAX_RESOURCES {
                self.is_cut = true;
            } else if kind.is_file() {
                self.files.push(shown);
            }
            if self.is_cut {
                return;
            }
        }
    }

    /// What the list does not have, in words.
    pub(super) fn missing(&self) -> Vec<String> {
        let reasons = [
            (self.is_cut, format!("list cut at {MAX_RESOURCES}: there are more files")),
            (self.is_partial, format!("list cut: there are more than {MAX_ENTRIES} entries")),
            (self.is_deeper, format!("folders more than {MAX_DEPTH} levels down are not listed")),
        ];
        reasons.into_iter().filter_map(|(is_so, reason)| is_so.then_some(reason)).collect()
    }
}

/// A name as it is listed; bytes that are no text are written as `\x..`.
fn shown_name(name: &OsStr) -> String {
    let mut shown = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        shown.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            shown.extend(["\\x", &format!("{byte:02x}")]);
        }
    }
    shown
}
