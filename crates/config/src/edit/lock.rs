//! Owns the lock under which a file is replaced. It is on the file's directory, since the file itself is another one
//! afterwards; on Windows, where directories have none, it is a file beside it that vanishes with its handle.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::problem::Problem;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Five seconds in all.
const TRIES: u32 = 250;

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "the lock is held by the open file")] Option<File>);

impl Lock {
    /// Waits for the lock, at most five seconds.
    pub(super) fn take(path: &Path, parent: &Path) -> Result<Self, Problem> {
        // Nothing is ever sent: this is a wait with an end.
        let (_keep, never) = mpsc::channel::<()>();
        for _ in 0..TRIES {
            match try_take(path, parent) {
                Ok(Some(file)) => return Ok(Self(Some(file))),
                Ok(None) => never.recv_timeout(PAUSE).unwrap_or_default(),
                // A file system without locks: the comparison of contents remains.
                Err(error) => {
                    tracing::debug!(%error, "cannot lock a directory");
                    return Ok(Self(None));
                }
            }
        }
        Err(Problem::error("is being changed by another toolway").hint("try again"))
    }
}

#[cfg(unix)]
fn try_take(_path: &Path, parent: &Path) -> io::Result<Option<File>> {
    let directory = File::open(parent)?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(std::fs::TryLockError::WouldBlock) => Ok(None),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(windows)]
fn try_take(path: &Path, parent: &Path) -> io::Result<Option<File>> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    const SHARING_VIOLATION: i32 = 32;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut options = File::options();
    options.write(true).create(true).share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    match options.open(parent.join(format!(".toolway-{name}.lock"))) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.raw_os_error() == Some(SHARING_VIOLATION) => Ok(None),
        Err(error) => Err(error),
    }
}
