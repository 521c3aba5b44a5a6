//! Owns the look at local files ahead of the card that shows them, on a thread that may wait. What may be looked at is
//! decided by the rules of the preview, as ever.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::{PreviewFiles, allowed};

/// A disk that takes longer is not waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Of the files of one event, so many bytes at the most.
const BYTES: usize = super::IMAGE_BYTES + 1;

/// A file that a card would look at.
#[derive(Debug, Clone)]
pub struct Wish {
    pub(in crate::replay) files: Arc<dyn PreviewFiles>,
    pub(in crate::replay) cwd: PathBuf,
    pub(in crate::replay) path: String,
    pub(in crate::replay) limit: usize,
}

/// What was seen of files: all that a card made of it has.
#[derive(Debug, Default)]
pub struct Sight {
    places: Vec<(PathBuf, PathBuf)>,
    contents: Vec<(PathBuf, Vec<u8>, u64)>,
}

impl Sight {
    /// Looks at files on another thread. Of a disk that takes its time nothing is seen.
    pub async fn of(wishes: Vec<Wish>) -> Self {
        let looking = tokio::task::spawn_blocking(move || Self::look(&wishes));
        timeout(PATIENCE, looking).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    fn look(wishes: &[Wish]) -> Self {
        let mut seen = Self::default();
        let mut room = BYTES;
        for Wish { files, cwd, path, limit } in wishes {
            let Some(resolved) = allowed(&**files, cwd, path) else { continue };
            let Ok(root) = files.resolve(cwd) else { continue };
            let Ok((bytes, length)) = files.read(&resolved, room.min(*limit)) else { continue };
            room -= bytes.len().min(room);
            seen.places.extend([(cwd.clone(), root), (cwd.join(path), resolved.clone())]);
            seen.contents.push((resolved, bytes, length));
        }
        seen
    }
}

impl PreviewFiles for Sight {
    fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let found = self.places.iter().find(|(given, _)| given == path);
        found.map(|(_, resolved)| resolved.clone()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn read(&self, resolved: &Path, limit: usize) -> io::Result<(Vec<u8>, u64)> {
        let found = self.contents.iter().find(|(path, ..)| path == resolved);
        let (_, bytes, length) = found.ok_or(io::ErrorKind::NotFound)?;
        Ok((bytes.get(..limit.min(bytes.len())).unwrap_or_default().to_vec(), *length))
    }
}
