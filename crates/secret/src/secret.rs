//! A value that cannot be printed by accident: tokens and header values. It must not know where they are used.

use std::fmt;
use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use crate::in_use::{self, Registration};

/// A secret text. `Debug` prints `[redacted]`, there is no `Display`, and the memory is wiped when it goes.
#[derive(Clone)]
pub struct Secret {
    text: SecretString,
    /// Makes it known to every redactor, as long as there is a clone of it.
    known: Option<Arc<Registration>>,
}

impl Secret {
    /// Takes the text into custody. No redactor knows it: see [`Self::in_use`].
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: SecretString::from(text.into()), known: None }
    }

    /// Takes the text into custody and makes it known to every [`crate::Redactor`] of this process: as it is, and within
    /// base64, hexadecimal digits, percent-encoding and JSON. Of `Bearer X` and `Basic X` the credential is known by
    /// itself as well. It stays known as long as there is a clone of it, and a while longer, for texts that are on
    /// their way. What is shorter than four bytes, or a word of every text (`true`), is not taken for a secret.
    pub fn in_use(text: impl Into<String>) -> Self {
        let text = SecretString::from(text.into());
        let known = in_use::register(text.expose_secret()).map(Arc::new);
        Self { text, known }
    }

    /// The same, known to every redactor from now on: for what was made before anyone knew that it would be used.
    #[must_use]
    pub fn made_known(self) -> Self {
        if self.known.is_some() {
            return self;
        }
        let known = in_use::register(self.expose()).map(Arc::new);
        Self { known, ..self }
    }

    /// The text itself: for the wire only, never for messages, logs or errors.
    pub fn expose(&self) -> &str {
        self.text.expose_secret()
    }

    /// Whether this is the secret. Takes as long for a text that is nearly right as for one that is all wrong; only
    /// its length can be told from the time.
    pub fn matches(&self, text: impl AsRef<[u8]>) -> bool {
        self.expose().as_bytes().ct_eq(text.as_ref()).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn debug_never_shows_the_text() {
        for secret in [Secret::new("hunter2"), Secret::in_use("hunter2"), Secret::new("hunter2").made_known()]
        {
            assert_eq!((format!("{secret:?}").as_str(), secret.expose()), ("[redacted]", "hunter2"));
        }
    }

    #[test]
    fn only_the_whole_text_matches() {
        let secret = Secret::new("hunter2");
        assert!(secret.matches("hunter2"));
        for other in ["", "hunter", "hunter3", "hunter22"] {
            assert!(!secret.matches(other), "{other}");
        }
    }
}
