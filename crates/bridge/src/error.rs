//! Owns the errors of this crate.

/// What can go wrong with a bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The loopback listener cannot be opened.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(#[source] std::io::Error),
    /// The system gives no random bytes, without which no endpoint is safe.
    #[error("the system has no randomness: {0}")]
    Randomness(String),
}
