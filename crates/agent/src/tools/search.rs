//! Owns the walk through folders that `grep` and `glob` share: in parallel, with ignore rules, over nothing that may not
//! be read, and ended when nobody waits for it any more.

mod find;
mod grep;
mod matches;

use std::cmp::Ordering as Order;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, Match, WalkBuilder, WalkState};

pub(super) use find::Glob;
pub(super) use grep::Grep;

use super::arguments::fault;
use super::{Arguments, ToolContext, ToolOutput, ToolSession};

/// How long a search may take.
const TIME: Duration = Duration::from_mins(1);
/// Threads of a search at most.
const MOST_THREADS: usize = 12;

/// Where is searched, and what counts.
struct Walk {
    session: Arc<ToolSession>,
    /// Without links.
    base: PathBuf,
    hidden: bool,
    ignored: bool,
    names: Option<Arc<Gitignore>>,
    stop: Arc<AtomicBool>,
    /// Files that may not be seen.
    denied: AtomicUsize,
    /// What could not be read.
    faults: Mutex<Vec<String>>,
}

/// How a walk came to its end.
#[derive(Debug, Clone, Default)]
struct Walked {
    notes: Vec<String>,
}

impl Walk {
    /// From the arguments that both tools take: `path`, `hidden`, `noIgnore`, and the names that count.
    fn read(context: &ToolContext, args: &Arguments, names: &[String]) -> Result<Self, ToolOutput> {
        let path = args.text("path")?.unwrap_or_else(|| ".".to_owned());
        let place = context.granted(&path, false)?;
        if !place.real.exists() {
            return Err(ToolOutput::error(format!("There is nothing at {}.", place.shown.display())));
        }
        let names = (!names.is_empty()).then(|| patterns(&place.real, names).map(Arc::new)).transpose()?;
        Ok(Self {
            session: Arc::clone(&context.session),
            base: place.real,
            hidden: args.flag("hidden")?,
            ignored: args.flag("noIgnore")?,
            names,
            stop: Arc::default(),
            denied: AtomicUsize::new(0),
            faults: Mutex::default(),
        })
    }

    /// Whether somebody wants it to end.
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Enough was found.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Calls what `visitor` makes, once for each thread, with every file.
    fn files<V: FnMut(DirEntry) + Send>(&self, visitor: impl Fn() -> V) -> Walked {
        let mut builder = WalkBuilder::new(&self.base);
        builder.hidden(!self.hidden).parents(!self.ignored).ignore(!self.ignored);
        builder.git_ignore(!self.ignored).git_exclude(!self.ignored).git_global(false);
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        builder.threads(threads.min(MOST_THREADS));
        let names = self.names.clone();
        builder.filter_entry(move |entry| entry.depth() == 0 || is_looked_into(entry, names.as_deref()));
        builder.build_parallel().run(|| {
            let (mut visit, mut around) = (visitor(), Around::default());
            Box::new(move |entry| {
                if self.stopped() {
                    return WalkState::Quit;
                }
                match entry {
                    Err(error) => self.fault(error.to_string()),
                    Ok(entry) => {
                        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                        if is_file && self.counts(entry.path(), &mut around) {
                            visit(entry);
                        }
                    }
                }
                WalkState::Continue
            })
        });
        self.walked()
    }

    fn counts(&self, path: &Path, around: &mut Around) -> bool {
        if let Some(names) = &self.names
            && path != self.base
            && !around.fits(names, path)
        {
            return false;
        }
        let seen = self.session.sight.as_ref().is_none_or(|may_read| may_read(path));
        if !seen {
            self.denied.fetch_add(1, Ordering::Relaxed);
        }
        seen
    }

    fn fault(&self, fault: String) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < 100 {
            faults.push(fault);
        }
    }

    fn walked(&self) -> Walked {
        let mut notes = Vec::new();
        match self.denied.load(Ordering::Relaxed) {
            0 => {}
            denied => notes.push(format!("{denied} files were passed over, since reading them is denied")),
        }
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = faults.first() {
            notes.push(format!("{} places could not be read, such as {first}", faults.len()));
        }
        Walked { notes }
    }

    /// A path as it is shown.
    fn short(&self, path: &Path) -> String {
        self.session.roots.short(path)
    }
}

