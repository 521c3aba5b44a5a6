//! Owns where a path leads and whether that is within the folders of an agent. Symbolic links and `..` are resolved
//! first; nothing is opened.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::policy::Action;

/// Symbolic links on one way.
const MOST_LINKS: usize = 40;

/// The folders that an agent works in.
#[derive(Debug, Clone)]
pub(crate) struct Roots {
    cwd: PathBuf,
    /// Resolved where they exist.
    folders: Vec<PathBuf>,
    named: Vec<PathBuf>,
}

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// As it is shown: absolute, with links as they were named.
    pub(crate) shown: PathBuf,
    /// Without links. Its last parts may not exist.
    pub(crate) real: PathBuf,
    /// In none of the folders.
    pub(crate) outside: bool,
}

impl Place {
    pub(crate) fn read(&self) -> Action {
        Action::Read(self.real.clone())
    }

    pub(crate) fn write(&self) -> Action {
        Action::Write(self.real.clone())
    }
}

impl Roots {
    pub(crate) fn new(cwd: &Path, dirs: &[PathBuf], temp: &Path) -> Self {
        let named: Vec<PathBuf> = std::iter::once(cwd.to_owned())
            .chain(dirs.iter().map(|dir| cwd.join(dir)))
            .chain((!temp.as_os_str().is_empty()).then(|| temp.to_owned()))
            .collect();
        let folders = named.iter().map(|root| resolve(root).unwrap_or_else(|_| root.clone())).collect();
        Self { cwd: cwd.to_owned(), folders, named }
    }

    /// The folders without links: the first is the one that relative paths start from.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The folders for people.
    pub(crate) fn named(&self) -> String {
        let named: Vec<String> = self.named.iter().map(|root| root.display().to_string()).collect();
        named.join(", ")
    }

    /// Where a path leads that a model wrote.
    pub(crate) fn place(&self, path: &str) -> Result<Place, String> {
        let shown = self.shown(path)?;
        let real =
            resolve(&shown).map_err(|error| format!("{} cannot be followed: {error}", shown.display()))?;
        Ok(self.at(&shown, real))
    }

    /// The same for the entry itself: where it is a link, the link.
    pub(crate) fn entry(&self, path: &str) -> Result<Place, String> {
        let shown = self.shown(path)?;
        let (Some(folder), Some(name)) = (shown.parent(), shown.file_name()) else {
            return Err(format!("{} names no entry of a folder", shown.display()));
        };
        let folder =
            resolve(folder).map_err(|error| format!("{} cannot be followed: {error}", shown.display()))?;
        Ok(self.at(&shown, folder.join(name)))
    }

    fn shown(&self, path: &str) -> Result<PathBuf, String> {
        if path.contains('\0') {
            return Err("a path cannot hold a zero byte".to_owned());
        }
        Ok(self.cwd.join(path.strip_prefix("file://").unwrap_or(path)))
    }

    fn at(&self, shown: &Path, real: PathBuf) -> Place {
        let outside = !self.folders.iter().any(|folder| real.starts_with(folder));
        Place { shown: tidy(shown), real, outside }
    }

    /// A path as short as it can be said: relative to the working folder where it lies in it.
    pub(crate) fn short(&self, path: &Path) -> String {
        let inner =
            self.folders.first().into_iter().chain([&self.cwd]).find_map(|root| path.strip_prefix(root).ok());
        match inner {
            Some(inner) if inner.as_os_str().is_empty() => ".".to_owned(),
            Some(inner) => inner.display().to_string(),
            None => path.display().to_string(),
        }
    }
}

/// The path without `.` and without links, and with `..` taken where it leads on disk. What does not exist is kept as it
/// is written.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut pending: Vec<OsString> = parts(path);
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = pending.pop() {
        let step = PathBuf::from(&part);
        match step.components().next() {
            Some(Component::RootDir | Component::Prefix(_)) => real.push(step),
            Some(Component::ParentDir) => {
                real.pop();
            }
            Some(Component::Normal(name)) => {
                real.push(name);
                // No link, nothing there, or not to be looked at: the part is taken as it is.
                let Ok(target) = fs::read_link(&real) else { continue };
                links += 1;
                if links > MOST_LINKS {
                    return Err(io::Error::other("too many symbolic links"));
                }
                real.pop();
                pending.extend(parts(&target));
            }
            Some(Component::CurDir) | None => {}
        }
    }
    Ok(real)
}

/// The parts, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    path.components().rev().map(|part| part.as_os_str().to_owned()).collect()
}

/// Without `.`.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> (tempfile::TempDir, Roots) {
        let folder = tempfile::tempdir().unwrap();
        let base = resolve(folder.path()).unwrap();
        for name in ["work/src", "other", "temp"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("other/secret"), "s").unwrap();
        let roots = Roots::new(&base.join("work"), &[], &base.join("temp"));
        (folder, roots)
    }

    #[test]
    fn paths_are_inside_or_outside_wherever_they_seem_to_be() {
        let (folder, roots) = roots();
        let base = resolve(folder.path()).unwrap();
        let table = [
            ("src/a.rs", "work/src/a.rs", false),
            ("./src/../b", "work/b", false),
            (".", "work", false),
            ("new/../../other/secret", "other/secret", true),
            ("../other/secret", "other/secret", true),
            ("../work/x", "work/x", false),
            ("../temp/t", "temp/t", false),
            ("../workshop", "workshop", true),
        ];
        for (path, real, outside) in table {
            let place = roots.place(path).unwrap();
            assert_eq!((place.real, place.outside), (base.join(real), outside), "{path}");
        }
        let place = roots.place("/etc/../etc/passwd").unwrap();
        assert_eq!((place.real, place.outside), ("/etc/passwd".into(), true));
        assert!(roots.place("a\0b").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_where_they_lead() {
        use std::os::unix::fs::symlink;
        let (folder, roots) = roots();
        let base = resolve(folder.path()).unwrap();
        symlink("../other", base.join("work/link")).unwrap();
        symlink("../other/not-yet", base.join("work/dangling")).unwrap();
        symlink("loop", base.join("work/loop")).unwrap();
        symlink(base.join("work/src"), base.join("other/back")).unwrap();
        assert_eq!(roots.place("link/secret").unwrap().real, base.join("other/secret"));
        assert!(roots.place("link/secret").unwrap().outside);
        assert!(roots.place("dangling").unwrap().outside);
        // `..` after a link is the parent of where it leads.
        assert_eq!(roots.place("link/../temp").unwrap().real, base.join("temp"));
        assert!(!roots.place("link/back/a").unwrap().outside);
        assert!(roots.place("loop").unwrap_err().contains("too many symbolic links"));
        let entry = roots.entry("link").unwrap();
        assert_eq!((entry.real, entry.outside), (base.join("work/link"), false));
        assert!(roots.entry("link/secret").unwrap().outside);
    }

    #[test]
    fn paths_are_said_as_short_as_they_can_be() {
        let (folder, roots) = roots();
        let base = resolve(folder.path()).unwrap();
        assert_eq!(roots.short(&base.join("work/src/a")), "src/a");
        assert_eq!(roots.short(&base.join("work")), ".");
        assert_eq!(roots.short(Path::new("/etc/x")), "/etc/x");
    }
}
