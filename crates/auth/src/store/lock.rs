//! Owns locks across processes. The system gives one back when its holder ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::AuthError;

const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(100);
/// What a holder leaves is short.
const NOTE: u64 = 4096;

/// A lock that is held until this is dropped. The file stays, so that no two hold locks of the same name.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
    /// What the last holder left.
    before: String,
}

impl Lock {
    /// The lock, once it is free.
    pub(super) async fn acquire(path: PathBuf, most: Duration) -> Result<Self, AuthError> {
        let until = Instant::now() + most;
        let mut pause = SHORTEST;
        loop {
            if let Some(lock) = Self::attempt(&path)? {
                return Ok(lock);
            }
            if Instant::now() >= until {
                let holder = note(&path).unwrap_or_default();
                let by = if holder.is_empty() { String::new() } else { format!(" ({holder})") };
                let reason = format!(
                    "another process{by} refreshes the token of this server for more than {} s, and holds {}",
                    most.as_secs(),
                    path.display()
                );
                return Err(AuthError::Late { reason });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST);
        }
    }

    /// The lock, if it is free.
    pub(super) fn attempt(path: &Path) -> Result<Option<Self>, AuthError> {
        let failed = |error: std::io::Error| AuthError::store(path, format!("cannot be locked: {error}"));
        let mut file = open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let before = read_note(&mut file).unwrap_or_default();
        // For whoever waits and wonders: without it the lock is as good.
        rewrite(&mut file, &format!("process {}", std::process::id())).ok();
        Ok(Some(Self { file, path: path.to_path_buf(), before }))
    }

    /// The word that the holder before this one left.
    pub(crate) fn before(&self) -> &str {
        &self.before
    }

    /// Leaves a word for those who wait, to be read when the lock is free again.
    pub(crate) fn leave(&mut self, word: &str) {
        if let Err(error) = rewrite(&mut self.file, word) {
            tracing::debug!(%error, path = %self.path.display(), "a lock has no word for those who wait");
        }
    }
}

/// What the holder of a lock says of itself.
fn note(path: &Path) -> Option<String> {
    read_note(&mut File::open(path).ok()?)
}

fn read_note(file: &mut File) -> Option<String> {
    let mut bytes = Vec::new();
    file.rewind().ok()?;
    file.take(NOTE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn rewrite(file: &mut File, text: &str) -> std::io::Result<()> {
    file.rewind()?;
    file.write_all(text.as_bytes())?;
    file.set_len(text.len() as u64)
}
