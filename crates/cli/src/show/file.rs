//! Owns the files that pictures, sound and binary resources are saved to when a terminal cannot show them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Attempts at a name that nothing has yet.
const ATTEMPTS: u32 = 16;

/// Where such files go, and what their names begin with.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    directory: PathBuf,
    stem: String,
}

impl Shelf {
    /// Files in this directory, which is made when needed; `parts` are names from outside.
    pub(crate) fn new(directory: PathBuf, parts: &[&str]) -> Self {
        let word = |text: &&str| {
            let mut word: String =
                text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
            word.truncate(40);
            word.trim_matches('-').to_owned()
        };
        let words: Vec<String> = parts.iter().map(word).filter(|word| !word.is_empty()).collect();
        let stem = if words.is_empty() { "toolway".to_owned() } else { words.join("-") };
        Self { directory, stem }
    }

    /// Saves the bytes under a name of their own, for this user only.
    pub(crate) fn save(&self, bytes: &[u8], mime: &str) -> io::Result<PathBuf> {
        private_directory(&self.directory)?;
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..ATTEMPTS {
            let mut random = [0; 4];
            getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
            let number = u32::from_be_bytes(random);
            let path = self.directory.join(format!("{}-{number:08x}.{}", self.stem, extension(mime, bytes)));
            match private_file(&path).and_then(|mut file| file.write_all(bytes)) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }
}

fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// By what the bytes are, then by what the server says they are. Never one that a system would run.
fn extension(mime: &str, bytes: &[u8]) -> &'static str {
    const BEGINNINGS: [(&[u8], &str); 8] = [
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\xff\xd8\xff", "jpg"),
        (b"GIF8", "gif"),
        (b"%PDF-", "pdf"),
        (b"fLaC", "flac"),
        (b"OggS", "ogg"),
        (b"ID3", "mp3"),
        (b"PK\x03\x04", "zip"),
    ];
    if let Some((_, found)) = BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning)) {
        return found;
    }
    match mime.split(';').next().unwrap_or_default().trim() {
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "image/avif" => "avif",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/mpeg" => "mp3",
        "audio/mp4" | "audio/aac" => "m4a",
        "application/json" => "json",
        "text/csv" => "csv",
        mime if mime.starts_with("text/") => "txt",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tame_and_bytes_are_whole() {
        let directory = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(directory.path().join("new/media"), &["../etc", "a/b c\u{1b}"]);
        let (one, other) =
            (shelf.save(b"\x89PNG\r\n\x1a\n1", "text/html").unwrap(), shelf.save(b"x", "audio/wav").unwrap());
        assert_eq!(fs::read(&one).unwrap(), b"\x89PNG\r\n\x1a\n1");
        let name = one.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("etc-a-b-c-"), "{one:?}");
        assert_eq!((one.extension(), other.extension()), (Some("png".as_ref()), Some("wav".as_ref())));
        assert_eq!(one.parent(), Some(&*directory.path().join("new/media")));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_them() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = Shelf::new(directory.path().join("media"), &[]).save(b"x", "").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}
