//! Owns where secrets under names are: in the platform's keyring where the store's key is, else sealed beside it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use tempfile::NamedTempFile;
use toolway_secret::Secret;

use super::{Store, damaged, place, resource_part};
use crate::error::AuthError;
use crate::keyring::{Platform, Unavailable};

impl Store {
    /// The secret of a name.
    pub(crate) fn named(&self, name: &str) -> Result<Option<Secret>, AuthError> {
        if let Some(keyring) = self.keyring(false)? {
            // Programs of the desktop keep secrets there too.
            if let Some(secret) = keyring.get(name).map_err(|error| self.unavailable(&error))? {
                return Ok(Some(secret.made_known()));
            }
        }
        let path = self.named_path(name);
        let sealed = match place::read(&path) {
            Ok(sealed) => sealed,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(AuthError::store(&path, format!("cannot be read: {error}"))),
        };
        let plain = self.sealer.open(&path, &sealed)?;
        let text =
            std::str::from_utf8(&plain).map_err(|_| AuthError::store(&path, damaged("it is no text")))?;
        Ok(Some(Secret::in_use(text)))
    }

    pub(crate) fn set_named(&self, name: &str, secret: &Secret) -> Result<(), AuthError> {
        if let Some(keyring) = self.keyring(true)? {
            return keyring.set(name, secret.expose()).map_err(|error| self.unavailable(&error));
        }
        let path = self.named_path(name);
        let sealed = self.sealer.seal(&path, secret.expose().as_bytes())?;
        let failed = |error: &std::io::Error| AuthError::store(&path, format!("cannot be written: {error}"));
        let mut file = NamedTempFile::new_in(self.directory()).map_err(|error| failed(&error))?;
        file.write_all(&sealed).map_err(|error| failed(&error))?;
        file.as_file().sync_all().map_err(|error| failed(&error))?;
        file.persist(&path).map(drop).map_err(|error| failed(&error.error))
    }

    pub(crate) fn remove_named(&self, name: &str) -> Result<bool, AuthError> {
        let mut removed = false;
        if let Some(keyring) = self.keyring(false)? {
            removed = keyring.remove(name).map_err(|error| self.unavailable(&error))?;
        }
        let path = self.named_path(name);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(removed),
            Err(error) => Err(AuthError::store(&path, format!("cannot be removed: {error}"))),
        }
    }

    /// The platform's keyring, where this store uses it.
    fn keyring(&self, make: bool) -> Result<Option<Platform>, AuthError> {
        if !self.sealer.uses_keyring(make)? {
            return Ok(None);
        }
        Platform::open().map(Some).map_err(|error| self.unavailable(&error))
    }

    fn unavailable(&self, error: &Unavailable) -> AuthError {
        AuthError::store(self.directory(), format!("the platform's keyring cannot be asked: {error}"))
    }

    fn named_path(&self, name: &str) -> PathBuf {
        self.directory().join(format!("{}.secret", resource_part(name)))
    }
}
