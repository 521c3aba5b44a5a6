//! Owns the walk through folders that `grep` and `glob` share: in parallel, with ignore rules, over nothing that may not
//! be read, and ended when nobody waits for it any more.

mod find;
mod grep;
mod matches;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};

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
    names: Option<Gitignore>,
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
        let names = (!names.is_empty()).then(|| patterns(&place.real, names)).transpose()?;
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
    fn files<V: FnMut(&DirEntry) + Send>(&self, visitor: impl Fn() -> V) -> Walked {
        let mut builder = WalkBuilder::new(&self.base);
        builder.hidden(!self.hidden).parents(!self.ignored).ignore(!self.ignored);
        builder.git_ignore(!self.ignored).git_exclude(!self.ignored).git_global(false);
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        builder.threads(threads.min(MOST_THREADS));
        // What a tool writes for itself is nobody's source.
        builder.filter_entry(|entry| entry.file_name() != ".git" || entry.depth() == 0);
        builder.build_parallel().run(|| {
            let mut visit = visitor();
            Box::new(move |entry| {
                if self.stopped() {
                    return WalkState::Quit;
                }
                match entry {
                    Err(error) => self.fault(error.to_string()),
                    Ok(entry) => {
                        if entry.file_type().is_some_and(|kind| kind.is_file()) && self.counts(entry.path()) {
                            visit(&entry);
                        }
                    }
                }
                WalkState::Continue
            })
        });
        self.walked()
    }

    fn counts(&self, path: &Path) -> bool {
        if let Some(names) = &self.names
            && path != self.base
            && !names.matched_path_or_any_parents(path, false).is_ignore()
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
