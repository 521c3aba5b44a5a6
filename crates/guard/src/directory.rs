//! Owns the directory of saved results: made private when first needed, checked before it is used. Knows
//! nothing of what is written into it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use crate::GuardError;
use crate::name::{random_bits, random_text};

/// Temporary files are `.toolway-RANDOM.part`, locked as long as their writer lives.
const TEMPORARY: (&str, &str) = (".toolway-", ".part");
const ABANDONED_AFTER: Duration = Duration::from_mins(1);

/// The directory, made and checked lazily; several processes may share it.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    warned: OnceLock<()>,
}

impl Directory {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, warned: OnceLock::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory if it is missing (0700 whatever the umask) and checks what is there.
    pub(crate) fn ready(&self) -> Result<(), GuardError> {
        let refuse = |reason: String| GuardError::Directory { path: self.path.clone(), reason };
        let found = match fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make(&self.path).map_err(|error| refuse(plain_reason(&error)))?;
                fs::symlink_metadata(&self.path)
            }
            other => other,
        };
        let metadata = found.map_err(|error| refuse(plain_reason(&error)))?;
        match judge(&metadata) {
            Judgement::Good => Ok(()),
            Judgement::Open => {
                if self.warned.set(()).is_ok() {
                    tracing::warn!(directory = %self.path.display(), "others can read the directory of saved results");
                }
                Ok(())
            }
            Judgement::Bad(reason) => Err(refuse(reason.to_owned())),
        }
    }

    /// A new private file under a temporary name, locked.
    pub(crate) fn temporary(&self) -> Result<Temporary, GuardError> {
        self.ready()?;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..8 {
            let name = format!("{}{}{}", TEMPORARY.0, random_text(random_bits(), 12), TEMPORARY.1);
            let path = self.path.join(name);
            match private_options().read(true).open(&path).and_then(private_file) {
                Ok(file) => {
                    // Without locks (some network file systems) the age alone protects it.
                    if let Err(error) = file.try_lock() {
                        tracing::debug!(%error, "cannot lock a temporary file");
                    }
                    return Ok(Temporary { file, path, kept: false });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(self.refusal(&error)),
            }
        }
        Err(self.refusal(&last))
    }

    fn refusal(&self, error: &io::Error) -> GuardError {
        GuardError::Directory { path: self.path.clone(), reason: plain_reason(error) }
    }

    /// Removes temporary files whose writer is gone. Says how many. Never makes the directory.
    pub(crate) fn sweep(&self, now: SystemTime) -> usize {
        let Ok(entries) = fs::read_dir(&self.path) else { return 0 };
        let mut removed = 0;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(TEMPORARY.0) && name.ends_with(TEMPORARY.1) && is_abandoned(&entry, now) {
                removed += usize::from(fs::remove_file(entry.path()).is_ok());
            }
        }
        removed
    }
}

fn is_abandoned(entry: &fs::DirEntry, now: SystemTime) -> bool {
    let Ok(metadata) = entry.metadata() else { return false };
    let old = metadata
        .modified()
        .is_ok_and(|modified| now.duration_since(modified).is_ok_and(|age| age >= ABANDONED_AFTER));
    // Metadata of an entry does not follow links, so what is opened here is a file.
    old && metadata.is_file()
        && File::options().read(true).write(true).open(entry.path()).is_ok_and(|file| file.try_lock().is_ok())
}

/// A file that vanishes with its owner unless it is kept under a name.
#[derive(Debug)]
pub(crate) struct Temporary {
    pub(crate) file: File,
    path: PathBuf,
    kept: bool,
}

impl Temporary {
    /// Gives the file its name in the same directory. The name is new, so that nothing is overwritten.
    pub(crate) fn keep(mut self, name: &str) -> Result<(PathBuf, File), GuardError> {
        let to = self.path.with_file_name(name);
        fs::rename(&self.path, &to).map_err(|error| GuardError::io("rename", &to, error))?;
        self.kept = true;
        // The lock said "being written"; without it the file is complete.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(%error, "cannot unlock a saved file");
        }
        let file = self.file.try_clone().map_err(|error| GuardError::io("open", &to, error))?;
        Ok((to, file))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::debug!(%error, path = %self.path.display(), "cannot remove a temporary file");
        }
    }
}

