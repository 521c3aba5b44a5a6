//! Owns the lock file beside a settings file: made by one, waited for by all others, never stolen. Other programs that
//! change the same file know it by its name.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::error::BridgeError;

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// For all tries.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(PathBuf);

impl Lock {
    /// Makes `<file>.lock`, and waits until `deadline` while there is one. Nobody's thread is blocked meanwhile.
    pub(super) async fn take(file: &Path, deadline: Instant) -> Result<Self, BridgeError> {
        let mut name = OsString::from(file);
        name.push(".lock");
        let path = PathBuf::from(name);
        loop {
            let tried = path.clone();
            // A lock that is made after nobody waits for it any more goes at once: it is dropped with the answer.
            match spawn_blocking(move || Self::make(tried))
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error)))
            {
                Ok(lock) => return Ok(lock),
                Err(error) if is_held(&error) && Instant::now() < deadline => sleep(PAUSE).await,
                Err(error) if is_held(&error) => return Err(BridgeError::SettingsLocked { lock: path }),
                Err(source) => return Err(BridgeError::SettingsWrite { path, source }),
            }
        }
    }

    fn make(path: PathBuf) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        let lock = Self(path);
        // For whoever finds it later; the lock holds without it as well.
        if let Err(error) = writeln!(file, "{}", std::process::id()) {
            tracing::debug!(%error, "cannot write into a lock file");
        }
        Ok(lock)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "cannot remove a lock file");
        }
    }
}

/// On Windows a file that is being removed refuses to be made again for a moment.
fn is_held(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AlreadyExists
        || (cfg!(windows) && error.kind() == io::ErrorKind::PermissionDenied)
}
