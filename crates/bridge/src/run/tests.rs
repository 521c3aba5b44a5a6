//! Tests of run.
