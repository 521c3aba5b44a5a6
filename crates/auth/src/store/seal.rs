//! Owns the sealing of files: `ChaCha20-Poly1305` (RFC 8439) with the file's name bound in, so that none can be put in
//! another's place. It does not know what is sealed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::damaged;
use super::key::{KEY_LEN, Keys, Stamp};
use crate::error::AuthError;
use crate::settings::KeyringUse;

const VERSION: u64 = 1;

/// A sealed file.
#[derive(Serialize, Deserialize)]
struct Sealed {
    version: u64,
    nonce: String,
    data: String,
}

/// Only this is read of what a newer version wrote.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

/// Seals and opens, with a key that is found or made when it is first needed.
#[derive(Debug)]
pub(super) struct Sealer {
    keys: Keys,
    key: Mutex<Option<(Stamp, Arc<LessSafeKey>)>>,
}

impl Sealer {
    pub(super) fn new(directory: PathBuf, keyring: KeyringUse) -> Self {
        Self { keys: Keys::new(directory, keyring), key: Mutex::new(None) }
    }

    /// There is a key to seal with; one is made where there is none.
    pub(super) fn ready(&self) -> Result<(), AuthError> {
        self.key(true).map(drop)
    }

    /// Whether the key is in the platform's keyring; where there is none yet, one is made if it is to be.
    pub(super) fn uses_keyring(&self, make: bool) -> Result<bool, AuthError> {
        if make {
            self.ready()?;
        }
        self.keys.are_in_keyring()
    }

    /// The bytes of the file at `path` that holds `plain`.
    pub(super) fn seal(&self, path: &Path, plain: &[u8]) -> Result<Vec<u8>, AuthError> {
        let key = self.key(true)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce)
            .map_err(|error| AuthError::store(path, format!("no random bytes: {error}")))?;
        let mut sealed = Vec::with_capacity(plain.len() + CHACHA20_POLY1305.tag_len());
        sealed.extend_from_slice(plain);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name(path)), &mut sealed)
            .map_err(|_| AuthError::store(path, "cannot be sealed"))?;
        let file = Sealed { version: VERSION, nonce: STANDARD.encode(nonce), data: STANDARD.encode(sealed) };
        let mut text = serde_json::to_vec(&file).unwrap_or_default();
        text.push(b'\n');
        Ok(text)
    }

    /// What the file at `path` holds.
    pub(super) fn open(&self, path: &Path, file: &[u8]) -> Result<Zeroizing<Vec<u8>>, AuthError> {
        let broken = |reason: &str| AuthError::store(path, damaged(reason));
        let versioned: Versioned =
            serde_json::from_slice(file).map_err(|_| broken("it is no sealed file"))?;
        if versioned.version > VERSION {
            return Err(AuthError::Newer { path: path.to_path_buf(), version: versioned.version });
        }
        if versioned.version != VERSION {
            return Err(broken("there never was such a version"));
        }
        let sealed: Sealed = serde_json::from_slice(file).map_err(|_| broken("it is no sealed file"))?;
        let (nonce, bytes) = (STANDARD.decode(&sealed.nonce), STANDARD.decode(&sealed.data));
        let nonce = nonce.ok().and_then(|nonce| <[u8; NONCE_LEN]>::try_from(nonce).ok());
        let (Some(nonce), Ok(bytes)) = (nonce, bytes) else { return Err(broken("it is no sealed file")) };
        let mut bytes = Zeroizing::new(bytes);
        let key = self.key(false)?;
        let length = key
            .open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(name(path)), &mut bytes)
            .map(|plain| plain.len())
            .map_err(|_| broken("its seal is not of this store's key"))?;
        bytes.truncate(length);
        Ok(bytes)
    }

    /// The key of now: a process that runs for weeks notices when the store was thrown away and begun anew.
    fn key(&self, make: bool) -> Result<Arc<LessSafeKey>, AuthError> {
        let mut held = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stamp, key)) = &*held
            && self.keys.stamp().as_ref() == Some(stamp)
        {
            return Ok(Arc::clone(key));
        }
        let bytes: Zeroizing<[u8; KEY_LEN]> = self.keys.get(make)?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &*bytes)
            .map_err(|_| AuthError::store(self.keys.path(), damaged("its length is wrong")))?;
        let key = Arc::new(LessSafeKey::new(key));
        *held = self.keys.stamp().map(|stamp| (stamp, Arc::clone(&key)));
        Ok(key)
    }
}

fn name(path: &Path) -> Vec<u8> {
    path.file_name().map(|name| name.to_string_lossy().into_owned().into_bytes()).unwrap_or_default()
}
