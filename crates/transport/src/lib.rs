//! Transports: stdio, child processes, Streamable HTTP, legacy SSE, in-memory pairs.
