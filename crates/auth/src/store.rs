//! Owns the tokens that outlive a process and are shared by all of a user's: one sealed file for each (issuer, resource,
//! client id, account), changed under a lock across processes and never by one who knows less than what is there.

mod entry;
mod key;
mod lock;
mod named;
mod place;
mod seal;

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;
use zeroize::Zeroizing;

pub(crate) use entry::{ClientRecord, Endpoints, Entry, EntryId, Origin, resource_part};
pub(crate) use lock::Lock;

use crate::error::AuthError;
use crate::settings::KeyringUse;
use seal::Sealer;

/// Room that is made for an entry before the tokens which it is to hold are asked for: a refresh token is good once.
const ROOM: usize = 64 << 10;
const EXTENSION: &str = "sealed";

/// The store of a directory. Cheap to make: nothing is read or written before something is asked for.
#[derive(Debug)]
pub(crate) struct Store {
    directory: PathBuf,
    sealer: Sealer,
}

/// A file, and what it holds.
pub(crate) type Read = (PathBuf, Result<Entry, AuthError>);

/// What became of a change.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is kept now.
    Kept,
    /// Somebody else has kept something newer, which stays.
    Newer(Option<Box<Entry>>),
}

impl Store {
    pub(crate) fn new(directory: PathBuf, keyring: KeyringUse) -> Self {
        Self { sealer: Sealer::new(directory.clone(), keyring), directory }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What is kept for a resource, the newest first: of one client where it is named, and of one account.
    pub(crate) fn find(
        &self,
        resource: &str,
        client: Option<&str>,
        account: &str,
    ) -> Result<Vec<Entry>, AuthError> {
        let begin = resource_part(resource);
        let (mut found, mut failed) = (Vec::new(), None);
        for path in self.files()? {
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin)) {
                continue;
            }
            match self.read_file(&path) {
                Ok(Some(entry)) => found.push(entry),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        found.retain(|entry| {
            entry.asked == resource
                && entry.account == account
                && client.is_none_or(|id| id == entry.client.id)
        });
        found.sort_by_key(|entry| std::cmp::Reverse((entry.tokens.is_some(), entry.changed_at)));
        // One that cannot be read may be the one that was wanted: that is said, and not that there is none.
        match failed {
            Some(error) if found.is_empty() => Err(error),
            _ => Ok(found),
        }
    }

    /// Everything, with what cannot be read.
    pub(crate) fn all(&self) -> Result<Vec<Read>, AuthError> {
        let mut all = Vec::new();
        for path in self.files()? {
            match self.read_file(&path) {
                Ok(Some(entry)) => all.push((path, Ok(entry))),
                Ok(None) => {}
                Err(error) => all.push((path, Err(error))),
            }
        }
        Ok(all)
    }

    pub(crate) fn read(&self, id: &EntryId) -> Result<Option<Entry>, AuthError> {
        self.read_file(&self.path(id))
    }

    /// What changes when somebody signs in, out, or refreshes: the files' moments and sizes.
    pub(crate) fn stamp(&self, resource: &str) -> Vec<(PathBuf, u64, Option<std::time::SystemTime>)> {
        let begin = resource_part(resource);
        let mut stamps: Vec<_> = self
            .files()
            .unwrap_or_default()
            .into_iter()
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin)))
            .filter_map(|path| {
                let found = fs::metadata(&path).ok()?;
                Some((path, found.len(), found.modified().ok()))
            })
            .collect();
        stamps.sort();
        stamps
    }

    /// The lock for changes of one entry, waited for at most so long.
    pub(crate) async fn lock(&self, id: &EntryId, most: Duration) -> Result<Lock, AuthError> {
        self.lock_named(&format!("{id}.lock"), most).await
    }

    async fn lock_named(&self, name: &str, most: Duration) -> Result<Lock, AuthError> {
        place::make(&self.directory)?;
        Lock::acquire(self.directory.join(name), most).await
    }

    pub(crate) fn try_lock_named(&self, name: &str) -> Result<Option<Lock>, AuthError> {
        place::make(&self.directory)?;
        Lock::attempt(&self.directory.join(name))
    }

    /// Makes room for a change, so that a directory that cannot be written, or a full disk, is known before a refresh
    /// token is used up.
    pub(crate) fn prepare(&self, id: &EntryId, _held: &Lock) -> Result<Prepared<'_>, AuthError> {
        place::make(&self.directory)?;
        self.sealer.ready()?;
        let path = self.path(id);
        let failed = |error: std::io::Error| AuthError::store(&path, format!("cannot be written: {error}"));
        let mut file = NamedTempFile::new_in(&self.directory).map_err(failed)?;
        file.write_all(&vec![0; ROOM]).and_then(|()| file.flush()).map_err(failed)?;
        Ok(Prepared { store: self, id: id.clone(), path, file })
    }

    /// Forgets an entry, where it is still the one of that generation.
    pub(crate) fn remove(&self, id: &EntryId, generation: u64, _held: &Lock) -> Result<bool, AuthError> {
        let path = self.path(id);
        match self.read_file(&path) {
            Ok(None) => return Ok(false),
            Ok(Some(entry)) if entry.generation != generation => return Ok(false),
            Ok(Some(_)) => {}
            Err(error) => return Err(error),
        }
        fs::remove_file(&path)
            .map_err(|error| AuthError::store(&path, format!("cannot be removed: {error}")))?;
        Ok(true)
    }

    /// Takes a file out of the way that cannot be read, and keeps it beside.
    pub(crate) fn set_aside(&self, id: &EntryId, _held: &Lock) -> Result<(), AuthError> {
        let path = self.path(id);
        let aside = path.with_extension("damaged");
        fs::rename(&path, &aside)
            .map_err(|error| AuthError::store(&path, format!("cannot be moved: {error}")))?;
        tracing::warn!(path = %aside.display(), "a sign-in that could not be read was set aside");
        Ok(())
    }

    fn path(&self, id: &EntryId) -> PathBuf {
        self.directory.join(format!("{id}.{EXTENSION}"))
    }

    fn files(&self) -> Result<Vec<PathBuf>, AuthError> {
        let failed =
            |error: std::io::Error| AuthError::store(&self.directory, format!("cannot be read: {error}"));
        let listed = match fs::read_dir(&self.directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut files = Vec::new();
        for file in listed {
            let path = file.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                files.push(path);
            }
        }
        files.sort();
        Ok(files)
    }

    fn read_file(&self, path: &Path) -> Result<Option<Entry>, AuthError> {
        let sealed = match place::read(path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(AuthError::store(path, format!("cannot be read: {error}"))),
        };
        let plain = self.sealer.open(path, &sealed)?;
        let entry = Entry::read(&plain).map_err(|reason| AuthError::store(path, damaged(&reason)))?;
        if path != self.path(&entry.id()) {
            return Err(AuthError::store(path, damaged("it is another's")));
        }
        Ok(Some(entry))
    }
}

