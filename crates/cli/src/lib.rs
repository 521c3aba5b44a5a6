//! The command line: arguments and environment become running relays, and their end becomes an exit code.

mod args;
mod border;
mod browser;
mod command;
mod compose;
mod demo;
mod exit;
mod logs;
mod render;
mod show;
mod table;
mod units;
mod width;

use std::ffi::OsString;
use std::process::ExitCode;

pub use exit::Exit;

/// Runs the program with these arguments, its name first.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    border::guard();
    let exit = match args::parse(arguments) {
        Ok(args) => command::run(args),
        Err(error) => exit::of_parsing(&error),
    };
    exit.into()
}
