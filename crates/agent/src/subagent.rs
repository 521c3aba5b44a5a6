//! subagent
