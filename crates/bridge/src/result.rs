//! Owns how what a host gave back becomes an MCP result. Pure.
