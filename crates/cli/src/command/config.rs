//! `toolway config`: what the files say, and what becomes of it. Starts nothing.

mod check;
mod path;
mod show;

use std::io::Write as _;

use toolway_config::Problem;

use super::shell::{Refusal, told};
use crate::args::{ConfigArgs, ConfigCommand, SourceArgs};
use crate::compose::Environment;
use crate::compose::servers::Servers;
use crate::exit::Exit;
use crate::render::Output;

/// The version of the JSON that these commands print; members are added, never changed.
const SCHEMA: u32 = 1;

/// Runs one of them.
pub(super) fn run(args: &ConfigArgs) -> Exit {
    told(match &args.command {
        ConfigCommand::Show(args) => show::run(args),
        ConfigCommand::Check(args) => check::run(args),
        ConfigCommand::Schema => schema(),
        ConfigCommand::Path(args) => path::run(args),
    })
}

/// `toolway config schema`.
fn schema() -> Result<Exit, Refusal> {
    let mut out = Output::new();
    writeln!(out, "{:#}", toolway_config::json_schema())?;
    out.flush()?;
    Ok(Exit::Done)
}

fn load(sources: &SourceArgs) -> Result<Servers, Refusal> {
    Ok(Servers::load(sources, &Environment::read())?)
}

/// One problem as JSON.
fn described(problem: &Problem) -> serde_json::Value {
    serde_json::json!({
        "severity": if problem.is_error() { "error" } else { "warning" },
        "file": (!problem.file.as_os_str().is_empty()).then(|| problem.file.to_string_lossy()),
        "line": problem.at.map(|at| at.line),
        "column": problem.at.map(|at| at.column),
        "server": problem.server,
        "field": problem.field,
        "message": problem.message,
        "hint": problem.hint,
    })
}
