//! Owns bringing a message to rest: in a file of the store if at all possible, redacted where that is asked for.

use std::io::{self, Write};

use sha2::{Digest, Sha256};
use toolway_secret::Redactor;

use crate::directory::{Directory, Temporary, plain_reason};
use crate::redact::redacted;
use crate::source::Source;
use crate::spill::{Body, SpoolFile};

const LOST_HEAD: u64 = 1 << 20;
const LOST_TAIL: u64 = 64 << 10;

/// A message at rest.
#[derive(Debug)]
pub(super) enum Staged<'a> {
    /// In a file that is not named yet.
    File(SpoolFile),
    /// Whole, but only in memory; why.
    Memory(std::borrow::Cow<'a, [u8]>, String),
    /// In pieces; why.
    Lost { head: Vec<u8>, tail: Vec<u8>, reason: String },
}

impl Staged<'_> {
    pub(super) fn source(&self) -> Source<'_> {
        match self {
            Self::File(file) => file.source(),
            Self::Memory(bytes, _) => Source::memory(bytes),
            Self::Lost { head, .. } => Source::memory(head),
        }
    }
}

/// Brings a whole message to rest.
pub(super) fn whole<'a>(
    body: Body<'a>,
    directory: &Directory,
    redactor: Option<&Redactor>,
    memory: u64,
) -> Staged<'a> {
    match (body, redactor) {
        (Body::File(file), None) => Staged::File(file),
        (Body::File(file), Some(_)) => match part(file.source(), directory, redactor, memory) {
            Staged::Memory(bytes, reason) => Staged::Memory(bytes.into_owned().into(), reason),
            Staged::File(file) => Staged::File(file),
            Staged::Lost { head, tail, reason } => Staged::Lost { head, tail, reason },
        },
        (Body::Memory(bytes), _) => match part(Source::memory(bytes), directory, redactor, memory) {
            Staged::Memory(_, reason) if redactor.is_none() => Staged::Memory(bytes.into(), reason),
            other => other.detached(),
        },
        (Body::Lost { head, tail, reason, len }, redactor) => {
            // Nothing is missing where the beginning is all there was.
            match (head.len() as u64 == len, redactor) {
                (true, None) => Staged::Memory(head.into(), reason),
                (true, Some(redactor)) => {
                    let mut bytes = Vec::new();
                    match redacted(Source::memory(&head), redactor, &mut bytes) {
                        Ok(()) => Staged::Memory(bytes.into(), reason),
                        Err(_) => lost(head, tail, reason, Some(redactor)),
                    }
                }
                (false, redactor) => lost(head, tail, reason, redactor),
            }
        }
        (Body::TooLarge { len }, _) => Staged::Lost {
            head: Vec::new(),
            tail: Vec::new(),
            reason: format!("the message has more bytes than are accepted ({len})"),
        },
    }
}

impl Staged<'_> {
    fn detached<'b>(self) -> Staged<'b> {
        match self {
            Self::File(file) => Staged::File(file),
            Self::Memory(bytes, reason) => Staged::Memory(bytes.into_owned().into(), reason),
            Self::Lost { head, tail, reason } => Staged::Lost { head, tail, reason },
        }
    }
}

/// Brings a copy of a part to rest.
pub(super) fn part<'a>(
    source: Source<'a>,
    directory: &Directory,
    redactor: Option<&Redactor>,
    memory: u64,
) -> Staged<'a> {
    let reason = match directory.temporary() {
        Err(error) => error.to_string(),
        Ok(temporary) => match copy(source, temporary, redactor) {
            Ok(file) => return Staged::File(file),
            Err(error) => format!("{}: {}", directory.path().display(), plain_reason(&error)),
        },
    };
    if source.len() <= memory.max(LOST_HEAD) {
        let mut bytes = Vec::new();
        let copied = match redactor {
            Some(redactor) => redacted(source, redactor, &mut bytes),
            None => source.bytes(0..source.len()).map(|read| bytes = read),
        };
        if copied.is_ok() {
            return Staged::Memory(bytes.into(), reason);
        }
    }
    let head = source.bytes(0..LOST_HEAD).unwrap_or_default();
    let tail_from = source.len().saturating_sub(LOST_TAIL).max(head.len() as u64);
    let tail = source.bytes(tail_from..source.len()).unwrap_or_default();
    lost(head, tail, reason, redactor)
}

/// What is left of a message is shown, so it is redacted as plain text: it may not be whole JSON.
fn lost<'a>(head: Vec<u8>, tail: Vec<u8>, reason: String, redactor: Option<&Redactor>) -> Staged<'a> {
    let clean = |bytes: Vec<u8>| match redactor {
        Some(redactor) => redactor.redact(&String::from_utf8_lossy(&bytes)).into_owned().into_bytes(),
        None => bytes,
    };
    Staged::Lost { head: clean(head), tail: clean(tail), reason }
}

fn copy(source: Source<'_>, mut temporary: Temporary, redactor: Option<&Redactor>) -> io::Result<SpoolFile> {
    let mut out = Hashing { file: &mut temporary.file, hash: Sha256::new(), len: 0 };
    match redactor {
        Some(redactor) => redacted(source, redactor, &mut out)?,
        None => source.each(|chunk| out.write_all(chunk).map(|()| true))?,
    }
    let (hash, len) = (out.hash, out.len);
    Ok(SpoolFile { temporary, len, sha256: Some(hash.finalize().into()) })
}

/// SHA-256 of a message.
pub(super) fn hash(source: Source<'_>) -> io::Result<[u8; 32]> {
    let mut hash = Sha256::new();
    source.each(|chunk| {
        hash.update(chunk);
        Ok(true)
    })?;
    Ok(hash.finalize().into())
}

/// Writes to a file and hashes what is written.
struct Hashing<'a> {
    file: &'a mut std::fs::File,
    hash: Sha256,
    len: u64,
}

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
