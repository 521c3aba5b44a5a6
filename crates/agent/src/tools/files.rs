//! Owns what the model has seen of files: the digest of each at the time, so that no change of somebody else's is written
//! over. It opens nothing.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

/// Files that are remembered; the one that was seen longest ago goes first.
const MOST_FILES: usize = 10_000;

/// What was seen of each file.
#[derive(Debug, Default)]
pub(crate) struct ReadFiles {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    files: HashMap<PathBuf, (u64, [u8; 32])>,
    clock: u64,
}

/// How a file stands to what was seen of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It was never read.
    Unread,
    /// It is another one now.
    Changed,
    /// It is as it was read.
    Same,
}

impl ReadFiles {
    /// The model has seen the whole or a part of this content.
    pub(crate) fn remember(&self, real: &Path, content: &[u8]) {
        self.remember_digest(real, Sha256::digest(content).into());
    }

    /// The same for a content that went through the hash in pieces.
    pub(crate) fn remember_digest(&self, real: &Path, digest: [u8; 32]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clock += 1;
        let clock = seen.clock;
        seen.files.insert(real.to_owned(), (clock, digest));
        if seen.files.len() > MOST_FILES {
            let oldest = seen.files.iter().min_by_key(|(_, (clock, _))| *clock);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                seen.files.remove(&oldest);
            }
        }
    }

    /// The file is gone.
    pub(crate) fn forget(&self, real: &Path) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).files.remove(real);
    }

    /// How this content stands to what was seen.
    pub(crate) fn standing(&self, real: &Path, content: &[u8]) -> Standing {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.files.get(real) {
            None => Standing::Unread,
            Some((_, digest)) if *digest == <[u8; 32]>::from(Sha256::digest(content)) => Standing::Same,
            Some(_) => Standing::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_unread_then_the_same_until_it_changes() {
        let files = ReadFiles::default();
        let path = Path::new("/a");
        assert_eq!(files.standing(path, b"1"), Standing::Unread);
        files.remember(path, b"1");
        assert_eq!(files.standing(path, b"1"), Standing::Same);
        assert_eq!(files.standing(path, b"2"), Standing::Changed);
        files.forget(path);
        assert_eq!(files.standing(path, b"1"), Standing::Unread);
    }

    #[test]
    fn the_memory_is_bounded() {
        let files = ReadFiles::default();
        for number in 0..=MOST_FILES {
            files.remember_digest(Path::new(&number.to_string()), [0; 32]);
        }
        assert_eq!(files.seen.lock().unwrap().files.len(), MOST_FILES);
        assert_eq!(files.standing(Path::new("0"), b""), Standing::Unread);
    }
}
