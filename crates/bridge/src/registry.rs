//! Owns the runs of one host session and the listener that they share.
