//! test, bench, fuzz and docs of the workspace.

fn main() {}
