//! The binary: hands its arguments and environment to the library and ends with the code that it gives.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else: a supervisor is to cost as little as it can, and a sandbox closes around one thread.
    if let Some(code) = toolway_agent::begin(std::env::args_os()) {
        return code;
    }
    toolway::run(std::env::args_os())
}
