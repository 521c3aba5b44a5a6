//! Owns the exact times of calls and connections, and their clamps. Pure.
