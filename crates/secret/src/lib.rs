//! Secrets that cannot be printed, and the redactor.

mod secret;

pub use secret::Secret;
