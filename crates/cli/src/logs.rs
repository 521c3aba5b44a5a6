//! Owns standard error: the logs, with secrets taken out, and what an upstream writes there. Nobody waits for a
//! reader of it: what is not read in time is left out, and how much is said.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use toolway_secret::{RedactingLines, Redactor};
use tracing::level_filters::LevelFilter;

/// Pieces that wait for a reader.
const WAITING: usize = 256;
/// How long the reader is given at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long the beginning of a line of a server waits for its end, in which a secret might go on.
const UNFINISHED: Duration = Duration::from_secs(1);

enum Piece {
    /// Ours, clean.
    Bytes(Vec<u8>),
    /// Of a server, cut anywhere.
    Foreign(Vec<u8>),
    Flush(SyncSender<()>),
}

static WRITER: OnceLock<Option<SyncSender<Piece>>> = OnceLock::new();
static LEFT_OUT: AtomicU64 = AtomicU64::new(0);

/// Starts logging at this level.
pub(crate) fn start(level: LevelFilter) {
    if level == LevelFilter::OFF {
        return;
    }
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .with_writer(|| Redacted)
        .finish();
    // A second start in one process changes nothing.
    tracing::subscriber::set_global_default(subscriber).ok();
}

/// Writes whole lines of ours, which hold no secrets, to standard error without waiting for its reader.
pub(crate) fn forward(bytes: &[u8]) {
    send(Piece::Bytes(bytes.to_vec()), bytes.len());
}

/// Writes what a server wrote to its standard error to ours, without secrets, and without waiting for its reader.
pub(crate) fn forward_stderr(bytes: &[u8]) {
    send(Piece::Foreign(bytes.to_vec()), bytes.len());
}

fn send(piece: Piece, length: usize) {
    let Some(writer) = WRITER.get_or_init(writer) else { return };
    if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = writer.try_send(piece) {
        LEFT_OUT.fetch_add(length as u64, Ordering::Relaxed);
    }
}

/// Waits a little until what was written has left.
pub(crate) fn finish() {
    if let Some(Some(writer)) = WRITER.get() {
        let (done, wait) = sync_channel(1);
        if writer.try_send(Piece::Flush(done)).is_ok() {
            wait.recv_timeout(LAST_WORDS).ok();
        }
    }
}

fn writer() -> Option<SyncSender<Piece>> {
    let (sender, pieces) = sync_channel(WAITING);
    let work = move || {
        let mut foreign = RedactingLines::new(Redactor::known());
        while let Some(piece) = next(&pieces, &mut foreign) {
            match piece {
                Piece::Flush(done) => {
                    write(&foreign.rest());
                    done.send(()).ok();
                }
                Piece::Bytes(bytes) => write(&bytes),
                Piece::Foreign(bytes) => write(&foreign.push(&bytes)),
            }
        }
        write(&foreign.rest());
    };
    std::thread::Builder::new().name("stderr out".to_owned()).stack_size(256 << 10).spawn(work).ok()?;
    Some(sender)
}

/// The next piece; a line of a server that nothing comes to any more is written as it is.
fn next(pieces: &Receiver<Piece>, foreign: &mut RedactingLines) -> Option<Piece> {
    if foreign.holds() {
        match pieces.recv_timeout(UNFINISHED) {
            Ok(piece) => return Some(piece),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => write(&foreign.rest()),
        }
    }
    pieces.recv().ok()
}

fn write(bytes: &[u8]) {
    let left_out = LEFT_OUT.swap(0, Ordering::Relaxed);
    let mut stderr = io::stderr().lock();
    if left_out > 0 {
        writeln!(stderr, "\ntoolway: {left_out} bytes were left out here: nobody read stderr").ok();
    }
    stderr.write_all(bytes).ok();
}

/// One line a call, as the subscriber writes it.
struct Redacted;

impl Write for Redacted {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let clean = Redactor::known().redact(&text);
        forward(format!("toolway: {}", clean.trim_start()).as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
