//! Owns the watch over files: written, replaced, made or removed, also by way of links and of directories that come
//! and go. Says that something has changed, and never what.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
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
    /// Taken when the watch is dropped: the thread ends when there are none.
    files: Option<Arc<Mutex<Vec<PathBuf>>>>,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.files = None;
        self.signals.try_send(Signal::Files).ok();
    }
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
    /// still for `settle`. Files and directories need not be there yet. What changed before this returns is not told: load
    /// once more then.
    pub fn start(
        files: Vec<PathBuf>,
        settle: Duration,
        changed: impl FnMut() + Send + 'static,
    ) -> Result<Self, ConfigError> {
        // One signal waits while one is dealt with: more would say nothing more.
        let (signals, receiver) = sync_channel(1);
        let shown = files.first().cloned().unwrap_or_default();
        let files = Arc::new(Mutex::new(files));
        let told = Told {
            signals: signals.clone(),
            files: Arc::downgrade(&files),
            links: Arc::default(),
            stale: Arc::new(AtomicBool::new(true)),
        };
        let watching = Watching::new(told, settle);
        std::thread::Builder::new()
            .name("config-watch".to_owned())
            .spawn(move || watching.run(&receiver, changed))
            .map_err(|error| ConfigError::io("watch", &shown, error))?;
        Ok(Self { signals, files: Some(files) })
    }

    /// Watches these files from now on.
    pub fn set(&self, files: Vec<PathBuf>) {
        if let Some(own) = &self.files {
            *own.lock().unwrap_or_else(PoisonError::into_inner) = files;
        }
        // If one waits already, then the thread looks at the files anyway.
        self.signals.try_send(Signal::Files).ok();
    }
}

/// What the system's watcher is told with. It holds the files weakly, as the thread does: the watch is gone when
/// nobody else holds them.
#[derive(Debug, Clone)]
struct Told {
    signals: SyncSender<Signal>,
    files: Weak<Mutex<Vec<PathBuf>>>,
    /// The files and where their links led when the directories were last chosen. Busy directories tell much: what
    /// concerns none of these is seen without asking the system.
    links: Arc<Mutex<Vec<PathBuf>>>,
    /// A directory came or went: what watches it watches nothing any more.
    stale: Arc<AtomicBool>,
}

impl Told {
    /// `None`: the watch was dropped.
    fn files(&self) -> Option<Vec<PathBuf>> {
        let files = self.files.upgrade()?;
        let files = files.lock().unwrap_or_else(PoisonError::into_inner);
        Some(files.clone())
    }

    fn event(&self, event: &notify::Result<notify::Event>) {
        let everything = [PathBuf::from("/")];
        let paths = match event {
            // Reading is no change.
            Ok(event) if event.kind.is_access() => return,
            Ok(event) if !event.paths.is_empty() => event.paths.as_slice(),
            Ok(_) | Err(_) => everything.as_slice(),
        };
        let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let mut concerned = false;
        for path in paths {
            for link in links.iter().filter(|link| link.starts_with(path)) {
                concerned = true;
                if link != path {
                    self.stale.store(true, Ordering::SeqCst);
                }
            }
        }
        drop(links);
        if concerned && let Err(TrySendError::Disconnected(_)) = self.signals.try_send(Signal::Touched) {
            tracing::trace!("the watch is gone");
        }
    }
}

/// The watching thread's state.
#[derive(Debug)]
struct Watching {
    told: Told,
    settle: Duration,
    watcher: Option<RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
    stamps: Vec<(PathBuf, Option<Stamp>)>,
    /// A signal was taken while the files settled: what it tells of, other directories or other files, is still to be
    /// looked at.
    woken: bool,
}

impl Watching {
    fn new(told: Told, settle: Duration) -> Self {
        let files = told.files().unwrap_or_default();
        told.stale.store(true, Ordering::SeqCst);
        let directories = BTreeSet::new();
        let mut this = Self { told, settle, watcher: None, directories, stamps: Vec::new(), woken: false };
        this.directories(&files);
        this.stamps = stamps(&files);
        this
    }

    fn run(mut self, receiver: &Receiver<Signal>, mut changed: impl FnMut()) {
        loop {
            let patience = if self.watcher.is_some() { SELDOM } else { OFTEN };
            let woken = std::mem::take(&mut self.woken);
            let signal = if woken { Ok(Signal::Touched) } else { receiver.recv_timeout(patience) };
            let Some(files) = self.told.files() else { return };
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

    /// Waits until the files hold still, and says whether they have changed since they were last told.
    fn settled(&mut self, receiver: &Receiver<Signal>, files: &[PathBuf]) -> bool {
        let mut before = stamps(files);
        if before == self.stamps {
            // An event may come before what it tells of can be seen.
            self.woken = receiver.recv_timeout(self.settle).is_ok();
            before = stamps(files);
        }
        if before == self.stamps {
            return false;
        }
        for _ in 0..BURSTS {
            // Until nothing more comes.
            let signals = (0..BURSTS).map(|_| receiver.recv_timeout(self.settle));
            self.woken |= signals.take_while(Result::is_ok).count() > 0;
            // Watched first and looked at then, so that nothing falls between the two.
            self.directories(files);
            let now = stamps(files);
            if now == before {
                break;
            }
            before = now;
        }
        let changed = before != self.stamps;
        self.stamps = before;
        changed
    }

    /// Watches the directories that matter now. Once one of them has come or gone, all are watched anew: the system
    /// tells of directories late, and a watch over one that was made again would be taken for the old one.
    fn directories(&mut self, files: &[PathBuf]) {
        for _ in 0..BURSTS {
            let links: Vec<PathBuf> = files.iter().flat_map(|file| chain(file)).collect();
            let wanted: BTreeSet<PathBuf> = links.iter().flat_map(|link| directories(link)).collect();
            *self.told.links.lock().unwrap_or_else(PoisonError::into_inner) = links;
            let stale = self.told.stale.swap(false, Ordering::SeqCst);
            if wanted == self.directories && !stale {
                return;
            }
            // Asked again afterwards: something may have been made before it was watched.
            self.watch(wanted, stale);
        }
    }

    fn watch(&mut self, wanted: BTreeSet<PathBuf>, anew: bool) {
        if anew {
            self.directories.clear();
            let told = self.told.clone();
            let watcher = notify::recommended_watcher(move |event| told.event(&event));
            self.watcher = watcher.inspect_err(|error| tracing::warn!(%error, "files are polled")).ok();
        }
        if let Some(watcher) = &mut self.watcher {
            for gone in self.directories.difference(&wanted) {
                watcher.unwatch(gone).ok();
            }
            for directory in wanted.difference(&self.directories) {
                if let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) {
                    tracing::debug!(%error, directory = %directory.display(), "a directory is not watched");
                }
            }
        }
        self.directories = wanted;
    }
}

fn stamps(files: &[PathBuf]) -> Vec<(PathBuf, Option<Stamp>)> {
    files.iter().map(|file| (file.clone(), Stamp::of(file))).collect()
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
    if let Ok(real) = file.canonicalize()
        && !paths.contains(&real)
    {
        paths.push(real);
    }
    paths
}

/// The directories in which a change of the file or link is seen: the nearest two that are there.
fn directories(link: &Path) -> impl Iterator<Item = PathBuf> {
    let there = link.ancestors().skip(1).filter(|dir| dir.is_dir());
    there.take(2).map(Path::to_path_buf)
}
