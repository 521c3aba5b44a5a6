//! The workspace's own commands: test, interop, bench, deps, docs, fuzz. It composes tools and knows no product code.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool tells what it does")]

mod bench;
mod deps;
mod docs;
mod fuzz;
mod interop;
mod peers;
mod process;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

const USAGE: &str = "usage: cargo xtask COMMAND

  test [--no-interop]          the workspace's tests, then the interop suites with real peers
  interop [--only TEXT]...     the interop suites alone; TEXT selects cases by name
  bench relay|gateway|bridge|agent|faults
                               speed and memory, or 43 faults, of a release build; writes docs/performance.md
  deps                         licences, sources, duplicates and number of dependencies
  docs [--check]               write the generated documents, or check that they are in step
  fuzz [TARGET] [--seconds N]  run one fuzz target, or all, for N seconds each (60)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<()> {
    let workspace = Workspace::locate()?;
    let Some((command, rest)) = arguments.split_first() else {
        bail!("no command\n\n{USAGE}");
    };
    match command.as_str() {
        "test" => test::run(&workspace, rest),
        "interop" => interop::run(&workspace, rest),
        "bench" => bench::run(&workspace, rest),
        "deps" => deps::run(&workspace, rest),
        "docs" => docs::run(&workspace, rest),
        "fuzz" => fuzz::run(&workspace, rest),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            Ok(())
        }
        other => bail!("unknown command {other}\n\n{USAGE}"),
    }
}
