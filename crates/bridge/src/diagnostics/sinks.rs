//! Owns the writing of events: a thread that may block and fail as it likes, a bounded queue to it, and a memory of the
//! last events. What cannot be kept is dropped and counted.

use std::collections::VecDeque;
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Event;
use crate::profile::Profile;

/// Events that wait to be written.
const QUEUE: usize = 1024;
/// Events that are remembered.
const MEMORY: usize = 64;

/// Where events go besides memory. Implemented by hosts with a log of their own.
pub trait DiagnosticSink: Send + 'static {
    /// Keeps an event. May block: no call waits for it.
    fn record(&mut self, event: &Event) -> io::Result<()>;
}

/// What is done with events.
#[derive(Default)]
pub struct DiagnosticsConfig {
    /// A line for each event, after the profile's tag: the process's stderr, as the caller hands it over.
    pub stderr: Option<(Profile, Box<dyn Write + Send>)>,
    /// A line for each event is appended to this file.
    pub file: Option<PathBuf>,
    /// Others.
    pub sinks: Vec<Box<dyn DiagnosticSink>>,
}

impl fmt::Debug for DiagnosticsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiagnosticsConfig")
            .field("stderr", &self.stderr.is_some())
            .field("file", &self.file)
            .field("sinks", &self.sinks.len())
            .finish()
    }
}

struct Stderr {
    tag: &'static str,
    writer: Box<dyn Write + Send>,
}

impl DiagnosticSink for Stderr {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        // One write a line, so that lines of others do not come between.
        self.writer.write_all(format!("[{}] {}\n", self.tag, event.to_json()).as_bytes())?;
        self.writer.flush()
    }
}

struct File {
    path: PathBuf,
    /// That it cannot be written was said already.
    told: bool,
}

impl File {
    fn append(&self, event: &Event) -> io::Result<()> {
        // Opened anew each time: a log that was moved away or emptied is written on.
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&self.path)?.write_all(format!("{}\n", event.to_json()).as_bytes())
    }
}

impl DiagnosticSink for File {
    fn record(&mut self, event: &Event) -> io::Result<()> {
        let written = self.append(event);
        match &written {
            // Once, and not with every event: whoever asked for the file would look for it in vain.
            Err(error) if !self.told => {
                tracing::warn!(%error, "diagnostics cannot be written to {}", self.path.display());
                self.told = true;
            }
            Err(_) => {}
            Ok(()) => self.told = false,
        }
        written
    }
}

enum Command {
    Record(Box<Event>),
    Flush(oneshot::Sender<()>),
}

/// The sinks of one bridge.
pub(super) struct Sinks {
    memory: Mutex<VecDeque<Event>>,
    queue: Option<SyncSender<Command>>,
}

impl Sinks {
    pub(super) fn new(config: DiagnosticsConfig) -> Self {
        let DiagnosticsConfig { stderr, file, mut sinks } = config;
        if let Some((profile, writer)) = stderr {
            sinks.push(Box::new(Stderr { tag: profile.diagnostic_tag, writer }));
        }
        if let Some(path) = file {
            sinks.push(Box::new(File { path, told: false }));
        }
        let queue = if sinks.is_empty() { None } else { start(sinks) };
        Self { memory: Mutex::default(), queue }
    }

    pub(super) fn emit(&self, event: Event) {
        if let Some(queue) = &self.queue {
            // A full queue: the sinks are stuck, and the event is in memory at least.
            queue.try_send(Command::Record(Box::new(event.clone()))).ok();
        }
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() == MEMORY {
            memory.pop_front();
        }
        memory.push_back(event);
    }

    pub(super) fn last(&self) -> Vec<Event> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) async fn flush(&self, most: Duration) {
        let Some(queue) = &self.queue else { return };
        let (done, written) = oneshot::channel();
        if queue.try_send(Command::Flush(done)).is_ok() {
            tokio::time::timeout(most, written).await.ok();
        }
    }
}

/// The thread that writes. It ends when the last [`Sinks`] is dropped. Without a thread there is memory alone.
fn start(sinks: Vec<Box<dyn DiagnosticSink>>) -> Option<SyncSender<Command>> {
    let (queue, commands) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new().name("bridge-diagnostics".to_owned());
    thread.spawn(move || write(sinks, &commands)).ok().map(|_| queue)
}

fn write(mut sinks: Vec<Box<dyn DiagnosticSink>>, commands: &Receiver<Command>) {
    while let Ok(command) = commands.recv() {
        match command {
            Command::Record(event) => {
                for sink in &mut sinks {
                    // A sink that fails or breaks off is tried again with the next event, and keeps nothing from others.
                    catch_unwind(AssertUnwindSafe(|| sink.record(&event))).ok();
                }
            }
            Command::Flush(done) => {
                done.send(()).ok();
            }
        }
    }
}