pub(crate) fn damaged(reason: &str) -> String {
    format!("is damaged ({reason}): sign in again, or remove it")
}

/// Room for one change.
#[derive(Debug)]
pub(crate) struct Prepared<'s> {
    store: &'s Store,
    id: EntryId,
    path: PathBuf,
    file: NamedTempFile,
}

impl Prepared<'_> {
    /// Keeps an entry in place of the one of generation `over` (0: of none).
    pub(crate) fn keep(mut self, entry: &mut Entry, over: u64) -> Result<Written, AuthError> {
        debug_assert_eq!(entry.id(), self.id);
        let there = self.store.read_file(&self.path)?;
        if there.as_ref().map_or(0, |there| there.generation) != over {
            return Ok(Written::Newer(there.map(Box::new)));
        }
        entry.generation = over + 1;
        entry.changed_at = crate::token::now();
        let plain: Zeroizing<Vec<u8>> = entry.written();
        let sealed = self.store.sealer.seal(&self.path, &plain)?;
        let failed =
            |error: &std::io::Error| AuthError::store(&self.path, format!("cannot be written: {error}"));
        let write = |file: &mut File| {
            file.rewind()?;
            file.write_all(&sealed)?;
            file.set_len(sealed.len() as u64)?;
            file.sync_all()
        };
        write(self.file.as_file_mut()).map_err(|error| failed(&error))?;
        self.file.persist(&self.path).map_err(|error| failed(&error.error))?;
        Ok(Written::Kept)
    }
}
