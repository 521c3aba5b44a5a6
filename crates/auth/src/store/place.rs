//! Owns the directory of the store and the modes of what is in it: nobody else reads it.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::AuthError;

/// An entry is smaller.
const LARGEST: u64 = 1 << 20;

/// Makes the directory, for its owner alone.
pub(super) fn make(directory: &Path) -> Result<(), AuthError> {
    let failed = |error: io::Error| AuthError::store(directory, format!("cannot be made: {error}"));
    if !directory.is_dir() {
        if let Some(parent) = directory.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match own_directory(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        if !directory.is_dir() {
            return Err(AuthError::store(directory, "is no directory: remove it, or name another"));
        }
    }
    tighten(directory, 0o700).map_err(failed)
}

#[cfg(unix)]
fn own_directory(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(directory)
}

#[cfg(not(unix))]
fn own_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory)
}

/// Takes from others what they may not have.
#[cfg(unix)]
fn tighten(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let found = fs::metadata(path)?.permissions().mode() & 0o777;
    if found & !mode == 0 {
        return Ok(());
    }
    tracing::warn!(path = %path.display(), mode = format!("{found:o}"), "others could read it: its mode is set right");
    fs::set_permissions(path, fs::Permissions::from_mode(found & mode))
}

#[cfg(not(unix))]
fn tighten(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// A file that took another's place does so after a power cut too: else a token that was used up would be back. Where a
/// file system cannot do that, it is as well kept as all else there.
pub(super) fn settle(directory: &Path) {
    if let Err(error) = fs::File::open(directory).and_then(|directory| directory.sync_all()) {
        tracing::debug!(%error, "the directory of the sign-ins is not settled");
    }
}

/// The bytes of a file of the store.
pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if found.len() > LARGEST {
        return Err(io::Error::other("it is too large"));
    }
    // Where that cannot be done, as on a file system that is read-only, it is as it was.
    tighten(path, 0o600).ok();
    fs::read(path)
}
