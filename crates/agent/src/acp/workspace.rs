//! Owns the agent's access to files: inside the workspace alone, whatever links say. Blocking; who calls it is on a thread
//! for that. It asks nobody for permission.

use std::io::{Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

/// The largest file that is read or written, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// The folders that an agent may touch.
#[derive(Debug, Clone)]
pub(super) struct Workspace {
    roots: Vec<PathBuf>,
    cwd: PathBuf,
}

/// Why a file was not touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Outside {
    /// It is not in the workspace.
    #[error("{path} is outside of the workspace ({roots})")]
    Elsewhere { path: String, roots: String },
    /// There is none.
    #[error("{0} does not exist")]
    Missing(String),
    /// It cannot be done.
    #[error("{path}: {reason}")]
    Failed { path: String, reason: String },
}

impl Workspace {
    /// These folders, as they are once links are followed. What does not exist is none.
    pub(super) fn new(cwd: &Path, roots: &[PathBuf]) -> Self {
        let all = std::iter::once(cwd).chain(roots.iter().map(PathBuf::as_path));
        let roots = all.filter_map(|root| std::fs::canonicalize(root).ok()).collect();
        Self { roots, cwd: cwd.to_owned() }
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn failed(path: &Path, reason: &dyn std::fmt::Display) -> Outside {
        Outside::Failed { path: path.display().to_string(), reason: reason.to_string() }
    }

    /// Where a path leads when every link is followed. The last parts may not exist yet.
    pub(super) fn resolve(&self, path: &Path) -> Result<PathBuf, Outside> {
        let path = self.cwd.join(path);
        let mut rest = Vec::new();
        let mut at = path.as_path();
        let mut real = loop {
            match std::fs::canonicalize(at) {
                Ok(real) => break real,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Self::failed(&path, &error)),
            }
            // A link whose end is missing leads nobody knows where.
            if at.symlink_metadata().is_ok() {
                return Err(self.elsewhere(&path));
            }
            let last = at.components().next_back();
            let (Some(Component::Normal(name)), Some(parent)) = (last, at.parent()) else {
                return Err(self.elsewhere(&path));
            };
            rest.push(name.to_owned());
            at = parent;
        };
        real.extend(rest.iter().rev());
        if self.roots.iter().any(|root| real.starts_with(root)) {
            Ok(real)
        } else {
            Err(self.elsewhere(&path))
        }
    }

    fn elsewhere(&self, path: &Path) -> Outside {
        let roots: Vec<String> = self.roots.iter().map(|root| root.display().to_string()).collect();
        Outside::Elsewhere { path: path.display().to_string(), roots: roots.join(", ") }
    }

    /// A text file, or some of its lines: from `line`, counted from one.
    pub(super) fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, Outside> {
        let real = self.resolve(path)?;
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => Outside::Missing(path.display().to_string()),
            _ => Self::failed(path, &error),
        };
        let about = std::fs::metadata(&real).map_err(failed)?;
        if !about.is_file() {
            return Err(Self::failed(path, &"is no file"));
        }
        let mut bytes = Vec::new();
        let file = std::fs::File::open(&real).map_err(failed)?;
        file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(Self::failed(path, &format!("has more than {} MiB", FILE_BYTES >> 20)));
        }
        let text = String::from_utf8(bytes).map_err(|_| Self::failed(path, &"is no text in UTF-8"))?;
        if line.is_none() && limit.is_none() {
            return Ok(text);
        }
        let before = line.unwrap_or(1).saturating_sub(1) as usize;
        let most = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(text.split_inclusive('\n').skip(before).take(most).collect())
    }

    /// Writes a text file whole, in one step: a reader sees the old one or the new one.
    pub(super) fn write(&self, path: &Path, content: &str) -> Result<(), Outside> {
        if content.len() as u64 > FILE_BYTES {
            return Err(Self::failed(path, &format!("the text has more than {} MiB", FILE_BYTES >> 20)));
        }
        let real = self.resolve(path)?;
        let failed = |error: std::io::Error| Self::failed(path, &error);
        let parent = real.parent().ok_or_else(|| self.elsewhere(path))?;
        if real.is_dir() {
            return Err(Self::failed(path, &"is a folder"));
        }
        std::fs::create_dir_all(parent).map_err(failed)?;
        let mut file = tempfile::Builder::new().prefix(".toolway-").tempfile_in(parent).map_err(failed)?;
        file.write_all(content.as_bytes()).map_err(failed)?;
        // A new file is made as any other; one that was there keeps its rights.
        let permissions = std::fs::metadata(&real).map(|about| about.permissions());
        match permissions {
            Ok(permissions) => file.as_file().set_permissions(permissions).map_err(failed)?,
            Err(_) => make_ordinary(file.path(), parent).map_err(failed)?,
        }
        file.persist(&real).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// A temporary file is its owner's alone; a new file of a project is as the folder's other files may be.
#[cfg(unix)]
fn make_ordinary(file: &Path, parent: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = std::fs::metadata(parent)?.permissions().mode();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode((folder & 0o066) | 0o600))
}

#[cfg(not(unix))]
fn make_ordinary(_file: &Path, _parent: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_written_inside() {
        let dir = tempfile::tempdir().unwrap();
        let space = Workspace::new(dir.path(), &[]);
        space.write(Path::new("a/b.txt"), "one\ntwo\nthree\n").unwrap();
        let path = dir.path().join("a/b.txt");
        assert_eq!(space.read(&path, None, None).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(space.read(&path, Some(2), Some(1)).unwrap(), "two\n");
        assert_eq!(space.read(&path, Some(9), None).unwrap(), "");
        assert!(matches!(space.read(&dir.path().join("no"), None, None), Err(Outside::Missing(_))));
        let rest: Vec<_> = std::fs::read_dir(dir.path().join("a")).unwrap().collect();
        assert_eq!(rest.len(), 1);
    }

    #[test]
    fn dots_lead_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        let space = Workspace::new(&inside, &[]);
        for path in ["../secret", "/etc/passwd", "x/../../secret", "../inside2/x", "nothing/../../secret"] {
            let read = space.read(Path::new(path), None, None);
            assert!(matches!(read, Err(Outside::Elsewhere { .. })), "{path}: {read:?}");
            assert!(space.write(Path::new(path), "x").is_err(), "{path}");
        }
        assert_eq!(std::fs::read_to_string(dir.path().join("secret")).unwrap(), "s");
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_nowhere_else() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("inside"), dir.path().join("outside"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("secret"), "s").unwrap();
        symlink(&outside, inside.join("folder")).unwrap();
        symlink(outside.join("secret"), inside.join("file")).unwrap();
        symlink(outside.join("new"), inside.join("dangling")).unwrap();
        symlink(&inside, dir.path().join("way-in")).unwrap();
        let space = Workspace::new(&inside, &[]);
        for path in ["folder/secret", "file", "dangling", "folder/new"] {
            assert!(space.read(Path::new(path), None, None).is_err(), "{path}");
            assert!(matches!(space.write(Path::new(path), "x"), Err(Outside::Elsewhere { .. })), "{path}");
        }
        assert!(!outside.join("new").exists());
        space.write(&dir.path().join("way-in/fine"), "x").unwrap();
        assert!(inside.join("fine").exists());
    }
}
