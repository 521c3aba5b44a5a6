//! Owns what is remembered of servers between runs: their lists, so that there is a catalogue before they are up, and
//! the digests of approved tools. Files of the user alone, written whole or not at all; what cannot be read is as if
//! it were not there.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use toolway_wire::find::{self, Step};

use super::members::quoted;
use super::pins::{Pins, hex};
use crate::gateway::lists::{ListKind, RawLists};

/// The version of the format; other ones are ignored.
const VERSION: u64 = 1;
/// The largest file that is written or read.
const MAX_BYTES: u64 = 16 << 20;

/// A catalogue that was not written anew for so long is of a definition that is gone.
const KEPT_FOR: Duration = Duration::from_hours(90 * 24);
const ABANDONED_AFTER: Duration = Duration::from_hours(1);

/// What is remembered of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// Its name, for people who look into the directory.
    pub server: String,
    /// The protocol revision that it spoke.
    pub protocol: Option<String>,
    /// What it listed.
    pub lists: RawLists,
}

/// A directory with one file a server, by the digest of its definition. Every method blocks on the file system.
#[derive(Debug, Clone)]
pub struct CatalogueDisk {
    directory: PathBuf,
    swept: Arc<OnceLock<()>>,
}

impl CatalogueDisk {
    /// Looks at nothing yet; the directory is made by the first write.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory, swept: Arc::default() }
    }

    /// What is remembered of the server with that definition. `None`: nothing, or nothing that can be used (a warning
    /// says why).
    pub fn load(&self, digest: &str) -> Option<Kept> {
        let bytes = Bytes::from(self.read(&self.path("catalogue", digest))?);
        let kept = parse(&bytes, digest);
        if kept.is_none() {
            tracing::warn!(file = %self.path("catalogue", digest).display(), "ignoring a catalogue that is damaged or of another version");
        }
        kept
    }

    /// Remembers what a server listed.
    pub fn save(&self, digest: &str, kept: &Kept) -> io::Result<()> {
        self.write(&self.path("catalogue", digest), &written(digest, kept))?;
        if self.swept.set(()).is_ok() {
            self.sweep(SystemTime::now());
        }
        Ok(())
    }

    /// The approved tools of the server with that definition; none when there is nothing that can be used.
    pub fn load_pins(&self, digest: &str) -> Pins {
        let path = self.path("pins", digest);
        let Some(bytes) = self.read(&path) else { return Pins::default() };
        let pins = serde_json::from_slice::<Value>(&bytes).ok().and_then(|value| {
            let fits = value.get("version")? == VERSION && value.get("digest")? == digest;
            Pins::from_json(value.get("tools").filter(|_| fits)?)
        });
        pins.unwrap_or_else(|| {
            tracing::warn!(file = %path.display(), "ignoring approvals of tools that are damaged or of another version");
            Pins::default()
        })
    }

    /// Keeps the approved tools.
    pub fn save_pins(&self, digest: &str, pins: &Pins) -> io::Result<()> {
        let value = json!({"version": VERSION, "digest": digest, "tools": pins.to_json()});
        self.write(&self.path("pins", digest), value.to_string().as_bytes())
    }

    /// Removes what no definition has asked for in a long time, and what a writer left behind. Approvals stay.
    fn sweep(&self, now: SystemTime) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let most = if name.starts_with("catalogue-") && name.ends_with(".json") {
                KEPT_FOR
            } else if name.starts_with('.') && name.ends_with(".part") {
                ABANDONED_AFTER
            } else {
                continue;
            };
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            let age = written.ok().and_then(|written| now.duration_since(written).ok());
            if age.is_some_and(|age| age > most)
                && let Err(error) = fs::remove_file(entry.path())
            {
                tracing::debug!(%error, "cannot remove an old catalogue");
            }
        }
    }

    fn path(&self, what: &str, digest: &str) -> PathBuf {
        // Whatever the digest looks like, the name is a name.
        let hash = hex(Sha256::digest(digest).get(..16).unwrap_or_default());
        self.directory.join(format!("{what}-{hash}.json"))
    }

    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let read = || -> io::Result<Vec<u8>> {
            let file = File::open(path)?;
            if file.metadata()?.len() > MAX_BYTES {
                return Err(io::Error::other("too large"));
            }
            let mut bytes = Vec::new();
            file.take(MAX_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        match read() {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(file = %path.display(), directory = %self.directory.display(), %error, "cannot read what was remembered of a server");
                None
            }
        }
    }

    /// Under another name first, so that a reader never sees half of it.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(io::Error::other(format!("{} bytes are too many to be kept", bytes.len())));
        }
        make(&self.directory)?;
        let temporary = self.directory.join(format!(".{}.part", random()?));
        let written = private(&temporary).and_then(|mut file| file.write_all(bytes));
        let done = written.and_then(|()| fs::rename(&temporary, path));
        if done.is_err()
            && let Err(error) = fs::remove_file(&temporary)
        {
            tracing::debug!(%error, "cannot remove a temporary file");
        }
        done
    }
}

