//! Owns the only look at files that the replay takes: the beginning of a file that the agent read without saying what is
//! in it, and images that it made. What may be looked at is decided here; the looking is done by [`PreviewFiles`].

mod ahead;
mod disk;
mod sensitive;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

pub use ahead::{Sight, Wish};
pub use disk::Disk;

use super::card::CardBlock;

/// The most that is read of a text.
pub(super) const TEXT_BYTES: usize = 64 << 10;
/// The largest image that is shown.
pub(super) const IMAGE_BYTES: usize = 25 << 20;

/// How the replay reads local files. Implemented by [`Disk`], and by tests; called by cards without reported content.
pub trait PreviewFiles: fmt::Debug + Send + Sync {
    /// The path with all links resolved.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;

    /// At most `limit` bytes from the beginning of a regular file whose path is resolved, and the file's length. It is an
    /// error if the path is no longer resolved, or is no regular file.
    fn read(&self, resolved: &Path, limit: usize) -> io::Result<(Vec<u8>, u64)>;
}

/// The beginning of a text file, and whether that is all of it; `None` if it must not or cannot be shown.
pub(super) fn text(files: &dyn PreviewFiles, cwd: &Path, path: &str) -> Option<(String, bool)> {
    let resolved = allowed(files, cwd, path)?;
    let (mut bytes, length) = files.read(&resolved, TEXT_BYTES).ok()?;
    bytes.truncate(TEXT_BYTES);
    if bytes.contains(&0) {
        return None;
    }
    let whole = bytes.len() as u64 == length;
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            // A character may be cut at the end of what was read; anything else is no text.
            let valid = error.utf8_error();
            if whole || valid.error_len().is_some() {
                return None;
            }
            let mut bytes = error.into_bytes();
            bytes.truncate(valid.valid_up_to());
            String::from_utf8(bytes).ok()?
        }
    };
    Some((text, whole))
}

/// An image, whole; `None` if it must not or cannot be shown.
pub(super) fn image(files: &dyn PreviewFiles, cwd: &Path, path: &str) -> Option<CardBlock> {
    let resolved = allowed(files, cwd, path)?;
    let (bytes, length) = files.read(&resolved, IMAGE_BYTES + 1).ok()?;
    if bytes.len() as u64 != length {
        return None;
    }
    image_block(&bytes)
}

/// An image as a block, if it is one and not too large.
pub(super) fn image_block(bytes: &[u8]) -> Option<CardBlock> {
    if bytes.len() > IMAGE_BYTES {
        return None;
    }
    Some(CardBlock::Image { mime_type: image_type(bytes)?, data: STANDARD.encode(bytes) })
}

/// The type that the first bytes say; a name says nothing.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xFF, 0xD8, 0xFF, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The resolved path, if it is inside the working directory and neither it nor the given path has a sensitive name.
fn allowed(files: &dyn PreviewFiles, cwd: &Path, path: &str) -> Option<PathBuf> {
    if path.is_empty() || path.contains('\0') {
        return None;
    }
    let given = cwd.join(path);
    // The names of the working directory itself are the user's choice.
    let inside = given.strip_prefix(cwd).unwrap_or(&given);
    if has_sensitive_part(inside) {
        return None;
    }
    let root = files.resolve(cwd).ok()?;
    let resolved = files.resolve(&given).ok()?;
    let inside = resolved.strip_prefix(&root).ok()?;
    (!inside.as_os_str().is_empty() && !has_sensitive_part(inside)).then_some(resolved)
}

fn has_sensitive_part(path: &Path) -> bool {
    path.components().any(|part| match part {
        Component::Normal(name) => name.to_str().is_none_or(sensitive::is_sensitive),
        _ => false,
    })
}
