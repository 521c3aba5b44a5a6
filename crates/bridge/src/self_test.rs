//! Owns the proof that a tool can be called: exposed, connected, listed, called as separate facts.
