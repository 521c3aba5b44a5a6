//! Secrets that cannot be printed, the register of those in use, and the redactor that knows them.

mod in_use;
mod redact;
mod secret;
mod shapes;

pub use redact::{PatternError, REDACTED, RedactingLines, RedactingReader, RedactingWriter, Redactor};
pub use secret::Secret;
