//! Owns reading a saved or held message at any place, without holding more than a chunk. Does not interpret it.

use std::fs::File;
use std::io;
use std::ops::Range;

/// Bytes that a pass over a message reads at once.
pub(crate) const CHUNK: usize = 256 << 10;

/// Where the bytes of a message are.
#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    Memory(&'a [u8]),
    File(&'a File),
}

/// A message, or a part of one, that can be read more than once. Offsets count from its own start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    place: Place<'a>,
    start: u64,
    len: u64,
}

impl<'a> Source<'a> {
    pub(crate) fn memory(bytes: &'a [u8]) -> Self {
        Self { place: Place::Memory(bytes), start: 0, len: bytes.len() as u64 }
    }

    pub(crate) fn file(file: &'a File, len: u64) -> Self {
        Self { place: Place::File(file), start: 0, len }
    }

    /// The part with these offsets, cut to what there is.
    pub(crate) fn part(self, range: Range<u64>) -> Self {
        let from = range.start.min(self.len);
        let to = range.end.clamp(from, self.len);
        Self { place: self.place, start: self.start + from, len: to - from }
    }

    pub(crate) fn len(self) -> u64 {
        self.len
    }

    /// Hands every byte in order to `take`, in chunks; stops early when it says `false`.
    pub(crate) fn each(self, mut take: impl FnMut(&[u8]) -> io::Result<bool>) -> io::Result<()> {
        match self.place {
            Place::Memory(bytes) => {
                for chunk in slice(bytes, self.start, self.len).chunks(CHUNK) {
                    if !take(chunk)? {
                        break;
                    }
                }
            }
            Place::File(file) => {
                let mut buffer = vec![0; CHUNK.min(usize::try_from(self.len).unwrap_or(CHUNK)).max(1)];
                let mut at = 0;
                while at < self.len {
                    let wanted = usize::try_from(self.len - at).unwrap_or(CHUNK).min(buffer.len());
                    let piece = buffer.get_mut(..wanted).unwrap_or_default();
                    let read = read_at(file, piece, self.start + at)?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    at += read as u64;
                    if !take(buffer.get(..read).unwrap_or_default())? {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The bytes of a part, which the caller knows to be small.
    pub(crate) fn bytes(self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let part = self.part(range);
        let mut out = Vec::with_capacity(usize::try_from(part.len).unwrap_or(0));
        part.each(|chunk| {
            out.extend_from_slice(chunk);
            Ok(true)
        })?;
        Ok(out)
    }
}

fn slice(bytes: &[u8], start: u64, len: u64) -> &[u8] {
    let from = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
    let to = usize::try_from(start + len).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(from..to).unwrap_or_default()
}

#[cfg(unix)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(windows)]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, at)
}
