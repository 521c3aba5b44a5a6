//! Tests of `settings`.
