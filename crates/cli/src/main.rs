//! Carries MCP tools to coding agents whole.

fn main() {}
