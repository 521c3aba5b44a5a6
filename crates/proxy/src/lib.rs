//! The relay: one client, one server, every message whole.
