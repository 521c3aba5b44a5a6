//! Owns the files into which long outputs go: private, of a bounded number, and gone with the agent.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Files that are kept; the oldest goes first.
const MOST: usize = 24;

/// The files of one agent.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
    files: Mutex<VecDeque<PathBuf>>,
}

impl Outputs {
    /// Below this folder, in one of its own that is made when it is needed.
    pub(crate) fn new(temp: &Path) -> Self {
        let folder = temp.join(format!("toolway-output-{}", uuid::Uuid::new_v4().simple()));
        Self { folder, files: Mutex::default() }
    }

    /// A new file.
    pub(crate) fn file(&self) -> io::Result<(File, PathBuf)> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.folder)?;
        let made = tempfile::Builder::new().prefix("output-").suffix(".txt").tempfile_in(&self.folder)?;
        let (file, path) = made.keep().map_err(|error| error.error)?;
        files.push_back(path.clone());
        if files.len() > MOST
            && let Some(oldest) = files.pop_front()
        {
            // Somebody may have removed it already.
            fs::remove_file(oldest).ok();
        }
        Ok((file, path))
    }
}

impl Drop for Outputs {
    fn drop(&mut self) {
        if !self.files.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            // What is left is in the folder for temporary files.
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_bounded_in_number_and_go_with_the_agent() {
        let temp = tempfile::tempdir().unwrap();
        let outputs = Outputs::new(temp.path());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
        let paths: Vec<PathBuf> = (0..=MOST).map(|_| outputs.file().unwrap().1).collect();
        assert!(!paths.first().unwrap().exists());
        assert!(paths.last().unwrap().exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&outputs.folder), mode(paths.last().unwrap())), (0o700, 0o600));
        }
        drop(outputs);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    }
}
