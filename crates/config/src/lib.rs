//! Server definitions from the files of every MCP client: read, checked, merged, trusted, edited. Starts no server.

mod problem;

pub use problem::{Position, Problem, Severity};
