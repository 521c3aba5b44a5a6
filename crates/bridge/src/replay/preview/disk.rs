//! Owns the reading of local files for previews: bounded, and of regular files only.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::PreviewFiles;

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl PreviewFiles for Disk {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn read(&self, resolved: &Path, limit: usize) -> io::Result<(Vec<u8>, u64)> {
        // Asked before it is opened: to open a pipe is to wait for its other end.
        regular(&fs::symlink_metadata(resolved)?)?;
        let file = File::open(resolved)?;
        let metadata = file.metadata()?;
        regular(&metadata)?;
        if fs::canonicalize(resolved)? != resolved || !is_same(&metadata, &fs::symlink_metadata(resolved)?) {
            return Err(io::Error::other("the file was replaced while it was opened"));
        }
        let mut bytes = Vec::new();
        file.take(u64::try_from(limit).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
        Ok((bytes, metadata.len()))
    }
}

fn regular(metadata: &fs::Metadata) -> io::Result<()> {
    if metadata.is_file() { Ok(()) } else { Err(io::Error::other("not a regular file")) }
}

#[cfg(unix)]
fn is_same(opened: &fs::Metadata, named: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (opened.dev(), opened.ino()) == (named.dev(), named.ino())
}

#[cfg(not(unix))]
fn is_same(opened: &fs::Metadata, named: &fs::Metadata) -> bool {
    (opened.len(), opened.created().ok()) == (named.len(), named.created().ok())
}
