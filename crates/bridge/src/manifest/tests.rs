//! Tests of `manifest`.
