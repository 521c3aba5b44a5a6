//! Owns a store's folder: its rights, the key of its digests, and the files that say which runs are executed. A run is
//! executed as long as a lock on its file is held: the system takes the lock away from a process that ends, however it
//! ends, so no number of a process can be taken for another one's.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::Claim;
use crate::error::AgentError;
use crate::id::RunId;
use crate::inline::RecordKey;

/// How long a lock that another process holds is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// A folder that holds a store.
#[derive(Debug)]
pub(super) struct StorePlace {
    dir: PathBuf,
}

impl StorePlace {
    /// The folder, made where it is not there, for its owner alone.
    pub(super) fn open(dir: &Path) -> Result<Self, AgentError> {
        let place = Self { dir: dir.to_owned() };
        make_dir(&place.runs()).map_err(|error| fault(&place.dir, &error))?;
        Ok(place)
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    fn runs(&self) -> PathBuf {
        self.dir.join("running")
    }

    /// The key of the digests, in a file of its own.
    pub(super) fn digest_key(&self) -> Result<RecordKey, AgentError> {
        let path = self.dir.join("digest.key");
        for _ in 0..2 {
            match File::open(&path) {
                Ok(mut file) => {
                    let mut bytes = [0; 32];
                    return match file.read_exact(&mut bytes) {
                        Ok(()) => Ok(RecordKey::new(bytes)),
                        Err(_) => Err(AgentError::Store {
                            message: format!(
                                "{} is damaged: remove it; servers that were given before are then reported as changed",
                                path.display()
                            ),
                        }),
                    };
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_key(&path)?,
                Err(error) => return Err(fault(&path, &error)),
            }
        }
        Err(AgentError::Store { message: format!("{} goes away as often as it is made", path.display()) })
    }

    /// Whole or not at all, and never over another process's.
    fn make_key(&self, path: &Path) -> Result<(), AgentError> {
        let key = RecordKey::random().map_err(|error| AgentError::Store {
            message: format!("the system has no randomness: {error}"),
        })?;
        let made = tempfile::Builder::new().prefix(".digest").tempfile_in(&self.dir).and_then(|mut file| {
            file.write_all(key.bytes())?;
            match file.persist_noclobber(path) {
                Ok(_) => Ok(()),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(error.error),
            }
        });
        made.map_err(|error| fault(path, &error))
    }

    /// Says that this process executes the run.
    pub(super) fn claim(&self, run: &RunId) -> Result<Claim, AgentError> {
        let path = self.lock_path(run);
        let file = private().create_new(true).open(&path).map_err(|error| fault(&path, &error))?;
        let held = Held { file, path };
        // Who looks whether it is held holds it for a moment.
        if !take(&held.file).map_err(|error| fault(&held.path, &error))? {
            return Err(AgentError::Store {
                message: format!("{} is locked by another process", held.path.display()),
            });
        }
        Ok(Claim::new(held))
    }

    /// A process executes it.
    pub(super) fn is_alive(&self, run: &RunId) -> Result<bool, AgentError> {
        let path = self.lock_path(run);
        match private().open(&path) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(error)) => Err(fault(&path, &error)),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(fault(&path, &error)),
        }
    }

    /// Takes away what a process that died left of a run.
    pub(super) fn clear(&self, run: &RunId) {
        for path in [self.lock_path(run), self.cancel_path(run)] {
            fs::remove_file(path).ok();
        }
    }

    pub(super) fn ask_cancel(&self, run: &RunId) -> Result<(), AgentError> {
        let path = self.cancel_path(run);
        match private().create(true).truncate(false).open(&path) {
            Ok(_) => Ok(()),
            Err(error) => Err(fault(&path, &error)),
        }
    }

    pub(super) fn is_cancel_asked(&self, run: &RunId) -> bool {
        self.cancel_path(run).exists()
    }

    fn lock_path(&self, run: &RunId) -> PathBuf {
        self.runs().join(format!("{run}.lock"))
    }

    fn cancel_path(&self, run: &RunId) -> PathBuf {
        self.runs().join(format!("{run}.cancel"))
    }
}

/// The locked file of a run; it goes when the run is over.
struct Held {
    file: File,
    path: PathBuf,
}

impl Drop for Held {
    fn drop(&mut self) {
        fs::remove_file(&self.path).ok();
        fs::remove_file(self.path.with_extension("cancel")).ok();
    }
}

/// Locks a file, waiting for whoever has it. `false`: not in time.
pub(super) fn take(file: &File) -> io::Result<bool> {
    let (_keep, never) = mpsc::channel::<()>();
    let mut left = PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if left.is_zero() => return Ok(false),
            Err(TryLockError::WouldBlock) => {
                never.recv_timeout(PAUSE).ok();
                left = left.saturating_sub(PAUSE);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Options for a file that its owner alone may read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// What went wrong with a file, and what to do.
pub(super) fn fault(path: &Path, error: &io::Error) -> AgentError {
    let path = path.display();
    let message = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!(
                "{path} cannot be written ({error}): check its rights and those of its folder, or choose another store"
            )
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("{path}: the disk is full: make room and send again")
        }
        _ => format!("{path}: {error}"),
    };
    AgentError::Store { message }
}

/// Another process holds it for too long.
pub(super) fn locked(path: &Path) -> AgentError {
    let (path, seconds) = (path.display(), PATIENCE.as_secs());
    AgentError::Store {
        message: format!(
            "{path} has been locked by another process for more than {seconds} s: end that process, or try again"
        ),
    }
}

/// It was written by a later version.
pub(super) fn newer(path: &Path, found: i64, known: i64) -> AgentError {
    let path = path.display();
    AgentError::Store {
        message: format!(
            "{path} was written by a newer version of Toolway (layout {found}, this one knows {known}): use that version, or choose another store"
        ),
    }
}

/// It is not what it should be.
pub(super) fn damaged(path: &Path, what: &str) -> AgentError {
    let path = path.display();
    AgentError::Store {
        message: format!(
            "{path} is damaged ({what}): nothing was changed; restore a copy, or move it away to begin anew"
        ),
    }
}
