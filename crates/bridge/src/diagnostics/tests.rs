//! Tests of diagnostics.
