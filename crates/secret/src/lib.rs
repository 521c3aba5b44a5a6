//! Secrets that cannot be printed, and the redactor.
