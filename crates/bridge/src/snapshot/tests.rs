//! Tests of `snapshot`.
