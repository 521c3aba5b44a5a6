//! Owns what a person has approved: name, file and digest of a definition, in one file of mode 0600. Knows nothing of
//! what the digest covers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::error::ConfigError;

#[cfg(test)]
mod tests;

/// The version of the file's shape.
const VERSION: u32 = 1;
/// More than this is no file of ours.
const LONGEST: u64 = 4 << 20;

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// The file that the definition stands in.
    pub file: PathBuf,
    /// The server's name.
    pub name: String,
    /// Digest of what was approved.
    pub digest: String,
    /// When, in seconds since 1970.
    pub at: u64,
}

/// The file's shape.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    approved: Vec<Approval>,
}

/// What the store says about a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It was approved as it is.
    Approved,
    /// Another content was approved.
    Changed,
    /// It was never approved.
    New,
}

/// The approvals of one user.
#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
    approved: Vec<Approval>,
}

impl TrustStore {
    /// Reads the store. There being none is an empty one; one that cannot be understood, or that others may write to,
    /// is an error.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let path = path.into();
        let approved = read(&path)?;
        Ok(Self { path, approved })
    }

    /// One that has nothing, for when the file cannot be read.
    pub(crate) fn empty(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), approved: Vec::new() }
    }

    /// All approvals, in the order of their file and name.
    pub fn approvals(&self) -> &[Approval] {
        &self.approved
    }

    /// The file by which an entry is known here, whatever links lead to it.
    pub fn file_of(entry: &Entry) -> PathBuf {
        identity(&entry.place.file)
    }

    /// What it says about an entry.
    pub fn verdict(&self, entry: &Entry) -> Verdict {
        let file = Self::file_of(entry);
        let mut of_name =
            self.approved.iter().filter(|approval| approval.name == entry.name && approval.file == file);
        match of_name.next() {
            Some(approval) if approval.digest == entry.digest && !entry.digest.is_empty() => {
                Verdict::Approved
            }
            Some(_) => Verdict::Changed,
            None => Verdict::New,
        }
    }

    /// Approves entries as they are. One approval is kept for each file and name.
    pub fn approve<'a>(&mut self, entries: impl IntoIterator<Item = &'a Entry>) -> Result<(), ConfigError> {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let new: Vec<Approval> = entries
            .into_iter()
            .filter(|entry| !entry.digest.is_empty())
            .map(|entry| Approval {
                file: identity(&entry.place.file),
                name: entry.name.clone(),
                digest: entry.digest.clone(),
                at,
            })
            .collect();
        self.change(|approved| {
            approved.retain(|old| !new.iter().any(|new| new.name == old.name && new.file == old.file));
            approved.extend(new);
        })
    }

    /// Takes approvals back: those that `revoked` says. Gives how many there were.
    pub fn revoke(&mut self, revoked: impl Fn(&Approval) -> bool) -> Result<usize, ConfigError> {
        let mut count = 0;
        self.change(|approved| {
            let before = approved.len();
            approved.retain(|approval| !revoked(approval));
            count = before - approved.len();
        })?;
        Ok(count)
    }

    /// Reads the file again, changes it and writes it, while nobody else does.
    fn change(&mut self, change: impl FnOnce(&mut Vec<Approval>)) -> Result<(), ConfigError> {
        let told = |error| ConfigError::io("write", &self.path, error);
        let dir = self.path.parent().unwrap_or(Path::new("."));
        create_private_dir(dir).map_err(told)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.path.with_extension("lock"))
            .map_err(told)?;
        // Held until the file is closed, by whatever way this ends.
        lock.lock().map_err(told)?;
        let mut approved = read(&self.path)?;
        change(&mut approved);
        approved.sort_by(|a, b| (&a.file, &a.name).cmp(&(&b.file, &b.name)));
        let stored = Stored { version: VERSION, approved };
        write_private(&self.path, dir, &stored).map_err(told)?;
        self.approved = stored.approved;
        drop(lock);
        Ok(())
    }
}

/// A path by which a file is known whatever links lead to it.
fn identity(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

fn read(path: &Path) -> Result<Vec<Approval>, ConfigError> {
    let told = |error| ConfigError::io("read", path, error);
    // Asked before it is opened: opening a pipe waits for its other end.
    if fs::metadata(path).is_ok_and(|kind| !kind.is_file()) {
        return Err(told(io::Error::other("it is no regular file")));
    }
    let found = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(told(error)),
    };
    let kind = found.metadata().map_err(told)?;
    if kind.len() > LONGEST {
        return Err(told(io::Error::other("it is too large")));
    }
    others_may_not_write(&kind).map_err(told)?;
    let stored: Stored =
        serde_json::from_reader(io::BufReader::new(found)).map_err(|error| told(error.into()))?;
    if stored.version != VERSION {
        let reason = format!("its version is {}, and this program knows {VERSION}", stored.version);
        return Err(told(io::Error::other(reason)));
    }
    Ok(stored.approved)
}

#[cfg(unix)]
fn others_may_not_write(kind: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if kind.permissions().mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("others may write to it: look through it, then chmod 600"))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn others_may_not_write(_kind: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)
}

/// In one step, so that nobody ever sees half of it. A temporary file has mode 0600 from its beginning.
fn write_private(path: &Path, dir: &Path, stored: &Stored) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    serde_json::to_writer_pretty(&mut file, stored)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
