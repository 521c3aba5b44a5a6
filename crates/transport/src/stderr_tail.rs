//! The last lines of an upstream's stderr, for error messages. Always read, bounded in memory; knows nothing of
//! what the lines mean.

use std::io::{self, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use toolway_secret::{RedactingLines, Redactor};

/// How much of stderr is kept: the last 8 KiB.
pub const TAIL_BYTES: usize = 8 * 1024;
/// How much of one line is kept; a program that prints no line ends must not push out everything else.
const LINE_BYTES: usize = 1024;
/// Read at once: as much as a pipe usually holds.
const READ_BYTES: usize = 16 * 1024;

/// The end of what an upstream wrote to stderr. Clones share it: one thread drains, others read.
#[derive(Debug, Clone, Default)]
pub struct StderrTail {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    buffer: Mutex<Buffer>,
    ended: Condvar,
}

#[derive(Debug)]
struct Buffer {
    /// Takes the secrets in use out before a line is cut, since of a part of one nothing would be known.
    clean: RedactingLines,
    kept: Kept,
    /// Nothing more will come.
    ended: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        Self { clean: RedactingLines::new(Redactor::values()), kept: Kept::default(), ended: false }
    }
}

#[derive(Debug, Clone, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Bytes of the line being written that were kept, and those that were not.
    line: usize,
    cut: u64,
}

impl StderrTail {
    /// An empty tail.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `source` until it ends or fails, keeps its tail and hands each piece to `forward`. Blocking: for a
    /// thread of its own. A `forward` that waits makes the upstream wait.
    pub fn drain(&self, source: impl Read, forward: impl FnMut(&[u8])) {
        self.read(source, forward);
        self.lock().ended = true;
        self.shared.ended.notify_all();
    }

