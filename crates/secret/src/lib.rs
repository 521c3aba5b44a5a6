//! Secrets that cannot be printed, the register of those in use, and the redactor that knows them.

mod in_use;
mod judge;
mod redact;
mod secret;
mod shapes;

pub use judge::{secret_flag, secret_in_argument, secret_name, secret_value};
pub use redact::{PatternError, REDACTED, RedactingLines, RedactingReader, RedactingWriter, Redactor};
pub use secret::Secret;