/// Options for a file that must be new and is private whatever the umask.
pub(crate) fn private_options() -> OpenOptions {
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// A umask can take the owner's own bits away: they are set again.
#[cfg(unix)]
pub(crate) fn private_file(file: File) -> io::Result<File> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    Ok(file)
}

/// See [`private_directory`].
#[cfg(not(unix))]
pub(crate) fn private_file(file: File) -> io::Result<File> {
    Ok(file)
}

fn make(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)?;
    private_directory(path)
}

#[cfg(unix)]
fn private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

/// On Windows a new directory below the user's profile takes over the profile's access list, which names the
/// user, SYSTEM and Administrators alone: that list is relied on, and no other is set.
#[cfg(not(unix))]
fn private_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// What is said of a directory before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Good,
    Open,
    Bad(&'static str),
}

fn judge(metadata: &fs::Metadata) -> Judgement {
    if metadata.file_type().is_symlink() {
        return Judgement::Bad("is a symbolic link, which could lead anywhere");
    }
    if !metadata.is_dir() {
        return Judgement::Bad("is not a directory");
    }
    owner(metadata)
}

#[cfg(unix)]
fn owner(metadata: &fs::Metadata) -> Judgement {
    use std::os::unix::fs::MetadataExt;
    judge_owner(metadata.uid(), rustix::process::geteuid().as_raw(), metadata.mode())
}

#[cfg(not(unix))]
fn owner(_metadata: &fs::Metadata) -> Judgement {
    Judgement::Good
}

/// The owner must be the user; bits for others are left as they are and told once.
#[cfg(any(unix, test))]
fn judge_owner(owner: u32, user: u32, mode: u32) -> Judgement {
    if owner != user {
        Judgement::Bad("belongs to another user")
    } else if mode & 0o077 != 0 {
        Judgement::Open
    } else {
        Judgement::Good
    }
}

/// What the operating system said, without its number.
pub(crate) fn plain_reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text.get(..at).unwrap_or(&text).to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_decides_and_open_bits_are_told() {
        for (owner, user, mode, judgement) in [
            (1000, 1000, 0o40700, Judgement::Good),
            (1000, 1000, 0o40755, Judgement::Open),
            (1000, 1000, 0o40701, Judgement::Open),
            (0, 1000, 0o40700, Judgement::Bad("belongs to another user")),
        ] {
            assert_eq!(judge_owner(owner, user, mode), judgement);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_made_is_private_and_links_and_files_are_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path().join("a/b"));
        let temporary = directory.temporary().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&root.path().join("a/b")), 0o700);
        assert_eq!(mode(temporary.path()), 0o600);
        let (path, _) = temporary.keep("x.json").unwrap();
        assert_eq!(mode(&path), 0o600);

        let file = root.path().join("file");
        fs::write(&file, "x").unwrap();
        let error = Directory::new(file.clone()).temporary().unwrap_err().to_string();
        assert!(error.ends_with("file: is not a directory"), "{error}");
        let link = root.path().join("link");
        symlink(root.path().join("a/b"), &link).unwrap();
        let error = Directory::new(link).temporary().unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        let error = Directory::new(file.join("below")).temporary().unwrap_err().to_string();
        assert!(error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn abandoned_temporary_files_are_swept_and_living_ones_stay() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path().to_path_buf());
        let living = directory.temporary().unwrap();
        let abandoned = root.path().join(".toolway-abandoned.part");
        fs::write(&abandoned, "x").unwrap();
        let other = root.path().join("other.part");
        fs::write(&other, "x").unwrap();
        assert_eq!(directory.sweep(SystemTime::now()), 0);
        assert_eq!(directory.sweep(SystemTime::now() + Duration::from_hours(1)), 1);
        assert!(living.path().exists() && other.exists() && !abandoned.exists());
        let path = living.path().to_path_buf();
        drop(living);
        assert!(!path.exists());
    }
}