    fn read(&self, mut source: impl Read, mut forward: impl FnMut(&[u8])) {
        let mut piece = vec![0; READ_BYTES];
        loop {
            match source.read(&mut piece) {
                Ok(0) => return,
                Ok(read) => {
                    let bytes = piece.get(..read).unwrap_or_default();
                    self.push(bytes);
                    forward(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Adds bytes, cut anywhere.
    pub fn push(&self, bytes: &[u8]) {
        self.lock().push(bytes);
    }

    /// The kept lines: whole ones, at most [`TAIL_BYTES`]; invalid UTF-8 is replaced. The last one may lack its
    /// line ending. Empty when nothing was written.
    pub fn text(&self) -> String {
        self.lock().text()
    }

    /// Waits until [`StderrTail::drain`] has come to the end, at most for `timeout`; whether it has. What an
    /// upstream wrote just before it ended is complete only then.
    pub fn wait_end(&self, timeout: Duration) -> bool {
        let waited = self.shared.ended.wait_timeout_while(self.lock(), timeout, |buffer| !buffer.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    fn lock(&self) -> MutexGuard<'_, Buffer> {
        self.shared.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Buffer {
    fn push(&mut self, bytes: &[u8]) {
        let clean = self.clean.push(bytes);
        self.kept.push(&clean);
    }

    fn text(&self) -> String {
        if !self.clean.holds() {
            return self.kept.text();
        }
        let mut kept = self.kept.clone();
        kept.push(&self.clean.unfinished());
        kept.text()
    }
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (line, ends) = match piece.split_last() {
                Some((b'\n', line)) => (line, true),
                _ => (piece, false),
            };
            let room = LINE_BYTES.saturating_sub(self.line).min(line.len());
            let (kept, cut) = line.split_at(room);
            self.bytes.extend_from_slice(kept);
            self.line += kept.len();
            self.cut += cut.len() as u64;
            if ends {
                self.end_line();
            }
        }
        if self.bytes.len() > 2 * TAIL_BYTES {
            self.shorten();
        }
    }

    fn end_line(&mut self) {
        self.bytes.extend_from_slice(cut_note(self.cut).as_bytes());
        self.bytes.push(b'\n');
        self.line = 0;
        self.cut = 0;
        if self.bytes.len() > 2 * TAIL_BYTES {
            self.shorten();
        }
    }

    /// Forgets whole lines from the front. Lines are shorter than the tail, so there is a border to cut at.
    fn shorten(&mut self) {
        let surplus = self.bytes.len().saturating_sub(TAIL_BYTES);
        if surplus > 0 {
            self.bytes.drain(..line_border(&self.bytes, surplus));
        }
    }

    fn text(&self) -> String {
        let note = cut_note(self.cut);
        let surplus = (self.bytes.len() + note.len()).saturating_sub(TAIL_BYTES);
        let begin = if surplus > 0 { line_border(&self.bytes, surplus) } else { 0 };
        let mut text = String::from_utf8_lossy(self.bytes.get(begin..).unwrap_or_default()).into_owned();
        text.push_str(&note);
        text
    }
}

/// The first index at or after `from` where a line begins.
fn line_border(bytes: &[u8], from: usize) -> usize {
    let searched = bytes.get(from.saturating_sub(1)..).unwrap_or_default();
    searched.iter().position(|&byte| byte == b'\n').map_or(from, |at| from.saturating_sub(1) + at + 1)
}

fn cut_note(cut: u64) -> String {
    if cut == 0 { String::new() } else { format!(" [{cut} more bytes]") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(text: &[u8], piece: usize) -> String {
        let tail = StderrTail::new();
        for piece in text.chunks(piece) {
            tail.push(piece);
        }
        tail.text()
    }

    #[test]
    fn short_output_is_kept_whole() {
        for text in ["", "one", "one\n", "one\n\ntwo\r\nthree"] {
            assert_eq!(tail_of(text.as_bytes(), 3), text);
        }
    }

    #[test]
    fn long_output_keeps_its_last_whole_lines() {
        let lines: Vec<String> = (0..20_000).map(|n| format!("línea {n}\n")).collect();
        let text = lines.concat();
        for piece in [1, 7, 4096, text.len()] {
            let tail = tail_of(text.as_bytes(), piece);
            assert!(tail.len() <= TAIL_BYTES && tail.len() > TAIL_BYTES - 20, "{}", tail.len());
            assert!(text.ends_with(&tail) && tail.starts_with("línea "), "{piece}");
        }
    }

    #[test]
    fn an_endless_line_is_cut_and_does_not_push_out_the_others() {
        let mut text = b"Error: the reason\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 4 * 1024 * 1024));
        for piece in [1000, text.len()] {
            let tail = tail_of(&text, piece);
            assert!(tail.starts_with("Error: the reason\nxxx"), "{piece}");
            assert!(tail.ends_with("x [4193280 more bytes]"), "{piece}");
            assert!(tail.len() < 1100);
        }
        text.extend_from_slice(b"\nlast\n");
        assert!(tail_of(&text, 4096).ends_with("x [4193280 more bytes]\nlast\n"));
    }

    #[test]
    fn the_split_does_not_matter() {
        let text: Vec<u8> =
            (0..40_000_u32).map(|n| if n % 97 == 0 { b'\n' } else { (n % 251) as u8 }).collect();
        let whole = tail_of(&text, text.len());
        for piece in [1, 2, 100, 5000] {
            assert_eq!(tail_of(&text, piece), whole, "{piece}");
        }
    }

    #[test]
    fn drain_reads_to_the_end_and_forwards_everything() {
        let text = "line\n".repeat(100_000);
        let mut forwarded = Vec::new();
        let tail = StderrTail::new();
        tail.drain(text.as_bytes(), |bytes| forwarded.extend_from_slice(bytes));
        assert_eq!(forwarded, text.as_bytes());
        assert!(tail.wait_end(Duration::ZERO));
        assert!(!StderrTail::new().wait_end(Duration::ZERO));
        assert!(tail.text().len() <= TAIL_BYTES);
    }
}
