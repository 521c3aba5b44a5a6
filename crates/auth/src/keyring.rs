//! Owns the platform's keyring: the Secret Service of a Linux desktop, the keychain of macOS. What is kept there has the
//! service `toolway` and a name. It does not know what for.

use std::fmt;

use toolway_secret::Secret;

/// The service under which everything is kept.
const SERVICE: &str = "toolway";

/// The keyring cannot be asked.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unavailable(String);

impl Unavailable {
    pub(crate) fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

/// A keyring that can be asked.
#[derive(Debug)]
pub(crate) struct Platform(imp::Keyring);

impl Platform {
    pub(crate) fn open() -> Result<Self, Unavailable> {
        imp::Keyring::open().map(Self)
    }

    pub(crate) fn get(&self, name: &str) -> Result<Option<Secret>, Unavailable> {
        self.0.get(name)
    }

    pub(crate) fn set(&self, name: &str, secret: &str) -> Result<(), Unavailable> {
        self.0.set(name, secret)
    }

    /// Whether there was one.
    pub(crate) fn remove(&self, name: &str) -> Result<bool, Unavailable> {
        self.0.remove(name)
    }
}

#[cfg(target_os = "linux")]
mod imp {
    use std::collections::HashMap;

    use dbus_secret_service::{EncryptionType, SecretService};
    use toolway_secret::Secret;
    use zeroize::Zeroizing;

    use super::{SERVICE, Unavailable};

    /// How long the desktop may show its question whether to unlock the keyring, in seconds.
    const PROMPT: u64 = 60;

    pub(super) struct Keyring(SecretService);

    impl std::fmt::Debug for Keyring {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("Keyring")
        }
    }

    /// As other programs name what is a user's password at a service.
    fn attributes(name: &str) -> HashMap<&str, &str> {
        HashMap::from([("service", SERVICE), ("username", name)])
    }

    impl Keyring {
        /// The bus is a socket of this user: encryption on it would hide nothing from anybody.
        pub(super) fn open() -> Result<Self, Unavailable> {
            SecretService::connect_with_max_prompt_timeout(EncryptionType::Plain, PROMPT)
                .map(Self)
                .map_err(Unavailable::new)
        }

        pub(super) fn get(&self, name: &str) -> Result<Option<Secret>, Unavailable> {
            let found = self.0.search_items(attributes(name)).map_err(Unavailable::new)?;
            let Some(item) = found.unlocked.first().or(found.locked.first()) else { return Ok(None) };
            item.ensure_unlocked().or_else(|_| item.unlock()).map_err(Unavailable::new)?;
            let bytes = Zeroizing::new(item.get_secret().map_err(Unavailable::new)?);
            let text =
                std::str::from_utf8(&bytes).map_err(|_| Unavailable::new("what is kept is no text"))?;
            Ok(Some(Secret::new(text)))
        }

        pub(super) fn set(&self, name: &str, secret: &str) -> Result<(), Unavailable> {
            let collection = self.0.get_default_collection().map_err(Unavailable::new)?;
            if collection.is_locked().map_err(Unavailable::new)? {
                collection.unlock().map_err(Unavailable::new)?;
            }
            let label = format!("{SERVICE}: {name}");
            collection
                .create_item(&label, attributes(name), secret.as_bytes(), true, "text/plain")
                .map(drop)
                .map_err(Unavailable::new)
        }

        pub(super) fn remove(&self, name: &str) -> Result<bool, Unavailable> {
            let found = self.0.search_items(attributes(name)).map_err(Unavailable::new)?;
            let mut removed = false;
            for item in found.unlocked.iter().chain(&found.locked) {
                item.delete().map_err(Unavailable::new)?;
                removed = true;
            }
            Ok(removed)
        }
    }
}

#[cfg(target_os = "macos")]
mod imp {
    use security_framework::passwords::{
        delete_generic_password, get_generic_password, set_generic_password,
    };
    use toolway_secret::Secret;
    use zeroize::Zeroizing;

    use super::{SERVICE, Unavailable};

    /// `errSecItemNotFound`.
    const NOT_FOUND: i32 = -25300;

    #[derive(Debug)]
    pub(super) struct Keyring;

    impl Keyring {
        pub(super) fn open() -> Result<Self, Unavailable> {
            Ok(Self)
        }

        pub(super) fn get(&self, name: &str) -> Result<Option<Secret>, Unavailable> {
            let bytes = match get_generic_password(SERVICE, name) {
                Ok(bytes) => Zeroizing::new(bytes),
                Err(error) if error.code() == NOT_FOUND => return Ok(None),
                Err(error) => return Err(Unavailable::new(error)),
            };
            let text =
                std::str::from_utf8(&bytes).map_err(|_| Unavailable::new("what is kept is no text"))?;
            Ok(Some(Secret::new(text)))
        }

        pub(super) fn set(&self, name: &str, secret: &str) -> Result<(), Unavailable> {
            set_generic_password(SERVICE, name, secret.as_bytes()).map_err(Unavailable::new)
        }

        pub(super) fn remove(&self, name: &str) -> Result<bool, Unavailable> {
            match delete_generic_password(SERVICE, name) {
                Ok(()) => Ok(true),
                Err(error) if error.code() == NOT_FOUND => Ok(false),
                Err(error) => Err(Unavailable::new(error)),
            }
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod imp {
    use toolway_secret::Secret;

    use super::Unavailable;

    /// There is none that this program knows.
    #[derive(Debug)]
    pub(super) enum Keyring {}

    impl Keyring {
        pub(super) fn open() -> Result<Self, Unavailable> {
            Err(Unavailable::new("this program knows no keyring of this platform"))
        }

        pub(super) fn get(&self, _: &str) -> Result<Option<Secret>, Unavailable> {
            match *self {}
        }

        pub(super) fn set(&self, _: &str, _: &str) -> Result<(), Unavailable> {
            match *self {}
        }

        pub(super) fn remove(&self, _: &str) -> Result<bool, Unavailable> {
            match *self {}
        }
    }
}
