//! Owns the recognition of bridge calls among what an agent reports of itself. Pure.
