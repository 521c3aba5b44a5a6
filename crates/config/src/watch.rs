//! Owns the watch over files: written, replaced, made or removed, also by way of links and of directories that come
//! and go. Says that something has changed, and never what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::ConfigError;
use crate::settled::Stamp;

#[cfg(test)]
mod tests;

/// Nobody writes a file for longer without a pause.
const BURSTS: usize = 20;
/// How often files are looked at all the same: network drives tell nothing.
const SELDOM: Duration = Duration::from_secs(30);
/// How often where the system does not tell at all.
const OFTEN: Duration = Duration::from_secs(2);
/// Links in a row that are followed.
const LINKS: usize = 40;

/// A watch over files; it ends when it is dropped.
#[derive(Debug)]
pub struct Watch {
    signals: SyncSender<Signal>,
    files: Arc<Mutex<Vec<PathBuf>>>,
}

/// What wakes the watching thread.
#[derive(Debug)]
enum Signal {
    /// Something happened to a file, or to a directory above one.
    Touched,
    /// Other files are to be watched, or none.
    Files,
}

impl Watch {
    /// Calls `changed`, on a thread of its own, each time that one of the files has changed and all have then held
    /// still for `settle`. Files and directories need not be there yet.
    pub fn start(
        files: Vec<PathBuf>,
        settle: Duration,
        changed: impl FnMut() + Send + 'static,
    ) -> Result<Self, ConfigError> {
        // One signal waits while one is dealt with: more would say nothing more.
        let (signals, receiver) = sync_channel(1);
        let shown = files.first().cloned().unwrap_or_default();
        let files = Arc::new(Mutex::new(files));
        let told = Told { signals: signals.clone(), files: Arc::clone(&files) };
        let watching = Watching::new(told, settle);
        std::thread::Builder::new()
            .name("config-watch".to_owned())
            .spawn(move || watching.run(&receiver, changed))
            .map_err(|error| ConfigError::io("watch", &shown, error))?;
        Ok(Self { signals, files })
    }

    /// Watches these files from now on.
    pub fn set(&self, files: Vec<PathBuf>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files;
        // If one waits already, then the thread looks at the files anyway.
        self.signals.try_send(Signal::Files).ok();
    }
}

/// What the system's watcher calls.
#[derive(Debug, Clone)]
struct Told {
    signals: SyncSender<Signal>,
    files: Arc<Mutex<Vec<PathBuf>>>,
}

impl Told {
    fn files(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The watching thread's state.
#[derive(Debug)]
struct Watching {
    told: WeakTold,
    settle: Duration,
    watcher: Option<RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
    stamps: Vec<(PathBuf, Option<Stamp>)>,
}

/// The thread must not hold its own sender, or it would never hear that the watch is gone; the system's watcher holds
/// one, and belongs to the thread. So the end is known by the files, which nobody else holds then.
#[derive(Debug)]
struct WeakTold {
    files: std::sync::Weak<Mutex<Vec<PathBuf>>>,
}

impl Watching {
    fn new(told: Told, settle: Duration) -> Self {
        let weak = WeakTold { files: Arc::downgrade(&told.files) };
        let files = told.files();
        let watched = Arc::downgrade(&told.files);
        let signals = told.signals;
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let Some(files) = watched.upgrade() else { return };
            let concerns = match &event {
                // Reading is no change.
                Ok(event) if event.kind.is_access() => false,
                Ok(event) => {
                    let files = files.lock().unwrap_or_else(PoisonError::into_inner);
                    event.paths.is_empty() || event.paths.iter().any(|path| concerns(path, &files))
                }
                Err(_) => true,
            };
            if concerns && let Err(TrySendError::Disconnected(_)) = signals.try_send(Signal::Touched) {
                tracing::trace!("the watch is gone");
            }
        });
        let watcher = watcher.inspect_err(|error| tracing::warn!(%error, "files are polled")).ok();
        let mut this = Self { told: weak, settle, watcher, directories: BTreeSet::new(), stamps: Vec::new() };
        this.stamps = stamps(&files);
        this.directories(&files);
        this
    }

