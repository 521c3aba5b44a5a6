//! Owns the tokens that outlive a process and are shared by all of a user's: one sealed file for each (issuer, resource,
//! client id, account), changed under a lock across processes and never by one who knows less than what is there.

mod entry;
mod key;
mod lock;
mod named;
mod place;
mod seal;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
/// How the names of files end that are to take the place of a sealed one.
const NEW: &str = ".new";

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
    /// It is kept now, as this.
    Kept(Box<Entry>),
    /// Somebody else has changed it, which stays.
    Overtaken,
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

    /// Something can be kept here: said before a person is bothered, or a token is used up that is good once.
    pub(crate) fn writable(&self) -> Result<(), AuthError> {
        place::make(&self.directory)?;
        self.sealer.ready()?;
        NamedTempFile::new_in(&self.directory).map(drop).map_err(|error| {
            AuthError::store(&self.directory, format!("cannot be written: {error}: no sign-in could be kept"))
        })
    }

    /// Makes room for a change, so that a directory that cannot be written, or a full disk, is known before a refresh
    /// token is used up. The entry's lock must be held.
    pub(crate) fn prepare(self: &Arc<Self>, id: &EntryId) -> Result<Prepared, AuthError> {
        place::make(&self.directory)?;
        self.sealer.ready()?;
        let path = self.path(id);
        let failed = |error: std::io::Error| AuthError::store(&path, format!("cannot be written: {error}"));
        // Who holds the lock is the only one to make these: others are of a process that was killed.
        let begin = format!("{id}.");
        for left in fs::read_dir(&self.directory).map_err(failed)?.flatten() {
            let name = left.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&begin) && name.ends_with(NEW) {
                fs::remove_file(left.path()).ok();
            }
        }
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(&begin).suffix(NEW).tempfile_in(&self.directory).map_err(failed)?;
        file.write_all(&vec![0; ROOM]).and_then(|()| file.flush()).map_err(failed)?;
        Ok(Prepared { store: Arc::clone(self), path, file })
    }

    /// Forgets an entry, where it is still the one of that generation. Its lock must be held.
    pub(crate) fn remove(&self, id: &EntryId, generation: u64) -> Result<bool, AuthError> {
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

    /// Takes a file out of the way that cannot be read, and keeps it beside. The entry's lock must be held.
    pub(crate) fn set_aside(&self, id: &EntryId) -> Result<(), AuthError> {
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
pub(crate) struct Prepared {
    store: Arc<Store>,
    path: PathBuf,
    file: NamedTempFile,
}

/// What a change takes the place of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    /// The entry of this generation; 0: none.
    Generation(u64),
    /// Whatever is there: a person has signed in.
    Anything,
}

impl Prepared {
    /// Keeps an entry in the place of another.
    pub(crate) fn keep(mut self, mut entry: Entry, over: Over) -> Result<Written, AuthError> {
        debug_assert_eq!(self.store.path(&entry.id()), self.path);
        let there = self.store.read_file(&self.path)?;
        let generation = there.as_ref().map_or(0, |there| there.generation);
        if matches!(over, Over::Generation(known) if known != generation) {
            return Ok(Written::Overtaken);
        }
        entry.generation = generation + 1;
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
        place::settle(&self.store.directory);
        Ok(Written::Kept(Box::new(entry)))
    }
}
