//! Owns the list of files that belong to a skill: what is there, never what is in it. Links lead nowhere.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::Skill;
use super::escape::visible;

/// The folders of a skill whose files are listed, in this order.
pub const RESOURCE_FOLDERS: [&str; 3] = ["scripts", "references", "assets"];
/// The most files that are listed.
pub const MAX_RESOURCES: usize = 80;
/// How many folders below the skill's are looked into.
pub const MAX_DEPTH: usize = 8;
/// The most entries of one folder that are looked at: a folder with more of them is listed in part.
const MAX_ENTRIES: usize = 10_000;

/// The files that belong to a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// Their paths from the skill's folder, with `/`; characters that cannot be seen are escaped.
    pub files: Vec<String>,
    /// There are more files than [`MAX_RESOURCES`], or more entries than anybody looks at.
    pub is_cut: bool,
    /// There are folders below [`MAX_DEPTH`], which nobody looked into.
    pub is_deeper: bool,
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
        let mut entries: Vec<fs::DirEntry> = entries.take(MAX_ENTRIES + 1).flatten().collect();
        if entries.len() > MAX_ENTRIES {
            entries.truncate(MAX_ENTRIES);
            self.is_cut = true;
        }
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            // The type of the entry itself: a link is neither a folder nor a file.
            let Ok(kind) = entry.file_type() else { continue };
            let shown = format!("{shown}/{}", shown_name(&entry.file_name()));
            if kind.is_dir() && depth >= MAX_DEPTH {
                self.is_deeper = true;
            } else if kind.is_dir() {
                self.walk(&entry.path(), &shown, depth + 1);
            } else if kind.is_file() && self.files.len() < MAX_RESOURCES {
                self.files.push(shown);
            } else if kind.is_file() {
                self.is_cut = true;
            }
            if self.is_cut && self.files.len() >= MAX_RESOURCES {
                return;
            }
        }
    }
}

/// A name as it is listed; bytes that are no text are written as `\x..`.
fn shown_name(name: &OsStr) -> String {
    let mut shown = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        shown.push_str(&visible(chunk.valid()));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}
