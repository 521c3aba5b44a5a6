//! Owns the text of the debug command. Pure.
