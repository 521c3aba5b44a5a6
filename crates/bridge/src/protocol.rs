//! Owns the protocol for hosts in other languages: messages, their schema, and what answers them.
