//! Owns the bytes of one message as they arrive: in memory, then in a file, or lost with a reason. Does not
//! interpret them.

use std::io::Write;
use std::sync::Arc;

use crate::GuardError;
use crate::directory::{Directory, Temporary, plain_reason};
use crate::source::{Source, read_at};

/// What is written at once.
const WRITE: usize = 256 << 10;
/// What is kept of the beginning and of the end when a message could not be written.
const HEAD: usize = 1 << 20;
const TAIL: usize = 64 << 10;
/// What an idle spool keeps of its memory.
const IDLE: usize = 64 << 10;

/// A message in a file that vanishes unless it is saved.
#[derive(Debug)]
pub struct SpoolFile {
    pub(crate) temporary: Temporary,
    pub(crate) len: u64,
    /// Known where it was hashed as it was written; a message that passes is never hashed.
    pub(crate) sha256: Option<[u8; 32]>,
}

impl SpoolFile {
    /// Its size in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has no bytes; never so for a message.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Another handle on the file, to read from its beginning; it stays readable when this value is dropped.
    pub fn open(&self) -> Result<std::fs::File, GuardError> {
        // Where locks are mandatory (Windows) another handle could not read it. It is complete, and its age
        // protects it from being swept.
        if let Err(error) = self.temporary.file.unlock() {
            tracing::debug!(%error, "cannot unlock a temporary file");
        }
        std::fs::File::open(self.temporary.path())
            .map_err(|error| GuardError::io("open", self.temporary.path(), error))
    }

    /// The bytes from an offset on, as many as the buffer takes.
    pub fn read_at(&self, buffer: &mut [u8], at: u64) -> std::io::Result<usize> {
        read_at(&self.temporary.file, buffer, at)
    }

    pub(crate) fn source(&self) -> Source<'_> {
        Source::file(&self.temporary.file, self.len)
    }
}

/// The bytes of a message after its end.
#[derive(Debug)]
pub enum Body<'a> {
    /// All of them.
    Memory(&'a [u8]),
    /// All of them, in a file.
    File(SpoolFile),
    /// They could not be written: beginning (up to 1 MiB) and end (up to 64 KiB).
    Lost {
        /// The beginning.
        head: Vec<u8>,
        /// The end; it does not overlap the beginning.
        tail: Vec<u8>,
        /// How many there were.
        len: u64,
        /// Why they could not be written.
        reason: String,
    },
    /// More than `max_message_bytes`; nothing was kept.
    TooLarge {
        /// How many there were.
        len: u64,
    },
}

impl Body<'_> {
    /// How many bytes the message had.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => file.len,
            Self::Lost { len, .. } | Self::TooLarge { len } => *len,
        }
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Debug)]
enum State {
    Memory,
    File { temporary: Temporary, written: u64 },
    Lost { head: Vec<u8>, reason: String },
    Discarding,
}

/// Takes the bytes of one message after the other.
#[derive(Debug)]
pub(crate) struct Spool {
    directory: Arc<Directory>,
    memory: usize,
    max: u64,
    state: State,
    /// All bytes, those not yet written, or the last ones, as the state has it.
    buffer: Vec<u8>,
    len: u64,
}

impl Spool {
    pub(crate) fn new(directory: Arc<Directory>, memory: usize, max: u64) -> Self {
        Self { directory, memory, max, state: State::Memory, buffer: Vec::new(), len: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.state = State::Memory;
        self.buffer.clear();
        self.buffer.shrink_to(IDLE);
        self.len = 0;
    }

    /// Forgets what came and what will come, up to the next reset.
    pub(crate) fn discard(&mut self) {
        self.reset();
        self.state = State::Discarding;
    }

    #[inline]
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.len > self.max && !matches!(self.state, State::Discarding) {
            let len = self.len;
            self.discard();
            self.len = len;
        }
        match &mut self.state {
            State::Memory if self.buffer.len() + bytes.len() <= self.memory => {
                self.buffer.extend_from_slice(bytes);
            }
            State::Memory => self.begin_file(bytes),
            State::File { .. } => self.append(bytes),
            State::Lost { .. } => self.keep_ends(bytes),
            State::Discarding => {}
        }
    }

