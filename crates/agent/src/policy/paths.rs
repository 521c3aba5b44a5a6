//! Owns where a path really leads, and which patterns it fits: links and `..` lead around no rule.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use toolway_config::Platform;

use super::pattern::Pattern;

/// More links than this lead in a circle.
const LINKS: u32 = 40;

/// The folders that rules are about.
#[derive(Debug, Clone)]
pub(super) struct Ground {
    /// Where relative paths begin.
    pub(super) cwd: PathBuf,
    /// The folders that the agent works in, as given and as they really are.
    roots: Vec<PathBuf>,
    home: PathBuf,
    any_case: bool,
}

/// A path as it is written, made absolute, and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) written: PathBuf,
    /// `None`: nobody can say.
    pub(super) real: Option<PathBuf>,
}

/// A pattern of paths, made ready.
#[derive(Debug, Clone)]
pub(super) struct PathPattern {
    /// Against paths below a root.
    below: Option<Pattern>,
    /// Against whole paths.
    whole: Vec<Pattern>,
    /// `**/...`: a denial holds everywhere.
    anywhere: Option<Pattern>,
    /// The path that it names, if it has no wildcard.
    pub(super) exact: bool,
}

impl Ground {
    pub(super) fn new(cwd: &Path, roots: &[PathBuf], home: &Path, platform: Platform) -> Self {
        let mut known: Vec<PathBuf> = Vec::new();
        for root in roots.iter().map(PathBuf::as_path).chain([cwd]) {
            let real = resolve(root);
            for root in [Some(plain(root)), real].into_iter().flatten() {
                // The top of the file system is nobody's project.
                if root.parent().is_some() && !known.contains(&root) {
                    known.push(root);
                }
            }
        }
        Self {
            cwd: cwd.to_path_buf(),
            roots: known,
            home: home.to_path_buf(),
            any_case: platform != Platform::Linux,
        }
    }

    /// A path, seen from the agent's folder or another one.
    pub(super) fn place(&self, path: &Path, from: Option<&Path>) -> Place {
        let absolute = from.unwrap_or(&self.cwd).join(path);
        Place { written: plain(&absolute), real: resolve(&absolute) }
    }

    /// `~` and `~/x` with the home in place.
    pub(super) fn expand_home(&self, text: &str) -> PathBuf {
        match text.strip_prefix('~') {
            Some("") if !self.home.as_os_str().is_empty() => self.home.clone(),
            Some(rest) if rest.starts_with('/') && !self.home.as_os_str().is_empty() => {
                self.home.join(rest.trim_start_matches('/'))
            }
            _ => PathBuf::from(text),
        }
    }

    /// Whether it lies in one of the folders that the agent works in.
    pub(super) fn is_inside(&self, place: &Place) -> bool {
        place.real.as_ref().is_some_and(|real| self.below(real).next().is_some())
    }

    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = String> + 'a {
        self.roots.iter().filter_map(|root| path.strip_prefix(root).ok()).map(text_of)
    }

    /// Makes a pattern ready.
    pub(super) fn pattern(&self, pattern: &str) -> PathPattern {
        let expanded = text_of(&self.expand_home(pattern));
        // A folder is named by what is in it.
        let expanded = match expanded.strip_suffix('/') {
            Some(folder) if !folder.is_empty() => format!("{folder}/**"),
            _ => expanded,
        };
        let exact = !expanded.contains(['*', '?']);
        let relative = expanded.strip_prefix("./").unwrap_or(&expanded);
        if !Path::new(relative).is_absolute() {
            let below = Pattern::of_path(relative, self.any_case);
            let anywhere = if relative.starts_with("**") {
                Some(Pattern::of_path(&format!("/{relative}"), self.any_case))
            } else {
                None
            };
            return PathPattern { below: Some(below), whole: Vec::new(), anywhere, exact };
        }
        let mut whole = vec![Pattern::of_path(&text_of(&plain(Path::new(&expanded))), self.any_case)];
        // What stands before the first wildcard may lead through links.
        let names: Vec<&str> = expanded.split('/').collect();
        let wild = names.iter().position(|name| name.contains(['*', '?'])).unwrap_or(names.len());
        let (before, after) = names.split_at(wild);
        if let Some(real) = resolve(Path::new(&format!("/{}", before.join("/").trim_start_matches('/')))) {
            let real = [&[text_of(&real).trim_end_matches('/')], after].concat().join("/");
            whole.push(Pattern::of_path(if real.is_empty() { "/" } else { &real }, self.any_case));
        }
        PathPattern { below: None, whole, anywhere: None, exact }
    }

    /// Whether a permission for the pattern is one for the place: where it really leads counts.
    pub(super) fn allows(&self, pattern: &PathPattern, place: &Place) -> bool {
        place.real.as_deref().is_some_and(|real| self.fits(pattern, real))
    }

    /// Whether a denial of the pattern is one of the place: as written, or where it leads, or a folder above it.
    pub(super) fn denies(&self, pattern: &PathPattern, place: &Place) -> bool {
        let paths = [Some(&place.written), place.real.as_ref()];
        paths.into_iter().flatten().flat_map(|path| path.ancestors()).any(|path| {
            let is_there = |each: &Pattern| each.is_match(&text_of(path));
            self.fits(pattern, path) || pattern.anywhere.as_ref().is_some_and(is_there)
        })
    }

    fn fits(&self, pattern: &PathPattern, path: &Path) -> bool {
        let text = text_of(path);
        pattern.whole.iter().any(|each| each.is_match(&text))
            || pattern.below.as_ref().is_some_and(|each| self.below(path).any(|text| each.is_match(&text)))
    }
}

/// With `/` between the names.
fn text_of(path: &Path) -> String {
    let text = path.to_string_lossy();
    if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() }
}

/// Without `.` and `..`, by the text alone.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// Where a path leads when all links are followed, also links to what is not there yet; the end of it need not exist.
/// `None` for a circle, and for what cannot be looked into.
pub(super) fn resolve(path: &Path) -> Option<PathBuf> {
    let mut left: Vec<OsString> = parts_of(path);
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&part);
        match next.symlink_metadata() {
            Ok(found) if found.is_symlink() => {
                links += 1;
                let target = std::fs::read_link(&next).ok().filter(|_| links <= LINKS)?;
                if target.is_absolute() {
                    real = PathBuf::new();
                }
                left.extend(parts_of(&target));
            }
            Ok(_) => real = next,
            Err(error) if is_absent(&error) => real = next,
            Err(_) => return None,
        }
    }
    Some(real)
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The names of a path, the last one first.
fn parts_of(path: &Path) -> Vec<OsString> {
    let mut parts: Vec<OsString> = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::Prefix(prefix) => parts.push(prefix.as_os_str().to_owned()),
            other => parts.push(other.as_os_str().to_owned()),
        }
    }
    parts.reverse();
    parts
}
