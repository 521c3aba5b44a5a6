//! Owns reading a file whole within bounds and putting another in its place at once. It knows no tools and no models.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Bytes of a file that are read whole.
pub(crate) const MOST_BYTES: u64 = 20 << 20;

/// The content of a regular file. The error is a sentence for the model.
pub(crate) fn content(path: &Path, named: &str) -> Result<Vec<u8>, String> {
    // Asked before it is opened: opening a pipe waits for its other end.
    let about = fs::metadata(path).map_err(|error| unreadable(named, &error))?;
    regular(&about, named)?;
    if about.len() > MOST_BYTES {
        return Err(format!(
            "{named} has {} bytes, and at most {MOST_BYTES} are read: look into it with grep, or with shell (head, tail, sed).",
            about.len()
        ));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
    let file = File::open(path).map_err(|error| unreadable(named, &error))?;
    // It may grow meanwhile.
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(|error| unreadable(named, &error))?;
    Ok(bytes)
}

/// A folder, a pipe or a device is none.
pub(crate) fn regular(about: &Metadata, named: &str) -> Result<(), String> {
    if about.is_dir() {
        return Err(format!("{named} is a folder: look into it with ls or glob."));
    }
    if !about.is_file() {
        return Err(format!("{named} is no regular file."));
    }
    Ok(())
}

fn unreadable(named: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("There is no file {named}."),
        io::ErrorKind::PermissionDenied => format!("{named} may not be read by this user."),
        _ => format!("{named} cannot be read: {error}."),
    }
}

/// Puts this content in place of a file, or makes one: whole or not at all. The mode and, where possible, the owner stay.
/// The error is a fragment.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("it is in no folder"))?;
    let about = fs::metadata(path).ok();
    if about.as_ref().is_some_and(|about| about.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is read-only"));
    }
    let beside = folder.join(format!(".toolway-{}.tmp", uuid::Uuid::new_v4().simple()));
    // Not through `tempfile`: a new file gets the mode that the user's mask gives.
    let mut file = OpenOptions::new().write(true).create_new(true).open(&beside)?;
    let written =
        file.write_all(content).and_then(|()| keep(&file, about.as_ref())).and_then(|()| file.sync_all());
    drop(file);
    let replaced = written.and_then(|()| fs::rename(&beside, path));
    if replaced.is_err() {
        // Best effort: what failed is said, and this is not the reason.
        fs::remove_file(&beside).ok();
    }
    replaced
}

/// The new file gets what the old one had.
fn keep(file: &File, about: Option<&Metadata>) -> io::Result<()> {
    let Some(about) = about else { return Ok(()) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (about.uid(), about.gid()) {
            // Only an administrator can; others may write a file that is not theirs, and it becomes theirs.
            std::os::unix::fs::fchown(file, Some(about.uid()), Some(about.gid())).ok();
        }
    }
    file.set_permissions(about.permissions())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        replace(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(replace(&path, b"x").unwrap_err().to_string(), "it is read-only");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_no_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        assert!(content(folder.path(), "x").unwrap_err().contains("x is a folder"));
        assert_eq!(content(&folder.path().join("no"), "no").unwrap_err(), "There is no file no.");
        #[cfg(unix)]
        assert_eq!(content(Path::new("/dev/zero"), "z").unwrap_err(), "z is no regular file.");
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert!(content(&large, "large").unwrap_err().contains("at most"));
    }
}
