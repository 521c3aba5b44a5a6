//! Owns the saved results of a directory: finding, reading, searching, querying and removing them. Does not know
//! how they came about, nor who is asked for them.

mod index;
mod query;
mod range;
mod read;
mod retention;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use regex::bytes::Regex;

pub use index::{SavedEntry, SavedFile};
pub use range::Span;
pub use read::Found;
pub(crate) use read::{LinePiece, each_line};

use crate::GuardError;
use crate::config::StoreConfig;
use crate::directory::Directory;

/// A query holds its result as a tree; more bytes than this are refused.
pub const QUERY_MAX: u64 = 256 << 20;

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Purged {
    /// Results.
    pub count: usize,
    /// Bytes of all their files.
    pub bytes: u64,
}

/// The saved results of one directory. Cheap to clone; several processes may use one directory.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) directory: Arc<Directory>,
    config: Arc<StoreConfig>,
}

impl Store {
    /// Does no I/O; the directory is made when something is saved.
    pub fn new(config: StoreConfig) -> Self {
        Self { directory: Arc::new(Directory::new(config.dir.clone())), config: Arc::new(config) }
    }

    /// All saved results, the newest first.
    pub fn list(&self) -> Result<Vec<SavedEntry>, GuardError> {
        let mut entries = index::read(self.directory.path())?;
        entries.sort_by(|left, right| (right.at_us, &right.id).cmp(&(left.at_us, &left.id)));
        Ok(entries)
    }

    /// The result with this id, or the only one whose id begins so; `session` narrows to one session's.
    pub fn find(&self, id: &str, session: Option<&str>) -> Result<SavedEntry, GuardError> {
        let seen = |entry: &SavedEntry| session.is_none_or(|session| entry.session == session);
        let mut fitting: Vec<SavedEntry> = self.list()?;
        fitting.retain(|entry| seen(entry) && entry.id.starts_with(id) && !id.is_empty());
        if let Some(exact) = fitting.iter().position(|entry| entry.id == id) {
            return Ok(fitting.swap_remove(exact));
        }
        match fitting.len() {
            1 => Ok(fitting.swap_remove(0)),
            0 => Err(GuardError::NotFound(id.to_owned())),
            count => Err(GuardError::Ambiguous { prefix: id.to_owned(), count }),
        }
    }

    /// Where a file of the directory is.
    pub fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Bytes of the exact text.
    pub(crate) fn text_bytes(entry: &SavedEntry) -> u64 {
        entry.file_of("text").map_or(entry.bytes, |text| text.bytes)
    }

    /// Lines of the readable view, where they were counted.
    pub(crate) fn readable_lines(&self, entry: &SavedEntry) -> Option<u64> {
        let path = self.readable(entry);
        entry.files.iter().find(|file| self.path(&file.file) == path).and_then(|file| file.lines)
    }

    /// The file that lines are counted in: the text, or pretty JSON where the text is one line of JSON, or the
    /// message itself.
    pub fn readable(&self, entry: &SavedEntry) -> PathBuf {
        let text = entry.file_of("text");
        let pretty = entry.file_of("pretty");
        let chosen = match (text, pretty) {
            (Some(text), Some(pretty)) if entry.json_text && text.lines.is_some_and(|lines| lines <= 1) => {
                Some(pretty)
            }
            (Some(text), _) => Some(text),
            (None, pretty) => pretty,
        };
        self.path(chosen.map_or(&entry.file, |chosen| &chosen.file))
    }

    /// The file that bytes are counted in: the exact text, or the message itself.
    pub fn exact(&self, entry: &SavedEntry) -> PathBuf {
        self.path(entry.file_of("text").map_or(&entry.file, |text| &text.file))
    }

    /// Writes lines of the readable view with their line breaks; says how many lines there were in the range.
    pub fn lines(&self, entry: &SavedEntry, span: Span, out: &mut dyn io::Write) -> Result<u64, GuardError> {
        let path = self.readable(entry);
        let mut written = 0;
        self.each_line(entry, &mut |piece| {
            if span.last.is_some_and(|last| piece.number > last) {
                return Ok(false);
            }
            if piece.number >= span.first {
                out.write_all(piece.bytes)?;
                if piece.ends {
                    out.write_all(b"\n")?;
                    written += 1;
                }
            }
            Ok(true)
        })
        .map_err(|error| GuardError::io("read", &path, error))?;
        Ok(written)
    }

