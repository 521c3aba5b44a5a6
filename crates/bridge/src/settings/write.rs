//! Owns the writing of the user file: read, changed and replaced under the lock, in one step, through links to the real
//! file, with its mode.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::Builder;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::error::BridgeError;

use super::Settings;
use super::change::SettingChange;
use super::lock::{Lock, PATIENCE};
use super::read::{LARGEST, MARK, Unread, content, text};

/// A link behind a link behind a link.
const MOST_LINKS: usize = 40;

impl Settings {
    /// Makes the changes in the user file, all or none. Whatever else stands in it stays, known or not; a file that is
    /// malformed is an error and stays as it is. While another program changes the file this waits, for five seconds
    /// at most and without blocking the runtime; then the error names the lock file.
    pub async fn write(path: &Path, changes: &[SettingChange]) -> Result<(), BridgeError> {
        let deadline = Instant::now() + PATIENCE;
        let given = path.to_path_buf();
        let real = blocking(path, move || prepare(&given)).await?;
        let mut locks = vec![Lock::take(path, deadline).await?];
        if real != path {
            locks.push(Lock::take(&real, deadline).await?);
        }
        let changes = changes.to_vec();
        // The locks go with the work, which ends even if nobody waits for it any more.
        blocking(path, move || {
            let written = replace(&real, &changes);
            drop(locks);
            written
        })
        .await
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, BridgeError> + Send + 'static,
) -> Result<T, BridgeError> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(failed(path)(io::Error::other(error))))
}

/// The file behind all links; the directories of both are there.
fn prepare(path: &Path) -> Result<PathBuf, BridgeError> {
    let mut real = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&real) else {
            make_directory(parent(path)).map_err(failed(path))?;
            make_directory(parent(&real)).map_err(failed(&real))?;
            return Ok(real);
        };
        real = real.parent().map_or(target.clone(), |parent| parent.join(target));
    }
    Err(BridgeError::SettingsUnusable { path: path.to_path_buf(), why: "is a link to itself".to_owned() })
}

fn replace(path: &Path, changes: &[SettingChange]) -> Result<(), BridgeError> {
    let unusable = |why: String| BridgeError::SettingsUnusable { path: path.to_path_buf(), why };
    let old = match content(path) {
        Ok(bytes) => Some(bytes),
        Err(Unread::Missing) => None,
        Err(Unread::Unreadable(why)) => return Err(unusable(why)),
    };
    let old_text =
        text(old.as_deref().unwrap_or(b"{}")).ok_or_else(|| unusable("is not UTF-8".to_owned()))?;
    let mut new = old_text.to_owned();
    for change in changes {
        new = change.apply(&new).map_err(unusable)?;
    }
    if !new.ends_with('\n') {
        new.push('\n');
    }
    // No text in JSON has a raw line break: these are all between values.
    let windows = old_text.matches("\r\n").count();
    if windows > 0 && windows == old_text.matches('\n').count() {
        new = new.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    // A file that would be the same, or one that is not there and would say nothing.
    if new == old_text || (old.is_none() && new == "{}\n") {
        return Ok(());
    }
    if new.len() as u64 > LARGEST {
        return Err(unusable(format!("would be larger than {LARGEST} bytes")));
    }
    let permissions = match (&old, fs::metadata(path)) {
        (Some(_), Ok(metadata)) => Some(metadata.permissions()),
        (Some(_), Err(error)) => return Err(failed(path)(error)),
        (None, _) => None,
    };
    if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(unusable("is write-protected".to_owned()));
    }
    if old.is_some_and(|old| old.starts_with(MARK)) {
        new.insert_str(0, std::str::from_utf8(MARK).unwrap_or_default());
    }
    put(path, new.as_bytes(), permissions).map_err(failed(path))
}

/// A new file beside the old one, private until it has the old one's mode, takes its place.
fn put(path: &Path, bytes: &[u8], permissions: Option<fs::Permissions>) -> io::Result<()> {
    let parent = parent(path);
    let mut file = Builder::new().prefix(".toolway-").suffix(".tmp").tempfile_in(parent)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    // The name is made to last where the system can; the content already is.
    if let Err(error) = File::open(parent).and_then(|directory| directory.sync_all()) {
        tracing::debug!(%error, "cannot sync a directory");
    }
    Ok(())
}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> BridgeError {
    let path = path.to_path_buf();
    move |source| BridgeError::SettingsWrite { path: path.clone(), source }
}
