//! Owns the MCP names of host tools: pure, injective, in any order of registration the same.
