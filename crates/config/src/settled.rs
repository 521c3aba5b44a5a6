//! Owns the reading of a file that somebody may be writing: it is read again until it held still. Knows no format.

use std::fs::Metadata;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::problem::Problem;
use crate::tree::read_bytes;

/// How often a file is read before it is given up.
const TRIES: usize = 5;
/// Clocks of file systems are coarse: a file younger than this is read twice, and both must be equal.
const YOUNG: Duration = Duration::from_millis(50);

/// The bytes of a file as they were at one moment.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    read_with(path, read_bytes)
}

fn read_with(
    path: &Path,
    mut read: impl FnMut(&Path) -> Result<Vec<u8>, Problem>,
) -> Result<Vec<u8>, Problem> {
    for _ in 0..TRIES {
        let before = Stamp::of(path);
        let bytes = read(path)?;
        let after = Stamp::of(path);
        if before.is_some() && before == after && !(is_young(after) && read(path)? != bytes) {
            return Ok(bytes);
        }
    }
    let problem = Problem::error("changes while it is read").file(path);
    Err(problem.hint("whoever writes it should write another file and rename it"))
}

fn is_young(stamp: Option<Stamp>) -> bool {
    let modified = stamp.and_then(|stamp| stamp.modified);
    modified.is_some_and(|at| SystemTime::now().duration_since(at).map_or(true, |age| age < YOUNG))
}

/// What tells one content of a file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    file: (u64, u64),
}

impl Stamp {
    /// The stamp of what is there now.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let found = std::fs::metadata(path).ok()?;
        Some(Self { length: found.len(), modified: found.modified().ok(), file: identity(&found) })
    }
}

#[cfg(unix)]
fn identity(found: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (found.dev(), found.ino())
}

#[cfg(not(unix))]
fn identity(_found: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changes_is_read_again_until_it_holds_still() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "0").unwrap();
        let mut left = 3;
        let bytes = read_with(&path, |path| {
            let bytes = read_bytes(path)?;
            if left > 0 {
                left -= 1;
                std::fs::write(path, "x".repeat(10 - left)).unwrap();
            }
            Ok(bytes)
        });
        assert_eq!(bytes.unwrap(), b"x".repeat(10));
    }

    #[test]
    fn a_file_that_never_holds_still_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "").unwrap();
        let mut count = 0;
        let problem = read_with(&path, |path| {
            let bytes = read_bytes(path)?;
            count += 1;
            std::fs::write(path, "x".repeat(count)).unwrap();
            Ok(bytes)
        });
        assert_eq!(problem.unwrap_err().message, "changes while it is read");
    }

    #[test]
    fn what_is_not_there_is_told_by_its_name() {
        let problem = read(Path::new("/none/x.json")).unwrap_err();
        assert_eq!(problem.file, Path::new("/none/x.json"));
    }
}
