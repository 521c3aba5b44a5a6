//! Owns the loopback MCP server of the runs: both protocol generations, the door before any parsing.
