//! Server definitions from the files of every MCP client: read, checked, merged, trusted, edited. Starts no server.

mod edit;
mod problem;
mod tree;

pub use edit::{Change, Edited, Written, edit, edit_file};
pub use problem::{Position, Problem, Severity};
pub use tree::{Format, Key, MAX_BYTES, MAX_DEPTH, Node, Value, read, read_bytes, read_tolerant};
