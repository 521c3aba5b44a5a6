//! Owns one file of lines: read on from where it was read to, added to, or written anew. Its first line says its layout
//! and which writing of the file it is. Whoever calls holds the store's lock.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::AgentError;
use crate::store::place::{damaged, fault, newer, private};

const LAYOUT: i64 = 1;
/// A file below this size is not worth writing anew.
const SMALL: u64 = 4 << 20;

/// A file of lines.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Which writing of the file was read; empty before the first.
    writing: String,
    /// Up to where whole lines were read.
    end: u64,
    /// How many lines these are.
    lines: u64,
}

#[derive(Serialize, Deserialize)]
struct Head {
    toolway: i64,
    writing: String,
}

impl Log {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, writing: String::new(), end: 0, lines: 0 }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn forget(&mut self) {
        *self = Self::new(std::mem::take(&mut self.path));
    }

    /// It was written anew since it was read, or went away.
    pub(super) fn is_replaced(&self) -> Result<bool, AgentError> {
        if self.writing.is_empty() {
            return Ok(false);
        }
        let Some(file) = self.open()? else { return Ok(true) };
        Ok(self.head(&mut BufReader::new(file))?.is_none_or(|(head, _)| head.writing != self.writing))
    }

    /// Reads on: every whole line, with its place. A last line that is not whole is left for the next writer to take away.
    pub(super) fn read(
        &mut self,
        mut line: impl FnMut(&str, u64) -> Result<(), serde_json::Error>,
    ) -> Result<(), AgentError> {
        let Some(file) = self.open()? else { return Ok(()) };
        let mut reader = BufReader::new(file);
        if self.writing.is_empty() {
            let Some((head, length)) = self.head(&mut reader)? else { return Ok(()) };
            (self.writing, self.end, self.lines) = (head.writing, length, 1);
        }
        reader.seek(SeekFrom::Start(self.end)).map_err(|error| fault(&self.path, &error))?;
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = reader.read_until(b'\n', &mut bytes).map_err(|error| fault(&self.path, &error))?;
            let Some(text) = bytes.strip_suffix(b"\n") else { return Ok(()) };
            let parsed = std::str::from_utf8(text).map_err(|error| error.to_string());
            if let Err(what) = parsed.and_then(|text| line(text, self.end).map_err(|error| error.to_string()))
            {
                // What a crash left of the last write.
                if reader.fill_buf().map_err(|error| fault(&self.path, &error))?.is_empty() {
                    return Ok(());
                }
                return Err(damaged(&self.path, &format!("line {}: {what}", self.lines + 1)));
            }
            self.end += read as u64;
            self.lines += 1;
        }
    }

    /// Adds lines: all of them or none. Gives where they begin.
    pub(super) fn append(&mut self, text: &str) -> Result<u64, AgentError> {
        if self.writing.is_empty() {
            self.rewrite("")?;
        }
        let path = &self.path;
        let written = private().open(path).and_then(|mut file| {
            // A torn line goes.
            file.set_len(self.end)?;
            file.seek(SeekFrom::Start(self.end))?;
            let written = file.write_all(text.as_bytes());
            if written.is_err() {
                file.set_len(self.end)?;
            }
            written
        });
        written.map_err(|error| fault(path, &error))?;
        let start = self.end;
        self.end += text.len() as u64;
        self.lines += text.matches('\n').count() as u64;
        Ok(start)
    }

    /// Much of it is no longer needed.
    pub(super) fn is_worth_rewriting(&self, live: usize) -> bool {
        self.end > SMALL && self.end > 2 * live as u64
    }

    /// Writes it anew, as one step. Gives where the lines begin.
    pub(super) fn rewrite(&mut self, text: &str) -> Result<u64, AgentError> {
        let head = Head { toolway: LAYOUT, writing: uuid::Uuid::new_v4().to_string() };
        let first = format!("{}\n", serde_json::to_string(&head).unwrap_or_default());
        let dir = self.path.parent().unwrap_or(Path::new("."));
        let written = tempfile::Builder::new().prefix(".lines").tempfile_in(dir).and_then(|mut file| {
            file.write_all(first.as_bytes())?;
            file.write_all(text.as_bytes())?;
            file.as_file().sync_data()?;
            file.persist(&self.path).map_err(|error| error.error)
        });
        written.map_err(|error| fault(&self.path, &error))?;
        let start = first.len() as u64;
        self.writing = head.writing;
        self.end = start + text.len() as u64;
        self.lines = 1 + text.matches('\n').count() as u64;
        Ok(start)
    }

    /// One line that was read or written.
    pub(super) fn line(&self, at: u64, length: usize) -> Result<String, AgentError> {
        let mut bytes = vec![0; length];
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut bytes)
        });
        read.map_err(|error| fault(&self.path, &error))?;
        String::from_utf8(bytes).map_err(|error| damaged(&self.path, &error.to_string()))
    }

    fn open(&self) -> Result<Option<File>, AgentError> {
        match File::open(&self.path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(&self.path, &error)),
        }
    }

    /// The first line and its length. `None`: there is none.
    fn head(&self, reader: &mut BufReader<File>) -> Result<Option<(Head, u64)>, AgentError> {
        let mut line = String::new();
        let read = reader.take(4096).read_line(&mut line).map_err(|error| fault(&self.path, &error))?;
        if read == 0 {
            return Ok(None);
        }
        let head: Head =
            serde_json::from_str(&line).map_err(|error| damaged(&self.path, &format!("line 1: {error}")))?;
        if head.toolway > LAYOUT {
            return Err(newer(&self.path, head.toolway, LAYOUT));
        }
        Ok(Some((head, read as u64)))
    }
}
