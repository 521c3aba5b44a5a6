//! The measuring harness as a program.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    toolway_bench::run(std::env::args().skip(1))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    // Processes and their memory are read out of /proc.
    ExitCode::from(2)
}
