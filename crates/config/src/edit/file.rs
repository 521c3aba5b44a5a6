//! Owns the replacement of a file: under a lock, in one step, through links to the real file, with its mode, and only
//! if it still is what the change was made for.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::problem::Problem;
use crate::tree::{Format, read_bytes};

use super::lock::Lock;
use super::{Change, edit};

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file itself, behind all links.
    pub path: PathBuf,
    /// Whether its content is another one now.
    pub changed: bool,
    /// Comments that are not in it any more (YAML only).
    pub lost_comments: Vec<String>,
}

/// Who may read a file that is made; one that is there keeps its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The user alone, and directories above it as well.
    Owner,
    /// Whoever may read the user's new files: a project's file is for everybody who works on it.
    Everybody,
}

/// Makes the changes in a file. `seen` is the content they were made for, `None` for a file that was not there: if the
/// file is another one by now, nothing is written.
pub fn edit_file(
    path: &Path,
    format: Format,
    seen: Option<&[u8]>,
    changes: &[Change],
    audience: Audience,
) -> Result<Written, Vec<Problem>> {
    let real = real_path(path).map_err(|problem| vec![problem.file(path)])?;
    let edited = edit(seen.unwrap_or_default(), format, changes)
        .map_err(|problems| problems.into_iter().map(|problem| problem.file(path)).collect::<Vec<_>>())?;
    let changed = seen != Some(edited.bytes.as_slice());
    if changed {
        replace(&real, seen, &edited.bytes, audience).map_err(|problem| vec![problem.file(path)])?;
    }
    Ok(Written { path: real, changed, lost_comments: edited.lost_comments })
}

/// Where a link, and a link behind it, leads; a file that is not there yet may be made where its link points to.
fn real_path(path: &Path) -> Result<PathBuf, Problem> {
    let mut real = path.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&real) {
            Ok(target) => real = real.parent().map_or(target.clone(), |parent| parent.join(target)),
            Err(_) => return Ok(real),
        }
    }
    Err(Problem::error("is a link that leads back to itself").hint("remove the link"))
}

fn replace(path: &Path, seen: Option<&[u8]>, bytes: &[u8], audience: Audience) -> Result<(), Problem> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    directory(parent, audience).map_err(|error| unwritable(&error))?;
    let _lock = Lock::take(path, parent)?;
    let old = fs::metadata(path).ok();
    let now = if old.is_some() { Some(read_bytes(path)?) } else { None };
    if now.as_deref() != seen {
        let problem = Problem::error("was changed by another program meanwhile; nothing was written");
        return Err(problem.hint("try again"));
    }
    let permissions = old.map(|metadata| metadata.permissions());
    if permissions.as_ref().is_some_and(Permissions::readonly) {
        return Err(Problem::error("is write-protected").hint("make it writable first"));
    }
    let written = temporary(parent, bytes, permissions, audience).map_err(|error| unwritable(&error))?;
    written.persist(path).map_err(|error| unwritable(&error.error))?;
    // The name is made to last where the system can; the content already is.
    if let Err(error) = File::open(parent).and_then(|directory| directory.sync_all()) {
        tracing::debug!(%error, "cannot sync a directory");
    }
    Ok(())
}

/// A new file beside the old one, private until it has the old one's permissions.
fn temporary(
    parent: &Path,
    bytes: &[u8],
    permissions: Option<Permissions>,
    audience: Audience,
) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(".toolway-").suffix(".tmp");
    #[cfg(unix)]
    if permissions.is_none() && audience == Audience::Everybody {
        // Less what the user's mask takes away.
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(parent)?;
    file.write_all(bytes)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}

fn directory(path: &Path, audience: Audience) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    if audience == Audience::Owner {
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    }
    builder.create(path)
}

fn unwritable(error: &io::Error) -> Problem {
    Problem::error(format!("cannot be written: {error}"))
}