    /// Hands every line of the readable view to `take`.
    pub(crate) fn each_line(
        &self,
        entry: &SavedEntry,
        take: &mut dyn FnMut(LinePiece<'_>) -> io::Result<bool>,
    ) -> io::Result<()> {
        let file = index::open_plain(&self.readable(entry), File::options().read(true))?;
        each_line(file, take)
    }

    /// Bytes of the exact text, at most `most`; and how many it has in all.
    pub fn bytes(&self, entry: &SavedEntry, span: Span, most: u64) -> Result<(Vec<u8>, u64), GuardError> {
        let path = self.exact(entry);
        let mut file = open(&path)?;
        let failed = |error| GuardError::io("read", &path, error);
        let all = file.metadata().map_err(failed)?.len();
        let end = span.last.map_or(all, |last| last.saturating_add(1)).min(all);
        file.seek(SeekFrom::Start(span.first.min(all))).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(end.saturating_sub(span.first).min(most)).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes, all))
    }

    /// Hands every line of the readable view that fits a regular expression to `take`, with `context` lines around
    /// it, from line `from` on; `take` says whether to go on.
    pub fn search(
        &self,
        entry: &SavedEntry,
        pattern: &str,
        context: usize,
        from: u64,
        take: &mut dyn FnMut(Found) -> bool,
    ) -> Result<(), GuardError> {
        let pattern = Regex::new(pattern).map_err(|error| GuardError::Pattern(error.to_string()))?;
        let path = self.readable(entry);
        let file = open(&path)?;
        read::search(file, &pattern, context, from, take)
            .map_err(|error| GuardError::io("read", &path, error))
    }

    /// Runs a jq filter over the JSON that the result carries: its `structuredContent`, or its text where that is
    /// JSON, or the whole message. `take` gets each output as compact JSON and says whether to go on.
    pub fn query(
        &self,
        entry: &SavedEntry,
        filter: &str,
        take: &mut (dyn FnMut(&str) -> bool + Send),
    ) -> Result<(), GuardError> {
        query::query(self.json(entry, QUERY_MAX)?, filter, take)
    }

    /// The JSON that the result carries, see [`Store::query`]; refused when it has more than `most` bytes.
    pub(crate) fn json(&self, entry: &SavedEntry, most: u64) -> Result<Vec<u8>, GuardError> {
        let (path, range) = match (entry.structured, entry.file_of("text")) {
            (Some((start, end)), _) => (self.path(&entry.file), Some(start..end)),
            (None, Some(text)) if entry.json_text => (self.path(&text.file), None),
            _ => (self.path(&entry.file), None),
        };
        let file = open(&path)?;
        let failed = |error| GuardError::io("read", &path, error);
        let len = file.metadata().map_err(failed)?.len();
        let range = range.unwrap_or(0..len);
        let bytes = range.end.saturating_sub(range.start);
        if bytes > most {
            return Err(GuardError::TooLarge { bytes, limit: most, path });
        }
        crate::source::Source::file(&file, len).bytes(range).map_err(failed)
    }

    /// Removes results: those older than a time, or all. What is not in the index stays.
    pub fn purge(&self, older_than: Option<Duration>) -> Result<Purged, GuardError> {
        let now = now_us(SystemTime::now());
        self.remove(|entries| retention::older(entries, now, older_than))
    }

    /// Removes what is due by the settings, and what crashed processes left. Meant for a thread of its own, at
    /// start and after each save.
    pub fn tidy(&self, now: SystemTime) -> Result<Purged, GuardError> {
        self.directory.sweep(now);
        // Most often nothing is due, and then nothing is locked.
        let now = now_us(now);
        if retention::due(&index::read(self.directory.path())?, now, &self.config).is_empty() {
            return Ok(Purged::default());
        }
        self.remove(|entries| retention::due(entries, now, &self.config))
    }

    fn remove(&self, choose: impl FnOnce(&[SavedEntry]) -> Vec<String>) -> Result<Purged, GuardError> {
        let gone = index::rewrite(&self.directory, choose, |entry| {
            let views = entry.files.iter().map(|file| &file.file);
            // The message goes last: while it is there, its entry stays.
            views.chain([&entry.file]).fold(true, |removed, file| removed & removed_file(&self.path(file)))
        })?;
        Ok(Purged { count: gone.len(), bytes: gone.iter().map(SavedEntry::disk_bytes).sum() })
    }

    pub(crate) fn add(&self, entry: &SavedEntry) -> Result<(), GuardError> {
        index::append(&self.directory, entry)
    }
}

/// Opens a file of the store to read; a symbolic link is an error.
fn open(path: &Path) -> Result<File, GuardError> {
    index::open_plain(path, File::options().read(true)).map_err(|error| GuardError::io("read", path, error))
}

fn removed_file(path: &Path) -> bool {
    match fs::remove_file(path) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

pub(crate) fn now_us(now: SystemTime) -> i64 {
    now.duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .and_then(|age| i64::try_from(age.as_micros()).ok())
        .unwrap_or(0)
}
