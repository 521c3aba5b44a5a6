//! Owns one run: snapshot, endpoint, calls, and its end.