    fn run(mut self, receiver: &Receiver<Signal>, mut changed: impl FnMut()) {
        let patience = if self.watcher.is_some() { SELDOM } else { OFTEN };
        loop {
            let signal = receiver.recv_timeout(patience);
            let Some(files) = self.files() else { return };
            if let Err(RecvTimeoutError::Disconnected) = signal {
                return;
            }
            if self.stamps.iter().map(|(file, _)| file).ne(&files) {
                // What changed while nobody watched it is told, too much rather than too little.
                let known: Vec<_> = self.stamps.drain(..).collect();
                let same =
                    |file: &PathBuf| known.iter().find(|(other, _)| other == file).map(|(_, stamp)| *stamp);
                self.stamps = files
                    .iter()
                    .map(|file| (file.clone(), same(file).unwrap_or_else(|| Stamp::of(file))))
                    .collect();
            }
            self.directories(&files);
            if self.settled(receiver, &files) {
                changed();
            }
        }
    }

    /// `None`: the watch was dropped.
    fn files(&self) -> Option<Vec<PathBuf>> {
        let files = self.told.files.upgrade()?;
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        Some(files.clone())
    }

    /// Waits until the files hold still, and says whether they have changed since they were last told.
    fn settled(&mut self, receiver: &Receiver<Signal>, files: &[PathBuf]) -> bool {
        let mut before = stamps(files);
        if before == self.stamps && receiver.recv_timeout(self.settle).is_err() {
            // An event may come before what it tells can be seen.
            before = stamps(files);
        }
        if before == self.stamps {
            return false;
        }
        for _ in 0..BURSTS {
            receiver.recv_timeout(self.settle).ok();
            let now = stamps(files);
            if now == before {
                break;
            }
            before = now;
        }
        self.directories(files);
        let changed = before != self.stamps;
        self.stamps = before;
        changed
    }

    /// Watches the directories that matter now. One that was removed and made again is another one, so those that are
    /// gone are forgotten.
    fn directories(&mut self, files: &[PathBuf]) {
        let wanted: BTreeSet<PathBuf> = files.iter().flat_map(|file| directories(file)).collect();
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.directories.difference(&wanted) {
            watcher.unwatch(gone).ok();
        }
        for directory in &wanted {
            // Said again for those that are watched: it does no harm, and finds a directory that was replaced.
            if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                tracing::debug!(%error, directory = %directory.display(), "a directory is not watched");
            }
        }
        self.directories = wanted;
    }
}

fn stamps(files: &[PathBuf]) -> Vec<(PathBuf, Option<Stamp>)> {
    files.iter().map(|file| (file.clone(), Stamp::of(file))).collect()
}

/// Whether an event at a path may mean one of the files: it is one, is above one, or is where a link leads.
fn concerns(path: &Path, files: &[PathBuf]) -> bool {
    files.iter().any(|file| chain(file).iter().any(|link| link.starts_with(path)))
}

/// The path, and where its links lead, one after the other.
fn chain(file: &Path) -> Vec<PathBuf> {
    let mut paths = vec![file.to_path_buf()];
    for _ in 0..LINKS {
        let Some(last) = paths.last() else { break };
        let Ok(target) = std::fs::read_link(last) else { break };
        let next = last.parent().unwrap_or(Path::new("/")).join(target);
        if paths.contains(&next) {
            break;
        }
        paths.push(next);
    }
    if let Ok(real) = file.canonicalize() {
        if !paths.contains(&real) {
            paths.push(real);
        }
    }
    paths
}

/// The directories in which a change of the file is seen: for each link on its way the nearest two that are there.
fn directories(file: &Path) -> Vec<PathBuf> {
    let above = |path: &PathBuf| -> Vec<PathBuf> {
        let there = path.ancestors().skip(1).filter(|dir| dir.is_dir());
        there.take(2).map(Path::to_path_buf).collect()
    };
    chain(file).iter().flat_map(above).collect()
}
