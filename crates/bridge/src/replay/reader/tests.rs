//! Behaviour of it.
