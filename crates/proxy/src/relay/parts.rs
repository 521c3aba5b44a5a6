//! Owns outgoing bytes: slices, owned bytes and pieces of files, written as one line.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use toolway_guard::{Body, GuardError, SpoolFile};
use toolway_wire::Envelope;

/// A piece of a line.
#[derive(Debug)]
pub(crate) enum Part<'a> {
    /// Bytes of the message as it came.
    Slice(&'a [u8]),
    /// Bytes of ours.
    Bytes(Vec<u8>),
    /// Bytes of a message that is in a file.
    File { file: Arc<File>, start: u64, len: u64 },
}

/// What goes out.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    /// Nothing.
    Nothing,
    /// A line of one piece.
    One(Part<'a>),
    /// A line of several pieces.
    Many(Vec<Part<'a>>),
}

const CHUNK: usize = 256 << 10;

impl<'a> Line<'a> {
    /// The line of a message as it came. A message that is not at hand gives its reason.
    pub(super) fn of(body: Body<'a>) -> Result<Self, String> {
        Ok(match body {
            Body::Memory(bytes) => Self::One(Part::Slice(bytes)),
            Body::File(file) => {
                let len = file.len();
                Self::One(whole_file(&file).map(|file| Part::File { file, start: 0, len })?)
            }
            Body::Lost { reason, len, .. } => {
                return Err(format!("the message of {len} bytes could not be held: {reason}"));
            }
            Body::TooLarge { len } => {
                return Err(format!("the message of {len} bytes is over --max-message-bytes"));
            }
        })
    }

    /// The line of a message for the client. MCP messages are UTF-8 (specification 2025-11-25, "Transports"), and a
    /// client may break off at bytes that are not: in what is held in memory they become U+FFFD.
    pub(super) fn for_client(body: Body<'a>) -> Result<Self, String> {
        match body {
            Body::Memory(bytes) => Ok(Self::One(utf8(bytes))),
            other => Self::of(other),
        }
    }

    /// The line of a message that may go in other words.
    pub(super) fn changed(body: Body<'a>, changed: Option<Vec<u8>>) -> Result<Self, String> {
        changed.map_or_else(|| Self::of(body), |bytes| Ok(Self::One(Part::Bytes(bytes))))
    }

    /// The line goes to the batch whole.
    pub(super) fn is_small(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::One(Part::Slice(bytes)) => bytes.len() < CHUNK / 4,
            Self::One(_) | Self::Many(_) => false,
        }
    }

    /// Writes the line and its end. Small pieces go to `batch`, which is written first when a large one comes.
    /// `flatten`: raw line breaks between the tokens of the message become spaces.
    pub(super) fn write(self, batch: &mut Vec<u8>, flatten: bool, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Nothing => return Ok(()),
            Self::One(part) => part.write(batch, flatten, out)?,
            Self::Many(parts) => {
                for part in parts {
                    part.write(batch, flatten, out)?;
                }
            }
        }
        batch.push(b'\n');
        Ok(())
    }
}

/// The bytes of one member of a batch.
pub(super) fn slice<'a>(bytes: &'a [u8], member: &Envelope) -> &'a [u8] {
    let span = member.span();
    let start = usize::try_from(span.start).unwrap_or(usize::MAX);
    let end = usize::try_from(span.end).unwrap_or(usize::MAX);
    bytes.get(start..end).unwrap_or_default()
}

/// These bytes, as UTF-8.
pub(crate) fn utf8(bytes: &[u8]) -> Part<'_> {
    if std::str::from_utf8(bytes).is_ok() {
        return Part::Slice(bytes);
    }
    let mut changed = String::from_utf8_lossy(bytes).into_owned().into_bytes();
    flatten_in_place(&mut changed);
    Part::Bytes(changed)
}

impl Part<'_> {
    fn write(self, batch: &mut Vec<u8>, flatten: bool, out: &mut impl Write) -> io::Result<()> {
        match self {
            Part::Slice(bytes) => put(bytes, batch, flatten, out),
            Part::Bytes(bytes) => put(&bytes, batch, false, out),
            Part::File { file, start, len } => {
                flush(batch, out)?;
                let mut buffer = vec![0; CHUNK];
                let mut at = start;
                let end = start + len;
                while at < end {
                    let want = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
                    let read = read_at(&file, buffer.get_mut(..want).unwrap_or_default(), at)?;
                    if read == 0 {
                        return Err(io::Error::new(
                            io::ErrorKind::UnexpectedEof,
                            "a spooled message was cut short",
                        ));
                    }
                    let piece = buffer.get_mut(..read).unwrap_or_default();
                    if flatten {
                        flatten_in_place(piece);
                    }
                    out.write_all(piece)?;
                    at += read as u64;
                }
                Ok(())
            }
        }
    }
}

/// Writes what has gathered.
pub(super) fn flush(batch: &mut Vec<u8>, out: &mut impl Write) -> io::Result<()> {
    if !batch.is_empty() {
        out.write_all(batch)?;
        batch.clear();
        batch.shrink_to(CHUNK);
    }
    Ok(())
}

fn put(bytes: &[u8], batch: &mut Vec<u8>, flatten: bool, out: &mut impl Write) -> io::Result<()> {
    if flatten && memchr::memchr2(b'\n', b'\r', bytes).is_some() {
        let mut flat = bytes.to_vec();
        flatten_in_place(&mut flat);
        batch.extend_from_slice(&flat);
        return Ok(());
    }
    if bytes.len() < CHUNK / 4 {
        batch.extend_from_slice(bytes);
        return Ok(());
    }
    flush(batch, out)?;
    out.write_all(bytes)
}

pub(crate) fn flatten_in_place(bytes: &mut [u8]) {
    // Nearly all messages have none.
    let first = memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len());
    for byte in bytes.iter_mut().skip(first) {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

pub(super) fn whole_file(file: &SpoolFile) -> Result<Arc<File>, String> {
    file.open().map(Arc::new).map_err(|error: GuardError| error.to_string())
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}
