//! Owns what worked with each server before: generation and transport, by the digest of its definition, in memory
//! and in one small file. Knows no connection.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use toolway_wire::era::Era;

use super::Carrier;

/// As many servers are remembered; the oldest are forgotten.
const MAX: usize = 512;
/// A larger file is not ours.
const MAX_FILE: u64 = 1 << 20;

/// What worked with one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// The generation that it spoke.
    pub era: Era,
    /// The transport that it had.
    pub carrier: Carrier,
}

/// What worked with each server before, so that the first contact need not be guessed again.
#[derive(Debug, Default)]
pub struct Eras {
    file: Option<PathBuf>,
    known: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    loaded: bool,
    /// Oldest first.
    order: Vec<String>,
    entries: HashMap<String, Known>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    digest: String,
    era: String,
    transport: String,
}

impl Eras {
    /// Keeps them in `file` too, when one is given. It is read at the first question; a file that is missing or
    /// broken is as good as an empty one.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self { file, known: Mutex::default() }
    }

    /// What worked before.
    pub fn get(&self, digest: &str) -> Option<Known> {
        self.table().entries.get(digest).copied()
    }

    /// This worked now. The file is written only when something has changed.
    pub fn set(&self, digest: &str, known: Known) {
        let mut table = self.table();
        if digest.is_empty() || table.entries.get(digest) == Some(&known) {
            return;
        }
        table.insert(digest.to_owned(), known);
        if let Some(file) = &self.file
            && let Err(error) = table.write(file)
        {
            tracing::debug!(%error, file = %file.display(), "the servers' generations could not be kept");
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        let mut table = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut table.loaded, true)
            && let Some(file) = &self.file
        {
            table.read(file);
        }
        table
    }
}

impl Table {
    fn insert(&mut self, digest: String, known: Known) {
        self.order.retain(|other| *other != digest);
        self.order.push(digest.clone());
        self.entries.insert(digest, known);
        if self.order.len() > MAX {
            let oldest = self.order.remove(0);
            self.entries.remove(&oldest);
        }
    }

    fn read(&mut self, file: &Path) {
        if fs::metadata(file).map_or(true, |metadata| !metadata.is_file() || metadata.len() > MAX_FILE) {
            return;
        }
        let text = fs::read_to_string(file).unwrap_or_default();
        for line in text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok()) {
            let era = match line.era.as_str() {
                "legacy" => Era::Legacy,
                "modern" => Era::Modern,
                _ => continue,
            };
            let carriers = [Carrier::Stdio, Carrier::StreamableHttp, Carrier::Sse];
            if let Some(carrier) = carriers.into_iter().find(|carrier| carrier.name() == line.transport) {
                self.insert(line.digest, Known { era, carrier });
            }
        }
    }

    /// A reader sees the old file or the new one.
    fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut text = String::new();
        for digest in &self.order {
            let Some(known) = self.entries.get(digest) else { continue };
            let line = Line {
                digest: digest.clone(),
                era: if known.era == Era::Modern { "modern" } else { "legacy" }.to_owned(),
                transport: known.carrier.name().to_owned(),
            };
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut name = file.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}", std::process::id()));
        let temporary = file.with_file_name(name);
        fs::write(&temporary, text)?;
        fs::rename(&temporary, file).inspect_err(|_| {
            fs::remove_file(&temporary).ok();
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODERN: Known = Known { era: Era::Modern, carrier: Carrier::StreamableHttp };
    const SSE: Known = Known { era: Era::Legacy, carrier: Carrier::Sse };

    #[test]
    fn what_worked_is_known_again_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("deep/eras");
        let eras = Eras::new(Some(file.clone()));
        assert_eq!(eras.get("a"), None);
        eras.set("a", SSE);
        eras.set("b", SSE);
        eras.set("a", MODERN);
        let again = Eras::new(Some(file.clone()));
        assert_eq!((again.get("a"), again.get("b"), again.get("c")), (Some(MODERN), Some(SSE), None));
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_broken_file_is_an_empty_one() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("eras");
        for text in ["", "{", "nonsense\n\u{0}", r#"{"digest":"a","era":"x","transport":"sse"}"#] {
            fs::write(&file, text).unwrap();
            assert_eq!(Eras::new(Some(file.clone())).get("a"), None, "{text:?}");
        }
        assert_eq!(Eras::new(Some(directory.path().to_owned())).get("a"), None, "a directory");
    }

    #[test]
    fn only_the_last_servers_are_remembered() {
        let eras = Eras::new(None);
        for number in 0..=MAX {
            eras.set(&number.to_string(), SSE);
        }
        assert_eq!((eras.get("0"), eras.get("1")), (None, Some(SSE)));
    }
}
