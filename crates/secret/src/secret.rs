//! A value that cannot be printed by accident: tokens and header values. It must not know where they are used.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

/// A secret text. `Debug` prints `[redacted]`, there is no `Display`, and the memory is wiped when it goes.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text into custody.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself: for the wire only, never for messages, logs or errors.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
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
        let secret = Secret::new("hunter2");
        assert_eq!((format!("{secret:?}").as_str(), secret.expose()), ("[redacted]", "hunter2"));
    }
}
