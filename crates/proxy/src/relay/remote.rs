//! Owns the relay in front of an HTTP or SSE server.
