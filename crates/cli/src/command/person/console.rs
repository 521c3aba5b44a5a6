//! Owns the lines of stdin: each is read when it is asked for, on a thread that may wait, and none is lost when nobody
//! waits any more. What is asked stands on stderr.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use tokio::sync::{Mutex, mpsc};

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
        Self { lines: Arc::new(Mutex::new(Lines { asks, read: lines, outstanding: false })), is_terminal }
    }

    /// The next line. One that is given up is the next one's.
    pub(crate) async fn line(&self) -> Line {
        let mut lines = self.lines.lock().await;
        lines.next().await
    }

    /// Shows text, which is safe for a terminal, and waits for a line that is typed after it.
    pub(crate) async fn ask(&self, prompt: &str) -> Line {
        let mut lines = self.lines.lock().await;
        if self.is_terminal && !lines.outstanding {
            forget_typed();
        }
        self.tell(prompt);
        lines.next().await
    }

    /// Shows text on stderr; whoever reads it may be gone.
    #[expect(clippy::unused_self, reason = "the console is where it is shown")]
    pub(crate) fn tell(&self, text: &str) {
        let mut stderr = std::io::stderr().lock();
        stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()).ok();
    }
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
