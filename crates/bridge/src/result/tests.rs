//! Tests of result.
