//! Owns the key that seals the store: in the platform's keyring where there is one, else in a file beside. Which of the
//! two was chosen once, is written in that file and holds for every process of the user.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::lock::Lock;
use super::place;
use crate::error::AuthError;
use crate::keyring::{Platform, Unavailable};
use crate::settings::KeyringUse;

pub(super) const KEY_LEN: usize = 32;
const IN_FILE: &str = "key ";
const IN_KEYRING: &str = "keyring";
/// The name of the key in the keyring.
const NAME: &str = "store key";
/// How often, and how long each time, it is waited for another process that makes the key.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub(super) struct Keys {
    directory: PathBuf,
    path: PathBuf,
    keyring: KeyringUse,
}

type Key = Zeroizing<[u8; KEY_LEN]>;

/// What changes when another key is made.
pub(super) type Stamp = (u64, Option<std::time::SystemTime>);

impl Keys {
    pub(super) fn new(directory: PathBuf, keyring: KeyringUse) -> Self {
        Self { path: directory.join("key"), directory, keyring }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// `None`: there is no key.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        let found = std::fs::metadata(&self.path).ok()?;
        Some((found.len(), found.modified().ok()))
    }

    /// Where the key is, as far as there is one.
    pub(super) fn are_in_keyring(&self) -> Result<bool, AuthError> {
        match place::read(&self.path) {
            Ok(bytes) => Ok(bytes.trim_ascii() == IN_KEYRING.as_bytes()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(self.keyring == KeyringUse::Always)
            }
            Err(error) => Err(AuthError::store(&self.path, format!("cannot be read: {error}"))),
        }
    }

    /// The key; made, where there is none and it is to be.
    pub(super) fn get(&self, make: bool) -> Result<Key, AuthError> {
        if let Some(key) = self.found()? {
            return Ok(key);
        }
        if !make {
            return Err(AuthError::store(
                &self.path,
                "is missing, without which no sign-in can be read: sign in again",
            ));
        }
        place::make(&self.directory)?;
        let lock = self.locked()?;
        // Somebody else may have made it in the meantime.
        let key = match self.found()? {
            Some(key) => key,
            None => self.make()?,
        };
        drop(lock);
        Ok(key)
    }

    /// Waits without a runtime: it is done once in the life of a store, and takes a moment.
    fn locked(&self) -> Result<Lock, AuthError> {
        let path = self.directory.join("key.lock");
        for _ in 0..TRIES {
            if let Some(lock) = Lock::attempt(&path)? {
                return Ok(lock);
            }
            // A channel that nobody sends on: the house has no other sleep.
            std::sync::mpsc::channel::<()>().1.recv_timeout(PAUSE).ok();
        }
        Err(AuthError::Late { reason: format!("another process holds {}", path.display()) })
    }

    fn found(&self) -> Result<Option<Key>, AuthError> {
        let bytes = match place::read(&self.path) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(AuthError::store(&self.path, format!("cannot be read: {error}"))),
        };
        let broken =
            || AuthError::store(&self.path, "is damaged (it is no key): remove it, and sign in again");
        let text = std::str::from_utf8(&bytes).map_err(|_| broken())?.trim();
        if text == IN_KEYRING {
            let kept = Platform::open()
                .and_then(|keyring| keyring.get(NAME))
                .map_err(|error| self.locked_away(&error))?;
            let Some(kept) = kept else {
                return Err(AuthError::store(
                    &self.path,
                    "names the platform's keyring, which has lost the key: sign in again after removing this file",
                ));
            };
            return parse(kept.expose()).ok_or_else(broken).map(Some);
        }
        text.strip_prefix(IN_FILE).and_then(parse).ok_or_else(broken).map(Some)
    }

    fn locked_away(&self, error: &Unavailable) -> AuthError {
        let reason = format!(
            "the sign-ins are sealed with a key in the platform's keyring, which cannot be asked here: {error}"
        );
        AuthError::store(&self.path, reason)
    }

    fn make(&self) -> Result<Key, AuthError> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        getrandom::fill(&mut *key)
            .map_err(|error| AuthError::store(&self.path, format!("no random bytes: {error}")))?;
        let text = Zeroizing::new(STANDARD.encode(*key));
        let kept = match self.keyring {
            KeyringUse::Never => Err(Unavailable::new("it is not to be used")),
            KeyringUse::Auto | KeyringUse::Always => Platform::open().and_then(|keyring| {
                // Of another directory of this user's, whose sign-ins would be lost with it.
                if let Some(kept) = keyring.get(NAME)?.and_then(|kept| parse(kept.expose())) {
                    key = kept;
                    return Ok(());
                }
                keyring.set(NAME, &text)
            }),
        };
        let line = match kept {
            Ok(()) => Zeroizing::new(format!("{IN_KEYRING}\n")),
            Err(error) if self.keyring == KeyringUse::Always => {
                return Err(AuthError::store(
                    &self.path,
                    format!("the platform's keyring cannot be used: {error}"),
                ));
            }
            Err(error) => {
                tracing::debug!(%error, "the key of the sign-ins is kept in a file");
                Zeroizing::new(format!("{IN_FILE}{}\n", *text))
            }
        };
        let failed =
            |error: &std::io::Error| AuthError::store(&self.path, format!("cannot be written: {error}"));
        let mut file = tempfile::NamedTempFile::new_in(&self.directory).map_err(|error| failed(&error))?;
        file.write_all(line.as_bytes()).map_err(|error| failed(&error))?;
        file.as_file().sync_all().map_err(|error| failed(&error))?;
        file.persist(&self.path).map_err(|error| failed(&error.error))?;
        Ok(key)
    }
}

fn parse(text: &str) -> Option<Key> {
    let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
    Some(Zeroizing::new(<[u8; KEY_LEN]>::try_from(bytes.as_slice()).ok()?))
}
