//! Owns the errors of this crate.

use std::io;
use std::path::PathBuf;

/// What can go wrong with a bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The loopback listener cannot be opened.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(#[source] io::Error),
    /// The system gives no random bytes, without which no endpoint is safe.
    #[error("the system has no randomness: {0}")]
    Randomness(String),
    /// The bridge was shut down.
    #[error("the bridge is shut down")]
    Closed,
    /// There is an open session of that scope. It is not replaced.
    #[error("the session {0} is open already")]
    SessionOpen(String),
    /// Another program holds the lock of the settings file, or left it behind. It is never taken from it.
    #[error("the settings are locked by {}: try again, or remove that file if no other program is changing them", lock.display())]
    SettingsLocked {
        /// The lock file.
        lock: PathBuf,
    },
    /// The settings file is not one that can be changed without a loss. Its content is not repeated.
    #[error("the settings file {} {why}: nothing was written", path.display())]
    SettingsUnusable {
        /// The settings file.
        path: PathBuf,
        /// What it is or is not.
        why: String,
    },
    /// The settings file cannot be written.
    #[error("cannot write the settings file {}: {source}", path.display())]
    SettingsWrite {
        /// The settings file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A change of the settings that reading would leave out: its key and why.
    #[error("the setting cannot be written: {0}")]
    SettingRefused(String),
}
