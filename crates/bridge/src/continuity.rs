//! Owns what decides between an incremental prompt and a new agent. Pure.