/// Files, and folders that no pattern excludes as a whole.
fn is_looked_into(entry: &DirEntry, names: Option<&Gitignore>) -> bool {
    // What a tool writes for itself is nobody's source.
    if entry.file_name() == ".git" {
        return false;
    }
    let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
    !is_folder || !names.is_some_and(|names| names.matched(entry.path(), true).is_whitelist())
}

/// What patterns say of the folder of the last file: a walk stays in a folder for a while.
#[derive(Debug, Default)]
struct Around {
    folder: PathBuf,
    fits: bool,
}

impl Around {
    /// Whether a file fits: by itself, or else by the nearest folder above it that a pattern speaks of.
    fn fits(&mut self, names: &Gitignore, path: &Path) -> bool {
        match names.matched(path, false) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
        let Some(folder) = path.parent() else { return false };
        if self.folder != folder {
            folder.clone_into(&mut self.folder);
            self.fits = names.matched_path_or_any_parents(folder, true).is_ignore();
        }
        self.fits
    }
}

/// What one thread gathers: given to all when it ends.
struct Gathering<'a, T> {
    all: &'a Mutex<Vec<T>>,
    own: Vec<T>,
}

impl<'a, T> Gathering<'a, T> {
    fn into(all: &'a Mutex<Vec<T>>) -> Self {
        Self { all, own: Vec::new() }
    }

    fn push(&mut self, found: T) {
        self.own.push(found);
    }
}

impl<T> Drop for Gathering<'_, T> {
    fn drop(&mut self) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.own);
    }
}

/// The order of paths, folder by folder. The same as that of [`Path`], which takes every path apart to compare it.
fn by_path(one: &Path, other: &Path) -> Order {
    let rank = |byte: &u8| if std::path::is_separator(char::from(*byte)) { 0 } else { *byte };
    let (one, other) = (one.as_os_str().as_encoded_bytes(), other.as_os_str().as_encoded_bytes());
    let same = one.iter().zip(other).take_while(|(one, other)| one == other).count();
    one.get(same).map(rank).cmp(&other.get(same).map(rank))
}

/// Patterns for names, in the form of ignore files: without a slash they count in every folder.
fn patterns(base: &Path, patterns: &[String]) -> Result<Gitignore, ToolOutput> {
    let mut builder = GitignoreBuilder::new(base);
    for pattern in patterns {
        // At the beginning these mean something else in ignore files.
        let line = if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern.clone() };
        let added = builder.add_line(None, &line);
        added.map_err(|error| fault("glob", format!("{pattern:?} is no pattern: {error}")))?;
    }
    // Only exclusions: everything else counts.
    if patterns.iter().all(|pattern| pattern.starts_with('!')) {
        let mut all = GitignoreBuilder::new(base);
        for line in std::iter::once("*").chain(patterns.iter().map(String::as_str)) {
            all.add_line(None, line).map_err(|error| fault("glob", error))?;
        }
        return all.build().map_err(|error| fault("glob", error));
    }
    builder.build().map_err(|error| fault("glob", error))
}

/// Does the work of a search off the runtime's threads. When nobody waits any more, or it takes too long, it is told to
/// stop.
async fn search<T: Send + 'static>(
    context: &ToolContext,
    walk: Arc<Walk>,
    work: impl FnOnce(&Walk) -> T + Send + 'static,
) -> Result<(T, bool), ToolOutput> {
    let stop = StopOnDrop(Arc::clone(&walk.stop));
    let mut working = tokio::task::spawn_blocking(move || work(&walk));
    let broken = |error| ToolOutput::error(format!("The search broke off: {error}."));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(ToolOutput::cancelled()),
        done = &mut working => done.map(|found| (found, false)).map_err(broken),
        () = tokio::time::sleep(TIME) => {
            drop(stop);
            working.await.map(|found| (found, true)).map_err(broken)
        }
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
