//! Owns secrets that a person keeps under names, for `${keyring:NAME}`: in the platform's keyring where the store uses
//! it, else in sealed files. It does not know what they are for.

use std::sync::Arc;

use toolway_secret::Secret;

use crate::error::AuthError;
use crate::store::Store;

/// The longest name, in bytes.
const LONGEST: usize = 200;

/// Secrets under names.
#[derive(Debug, Clone)]
pub struct NamedSecrets {
    store: Arc<Store>,
}

impl NamedSecrets {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// The secret of a name; `None`: there is none. It may ask the person to unlock the keyring.
    pub fn get(&self, name: &str) -> Result<Option<Secret>, AuthError> {
        checked(name)?;
        self.store.named(name)
    }

    /// Keeps a secret under a name, in place of one that was there.
    pub fn set(&self, name: &str, secret: &Secret) -> Result<(), AuthError> {
        checked(name)?;
        if secret.expose().is_empty() {
            return Err(AuthError::setting("secret", "is empty"));
        }
        self.store.set_named(name, secret)
    }

    /// Forgets a secret; whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool, AuthError> {
        checked(name)?;
        self.store.remove_named(name)
    }
}

fn checked(name: &str) -> Result<(), AuthError> {
    let good = !name.is_empty() && name.len() <= LONGEST && !name.chars().any(|c| c.is_control() || c == '}');
    if good {
        Ok(())
    } else {
        Err(AuthError::setting("name", "must be 1 to 200 bytes without control characters and }"))
    }
}
