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
        if path.contains('\0') {
            return Err("a path cannot hold a zero byte".to_owned());
        }
        let path = path.strip_prefix("file://").unwrap_or(path);
        let shown = self.cwd.join(path);
        let real = resolve(&shown).map_err(|error| format!("{} cannot be followed: {error}", shown.display()))?;
        let outside = !self.folders.iter().any(|folder| real.starts_with(folder));
        Ok(Place { shown: tidy(&shown), real, outside })
    }

    /// A path as short as it can be said: relative to the working folder where it lies in it.
    pub(crate) fn short(&self, path: &Path) -> String {
        let inner = self.folders.first().into_iter().chain([&self.cwd]).find_map(|root| path.strip_prefix(root).ok());
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

/// Without `.`; `..` only where it cannot matter.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}
