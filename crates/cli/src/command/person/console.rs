//! Owns the lines of stdin: each is read when it is asked for, on a thread that may wait, and none is lost when nobody
//! waits any more. What is asked stands on stderr.

use std::io::BufRead as _;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, MutexGuard, PoisonError};

use tokio::sync::{Mutex, OwnedMutexGuard, mpsc};

/// The stack of our small threads.
const STACK: usize = 128 << 10;
/// The most bytes of one line.
const LINE: u64 = 1 << 20;

/// A line that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Line {
    /// What was typed, without the line break.
    Typed(String),
    /// The end of input.
    End,
}

/// Stdin by lines. Cheap to clone; who asks first is answered first.
#[derive(Debug, Clone)]
pub(crate) struct Console {
    lines: Arc<Mutex<Lines>>,
    is_terminal: bool,
    status: Arc<std::sync::Mutex<Status>>,
}

/// The line that says what goes on, while nothing else is written.
#[derive(Debug, Default)]
struct Status {
    is_drawn: bool,
    line: String,
    /// Somebody has the terminal alone: a question, an editor.
    is_held: bool,
}

impl Status {
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            write("\r\x1b[K");
        }
    }
}

fn lock(status: &std::sync::Mutex<Status>) -> MutexGuard<'_, Status> {
    status.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The terminal is somebody's alone. Nobody else asks, and no status is drawn.
#[derive(Debug)]
pub(crate) struct Held {
    status: Arc<std::sync::Mutex<Status>>,
    lines: OwnedMutexGuard<Lines>,
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.status).is_held = false;
    }
}

#[derive(Debug)]
struct Lines {
    asks: SyncSender<()>,
    read: mpsc::Receiver<Line>,
    /// A line was asked for and has not come: whoever wanted it is gone.
    outstanding: bool,
}

impl Console {
    /// Reads nothing yet.
    pub(crate) fn new(is_terminal: bool) -> Self {
        let (asks, asked) = sync_channel(1);
        let (sender, lines) = mpsc::channel(1);
        let read = move || {
            for () in asked {
                if sender.blocking_send(read_line()).is_err() {
                    return;
                }
            }
        };
        // Without a thread the channel is closed, and input is at its end.
        std::thread::Builder::new().name("input".to_owned()).stack_size(STACK).spawn(read).ok();
        let lines = Arc::new(Mutex::new(Lines { asks, read: lines, outstanding: false }));
        Self { lines, is_terminal, status: Arc::default() }
    }

    /// Waits for the terminal, and has it until what is returned is dropped.
    pub(crate) async fn hold(&self) -> Held {
        let lines = Arc::clone(&self.lines).lock_owned().await;
        let mut status = lock(&self.status);
        status.is_held = true;
        status.clear();
        drop(status);
        Held { status: Arc::clone(&self.status), lines }
    }

    /// Somebody is asked, or has the terminal otherwise.
    pub(crate) fn is_held(&self) -> bool {
        lock(&self.status).is_held
    }

    /// Says on one line, which is safe for a terminal and not wider than it, what goes on. It is taken away before anything
    /// else is written.
    pub(crate) fn status(&self, line: &str) {
        let mut status = lock(&self.status);
        if self.is_terminal && !status.is_held && !(status.is_drawn && status.line == line) {
            status.is_drawn = true;
            line.clone_into(&mut status.line);
            write(&format!("\r\x1b[K{line}"));
        }
    }

    /// Takes that line away.
    pub(crate) fn clear(&self) {
        lock(&self.status).clear();
    }

    /// The next line. One that is given up is the next one's.
    pub(crate) async fn line(&self) -> Line {
        let mut lines = self.lines.lock().await;
        lines.next().await
    }

    /// Shows text, which is safe for a terminal, and waits for a line that is typed after it.
    pub(crate) async fn ask(&self, prompt: &str) -> Line {
        let mut held = self.hold().await;
        if self.is_terminal && !held.lines.outstanding {
            forget_typed();
        }
        self.tell(prompt);
        held.lines.next().await
    }

    /// Shows text on stderr; whoever reads it may be gone.
    pub(crate) fn tell(&self, text: &str) {
        self.clear();
        write(text);
    }
}

fn write(text: &str) {
    crate::border::tell(text);
}

impl Lines {
    async fn next(&mut self) -> Line {
        if !self.outstanding {
            if self.asks.try_send(()).is_err() {
                return Line::End;
            }
            self.outstanding = true;
        }
        let line = self.read.recv().await.unwrap_or(Line::End);
        self.outstanding = false;
        line
    }
}

fn read_line() -> Line {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(LINE).read_until(b'\n', &mut bytes);
    if read.is_err() || bytes.is_empty() {
        return Line::End;
    }
    let text = String::from_utf8_lossy(&bytes);
    Line::Typed(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// What was typed before a question is no answer to it.
#[cfg(unix)]
fn forget_typed() {
    rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush).ok();
}

#[cfg(not(unix))]
fn forget_typed() {}