/// The lists are copied as they came, so that nothing is lost between runs.
fn written(digest: &str, kept: &Kept) -> Vec<u8> {
    let mut out = format!("{{\"version\":{VERSION},\"digest\":").into_bytes();
    out.extend_from_slice(&quoted(digest));
    out.extend_from_slice(b",\"server\":");
    out.extend_from_slice(&quoted(&kept.server));
    if let Some(protocol) = &kept.protocol {
        out.extend_from_slice(b",\"protocol\":");
        out.extend_from_slice(&quoted(protocol));
    }
    for kind in ListKind::ALL {
        out.extend_from_slice(format!(",\n\"{}\":[", kind.member()).as_bytes());
        for (index, item) in kept.lists.list(kind).iter().enumerate() {
            out.extend_from_slice(if index > 0 { b",\n" } else { b"\n" });
            out.extend_from_slice(item);
        }
        out.push(b']');
    }
    out.extend_from_slice(b",\n\"notes\":");
    out.extend_from_slice(Value::from(kept.lists.notes.clone()).to_string().as_bytes());
    out.extend_from_slice(b"}\n");
    out
}

/// Whole and of this version and definition, or nothing.
fn parse(bytes: &Bytes, digest: &str) -> Option<Kept> {
    // Definitions that a strict parser refuses are stored too; the lexer says whether all is there.
    let mut lexer = toolway_wire::lex::Lexer::new();
    lexer.feed(bytes, &mut Nothing).ok()?;
    lexer.finish(&mut Nothing).ok()?;
    let at = |name: &str| find::find(bytes, &[Step::Key(name)]);
    let text = |name: &str| find::string(bytes, at(name)?);
    if bytes.get(at("version")?) != Some(VERSION.to_string().as_bytes()) || text("digest")? != digest {
        return None;
    }
    let mut kept = Kept { server: text("server")?, protocol: text("protocol"), lists: RawLists::default() };
    for kind in ListKind::ALL {
        let list = at(kind.member()).filter(|list| bytes.get(list.start) == Some(&b'['))?;
        kept.lists.set(kind, find::elements(bytes, list).map(|item| bytes.slice(item)).collect());
    }
    let notes = find::elements(bytes, at("notes")?).filter_map(|note| find::string(bytes, note));
    kept.lists.notes = notes.collect();
    Some(kept)
}

struct Nothing;

impl toolway_wire::lex::Sink for Nothing {}

fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

fn make(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(directory)
}

fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn kept() -> Kept {
        let item = |text: &'static str| vec![Bytes::from_static(text.as_bytes())];
        Kept {
            server: "s \"1\"".to_owned(),
            protocol: Some("2025-11-25".to_owned()),
            lists: RawLists {
                tools: vec![
                    Bytes::from_static(b"{\"name\": \"a\",\n\"x\":1.50}"),
                    Bytes::from_static(b"{\"n\":NaN}"),
                ],
                prompts: item("{}"),
                resources: Vec::new(),
                templates: item("[]"),
                notes: vec!["paging was cut".to_owned()],
                ..RawLists::default()
            },
        }
    }

    #[test]
    fn what_was_saved_is_loaded_byte_for_byte() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CatalogueDisk::new(folder.path().join("a/b"));
        assert_eq!(disk.load("d"), None);
        disk.save("d", &Kept::default()).unwrap();
        disk.save("d", &kept()).unwrap();
        assert_eq!(disk.load("d"), Some(kept()));
        assert_eq!(disk.load("../e"), None);
        assert_eq!(fs::read_dir(folder.path().join("a/b")).unwrap().count(), 1, "no temporary file is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&folder.path().join("a/b")), 0o700);
            assert_eq!(mode(&disk.path("catalogue", "d")), 0o600);
        }
    }

    #[test]
    fn what_is_damaged_is_as_if_it_were_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CatalogueDisk::new(folder.path().to_owned());
        disk.save("d", &kept()).unwrap();
        let path = disk.path("catalogue", "d");
        let whole = fs::read(&path).unwrap();
        for end in 0..whole.len() - 2 {
            fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(disk.load("d"), None, "cut at {end}");
        }
        let text = String::from_utf8(whole).unwrap();
        for other in [
            text.replace("\"version\":1", "\"version\":2"),
            text.replace("\"digest\":\"d\"", "\"digest\":\"e\""),
            text.replace("\"tools\":", "\"fools\":"),
            "[]".to_owned(),
        ] {
            fs::write(&path, other).unwrap();
            assert_eq!(disk.load("d"), None);
        }
        fs::write(&path, vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1]).unwrap();
        assert_eq!(disk.load("d"), None);
    }

    #[test]
    fn too_much_is_refused_and_the_old_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CatalogueDisk::new(folder.path().to_owned());
        disk.save("d", &kept()).unwrap();
        let mut large = kept();
        large.lists.tools = vec![Bytes::from(vec![b'1'; 1 << 20]); 17];
        assert!(disk.save("d", &large).is_err());
        assert_eq!(disk.load("d"), Some(kept()));
    }

    #[test]
    fn what_is_old_goes_and_approvals_stay() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CatalogueDisk::new(folder.path().to_owned());
        disk.save("old", &kept()).unwrap();
        disk.save("new", &kept()).unwrap();
        disk.save_pins("old", &Pins::default()).unwrap();
        fs::write(folder.path().join(".x.part"), "").unwrap();
        fs::write(folder.path().join("mine.txt"), "").unwrap();
        let age = |path: &Path, age: Duration| {
            let file = OpenOptions::new().append(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        age(&disk.path("catalogue", "old"), KEPT_FOR * 2);
        age(&disk.path("pins", "old"), KEPT_FOR * 2);
        age(&folder.path().join(".x.part"), ABANDONED_AFTER * 2);
        age(&folder.path().join("mine.txt"), KEPT_FOR * 2);
        CatalogueDisk::new(folder.path().to_owned()).save("other", &kept()).unwrap();
        assert_eq!((disk.load("old"), disk.load("new")), (None, Some(kept())));
        assert!(disk.path("pins", "old").exists() && folder.path().join("mine.txt").exists());
        assert!(!folder.path().join(".x.part").exists());
    }

    #[test]
    fn approvals_are_kept_beside() {
        let folder = tempfile::tempdir().unwrap();
        let disk = CatalogueDisk::new(folder.path().to_owned());
        let mut pins = Pins::default();
        pins.approve(&BTreeMap::from([("a".to_owned(), [7; 32])]));
        assert!(disk.load_pins("d").is_empty());
        disk.save_pins("d", &pins).unwrap();
        assert_eq!(disk.load_pins("d"), pins);
        fs::write(disk.path("pins", "d"), "{}").unwrap();
        assert!(disk.load_pins("d").is_empty());
    }
}
