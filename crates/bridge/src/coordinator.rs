//! Owns the task between the two ports: one event enum, one select.
