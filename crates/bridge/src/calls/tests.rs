//! Tests of calls.