    #[cold]
    fn begin_file(&mut self, bytes: &[u8]) {
        match self.directory.temporary() {
            Ok(temporary) => {
                self.state = State::File { temporary, written: 0 };
                self.write_buffer();
                self.buffer.shrink_to(WRITE);
                if matches!(self.state, State::File { .. }) {
                    self.append(bytes);
                } else {
                    self.keep_ends(bytes);
                }
            }
            Err(error) => {
                let held = std::mem::take(&mut self.buffer);
                self.state = State::Lost { head: Vec::new(), reason: error.to_string() };
                self.keep_ends(&held);
                self.keep_ends(bytes);
            }
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        if bytes.len() >= WRITE / 4 && self.buffer.is_empty() {
            self.write(bytes);
            return;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE {
            self.write_buffer();
        }
    }

    fn write_buffer(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        if self.write(&buffer) {
            buffer.clear();
            self.buffer = buffer;
        }
    }

    /// Writes to the file; when that fails keeps the ends and says `false`.
    fn write(&mut self, bytes: &[u8]) -> bool {
        let State::File { temporary, written } = &mut self.state else { return false };
        match temporary.file.write_all(bytes) {
            Ok(()) => {
                *written += bytes.len() as u64;
                true
            }
            Err(error) => {
                let reason = format!(
                    "{}: {}",
                    temporary.path().parent().unwrap_or(temporary.path()).display(),
                    plain_reason(&error)
                );
                let (head, end) = ends(temporary, *written);
                self.buffer = end;
                self.state = State::Lost { head, reason };
                self.keep_ends(bytes);
                false
            }
        }
    }

    /// Keeps what is still of the beginning, and the last of everything else.
    fn keep_ends(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if let State::Lost { head, .. } = &mut self.state
            && self.buffer.is_empty()
        {
            let (more, after) = bytes.split_at(HEAD.saturating_sub(head.len()).min(bytes.len()));
            head.extend_from_slice(more);
            rest = after;
        }
        rest = rest.get(rest.len().saturating_sub(4 * TAIL)..).unwrap_or_default();
        self.buffer.extend_from_slice(rest);
        if self.buffer.len() > 4 * TAIL {
            self.buffer.drain(..self.buffer.len() - TAIL);
            self.buffer.shrink_to(4 * TAIL);
        }
    }

    /// The message has ended. The spool must be reset before the next.
    pub(crate) fn finish(&mut self) -> Body<'_> {
        if matches!(self.state, State::File { .. }) {
            self.write_buffer();
        }
        match std::mem::replace(&mut self.state, State::Discarding) {
            State::Memory => Body::Memory(&self.buffer),
            State::File { temporary, written } => {
                Body::File(SpoolFile { temporary, len: written, sha256: None })
            }
            State::Lost { head, reason } => {
                let rest = self.len.saturating_sub(head.len() as u64);
                let keep = usize::try_from(rest).unwrap_or(TAIL).min(TAIL).min(self.buffer.len());
                let tail = self.buffer.split_off(self.buffer.len() - keep);
                Body::Lost { head, tail, len: self.len, reason }
            }
            State::Discarding => Body::TooLarge { len: self.len },
        }
    }
}

/// Beginning and, beyond it, end of what was written so far, read back.
fn ends(temporary: &Temporary, written: u64) -> (Vec<u8>, Vec<u8>) {
    let source = Source::file(&temporary.file, written);
    let head = source.bytes(0..HEAD as u64).unwrap_or_default();
    let tail =
        source.bytes(written.saturating_sub(TAIL as u64).max(head.len() as u64)..written).unwrap_or_default();
    (head, tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(spool: &mut Spool, bytes: &[u8], piece: usize) {
        bytes.chunks(piece).for_each(|piece| spool.feed(piece));
    }

    fn sample(len: usize) -> Vec<u8> {
        (0..len).map(|n| u8::try_from(n % 251).unwrap_or(0)).collect()
    }

    #[test]
    fn a_message_is_in_memory_or_in_a_file() {
        let root = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(Arc::new(Directory::new(root.path().join("s"))), 100_000, 10 << 20);
        for (len, piece, in_file) in
            [(100_000, 7000, false), (100_001, 7000, true), (3 << 20, 100_000, true), (10, 1, false)]
        {
            let bytes = sample(len);
            feed(&mut spool, &bytes, piece);
            match spool.finish() {
                Body::Memory(held) => assert!(!in_file && held == bytes),
                Body::File(file) => {
                    assert!(in_file && file.source().bytes(0..u64::MAX).unwrap() == bytes);
                }
                other => panic!("{other:?}"),
            }
            spool.reset();
        }
        assert_eq!(std::fs::read_dir(root.path().join("s")).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_written_leaves_both_ends() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("s"), "").unwrap();
        let mut spool = Spool::new(Arc::new(Directory::new(root.path().join("s"))), 1000, u64::MAX);
        for len in [1500, 1 << 20, (1 << 20) + 5, 2 << 20, 5 << 20] {
            let bytes = sample(len);
            feed(&mut spool, &bytes, 70_000);
            let Body::Lost { head, tail, len: told, .. } = spool.finish() else { panic!("not lost") };
            assert_eq!((told, head.len()), (len as u64, len.min(HEAD)));
            assert!(bytes.starts_with(&head) && bytes.ends_with(&tail));
            assert_eq!(tail.len(), (len - head.len()).min(TAIL), "{len}");
            spool.reset();
        }
    }
}
