//! Owns the index file of a directory: one JSON object a line, appended under a lock, read with patience. Several
//! processes share it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::GuardError;
use crate::directory::{Directory, private_file, private_options};
use crate::name::is_plain;

const INDEX: &str = "index.jsonl";
const LOCK: &str = "index.lock";

/// A file beside the saved message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// Its name in the directory.
    pub file: String,
    /// `text`, `pretty`, `image`, `audio` or `binary`.
    #[serde(default)]
    pub kind: String,
    /// Its size in bytes.
    #[serde(default)]
    pub bytes: u64,
    /// Its lines, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
}

/// One saved result, as the index has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedEntry {
    /// The id that finds it.
    pub id: String,
    /// When it was saved, RFC 3339.
    pub at: String,
    /// When it was saved, in microseconds since 1970.
    pub at_us: i64,
    /// The upstream.
    pub server: String,
    /// Whose result it is.
    pub session: String,
    /// The request's method; `notifications/message` for a log message.
    pub method: String,
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The resource, or the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// The file with the message.
    pub file: String,
    /// The files beside it.
    pub files: Vec<SavedFile>,
    /// Bytes of the message.
    pub bytes: u64,
    /// Characters of the message.
    pub chars: u64,
    /// Lines of the text view.
    pub lines: u64,
    /// SHA-256 of the file with the message, hexadecimal.
    pub sha256: String,
    /// Secrets were replaced in it.
    pub redacted: bool,
    /// `result.isError`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Where `structuredContent` stands in the message: first byte, and byte after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<(u64, u64)>,
    /// The text view is one JSON value.
    pub json_text: bool,
}

impl SavedEntry {
    /// Bytes of all its files.
    pub fn disk_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum::<u64>() + self.bytes
    }

    /// A file beside the message by its kind.
    pub fn file_of(&self, kind: &str) -> Option<&SavedFile> {
        self.files.iter().find(|file| file.kind == kind)
    }

    /// Whether it can only name files of its directory.
    fn is_sound(&self) -> bool {
        !self.id.is_empty() && is_plain(&self.file) && self.files.iter().all(|file| is_plain(&file.file))
    }
}

/// Appends one entry.
pub(super) fn append(directory: &Directory, entry: &SavedEntry) -> Result<(), GuardError> {
    directory.ready()?;
    let path = directory.path().join(INDEX);
    let failed = |error| GuardError::io("write", &path, error);
    let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    let _lock = Lock::take(directory.path()).map_err(failed)?;
    let mut file = open_or_make(&path, |options| options.read(true).append(true)).map_err(failed)?;
    // A line that was torn by a crash is closed first, so that only that line is lost.
    if ends_torn(&mut file).map_err(failed)? {
        line.insert(0, b'\n');
    }
    file.write_all(&line).map_err(failed)
}

fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != [b'\n'])
}

/// Every entry that can be understood, in the order of the file. No directory or no index: none.
pub(super) fn read(directory: &Path) -> Result<Vec<SavedEntry>, GuardError> {
    let path = directory.join(INDEX);
    Ok(lines(&path)?.iter().filter_map(|line| understood(line)).collect())
}

fn understood(line: &[u8]) -> Option<SavedEntry> {
    serde_json::from_slice::<SavedEntry>(line).ok().filter(SavedEntry::is_sound)
}

fn lines(path: &Path) -> Result<Vec<Vec<u8>>, GuardError> {
    let mut bytes = Vec::new();
    match open_plain(path, File::options().read(true)) {
        Ok(mut file) => file.read_to_end(&mut bytes).map_err(|error| GuardError::io("read", path, error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(GuardError::io("read", path, error)),
    };
    Ok(bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
}

/// Under the lock: `choose` says which entries go, `remove` removes their files, and the index is written anew
/// without them. Lines that are not understood stay.
pub(super) fn rewrite(
    directory: &Directory,
    choose: impl FnOnce(&[SavedEntry]) -> Vec<String>,
    mut remove: impl FnMut(&SavedEntry) -> bool,
) -> Result<Vec<SavedEntry>, GuardError> {
    let path = directory.path().join(INDEX);
    let failed = |error| GuardError::io("write", &path, error);
    let _lock = match Lock::take(directory.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let lines = lines(&path)?;
    let entries: Vec<Option<SavedEntry>> = lines.iter().map(|line| understood(line)).collect();
    let known: Vec<SavedEntry> = entries.iter().flatten().cloned().collect();
    let chosen = choose(&known);
    if chosen.is_empty() {
        return Ok(Vec::new());
    }
    let mut gone = Vec::new();
    let mut rest = Vec::new();
    for (line, entry) in lines.iter().zip(entries) {
        match entry {
            Some(entry) if chosen.contains(&entry.id) && remove(&entry) => gone.push(entry),
            _ => {
                rest.extend_from_slice(line);
                rest.push(b'\n');
            }
        }
    }
    let mut temporary = directory.temporary()?;
    temporary.file.write_all(&rest).map_err(failed)?;
    temporary.keep(INDEX)?;
    Ok(gone)
}

/// Held while the index is written; given up when dropped.
#[derive(Debug)]
struct Lock(#[expect(dead_code, reason = "the lock is held by the open file")] File);

impl Lock {
    fn take(directory: &Path) -> io::Result<Self> {
        let file = open_or_make(&directory.join(LOCK), |options| options.read(true).write(true))?;
        match file.lock() {
            Ok(()) => Ok(Self(file)),
            // A file system without locks: appends of one line are still whole in practice.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Self(file)),
            Err(error) => Err(error),
        }
    }
}

fn open_or_make(path: &Path, options: impl Fn(&mut OpenOptions) -> &mut OpenOptions) -> io::Result<File> {
    loop {
        match open_plain(path, options(&mut File::options())) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match options(&mut private_options()).open(path).and_then(private_file) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    other => return other,
                }
            }
            other => return other,
        }
    }
}

/// Opens a file of the directory; a symbolic link is an error.
pub(super) fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> SavedEntry {
        SavedEntry { id: id.into(), file: format!("{id}.json"), ..SavedEntry::default() }
    }

    fn ids(directory: &Path) -> Vec<String> {
        read(directory).unwrap().into_iter().map(|entry| entry.id).collect()
    }

    #[test]
    fn torn_and_foreign_lines_are_skipped_and_stay() {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::new(root.path().join("saved"));
        assert!(ids(directory.path()).is_empty());
        append(&directory, &entry("one")).unwrap();
        let path = directory.path().join(INDEX);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"# note\n{\"id\":\"evil\",\"file\":\"../../etc/passwd\"}\n{\"id\":\"torn").unwrap();
        append(&directory, &entry("two")).unwrap();
        assert_eq!(ids(directory.path()), ["one", "two"]);
        let gone = rewrite(&directory, |_| vec!["one".into(), "evil".into()], |_| true).unwrap();
        assert_eq!(gone, [entry("one")]);
        assert_eq!(ids(directory.path()), ["two"]);
        assert!(std::fs::read_to_string(&path).unwrap().contains("# note\n"));
    }

    #[test]
    fn many_writers_lose_no_line() {
        let root = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = root.path().to_path_buf();
                scope.spawn(move || {
                    let directory = Directory::new(path);
                    for n in 0..25 {
                        append(&directory, &entry(&format!("w{writer}-{n}"))).unwrap();
                        if n % 10 == 0 {
                            rewrite(&directory, |_| vec![format!("w{writer}-{n}")], |_| true).unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(ids(root.path()).len(), 4 * 22);
    }
}
