//! Behaviour.
