//! Owns the text that says which tools can be called in this run. Pure.
