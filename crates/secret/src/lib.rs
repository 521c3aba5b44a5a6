//! Secrets that cannot be printed, and the redactor.

mod secret;

pub use secret::Secret;
mod redact;
mod shapes;

pub use redact::{PatternError, REDACTED, RedactingReader, RedactingWriter, Redactor};
