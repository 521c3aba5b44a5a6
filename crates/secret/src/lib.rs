//! Secrets that cannot be printed, and the redactor.

mod redact;
mod secret;
mod shapes;

pub use redact::{PatternError, REDACTED, RedactingReader, RedactingWriter, Redactor};
pub use secret::Secret;
