//! `toolway config check`.

use std::io::Write as _;

use serde_json::{Value, json};
use toolway_config::{FileStatus, Resolved};

use super::{SCHEMA, described, load};
use crate::args::{CheckArgs, SourceArgs};
use crate::command::shell::Refusal;
use crate::exit::Exit;
use crate::render::Output;

pub(super) fn run(args: &CheckArgs) -> Result<Exit, Refusal> {
    let named = SourceArgs { config: args.files.clone(), sources: None };
    let servers = load(if args.files.is_empty() { &args.sources } else { &named })?;
    let resolved = &servers.resolved;
    let faulty = resolved.problems.iter().any(toolway_config::Problem::is_error);
    let mut out = Output::new();
    if args.json {
        let problems: Vec<Value> = resolved.problems.iter().map(described).collect();
        writeln!(out, "{:#}", json!({"schema": SCHEMA, "ok": !faulty, "problems": problems}))?;
    } else {
        for problem in &resolved.problems {
            let word = if problem.is_error() { "error" } else { "warning" };
            writeln!(out, "{word}: {problem}")?;
        }
        writeln!(out, "{}", summary(resolved))?;
    }
    out.flush()?;
    Ok(if faulty { Exit::Usage } else { Exit::Done })
}

/// `3 servers in 2 files; 1 error, 2 warnings`.
fn summary(resolved: &Resolved) -> String {
    let count = |number: usize, one: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {one}{plural}")
    };
    let understood = |status: &FileStatus| matches!(status, FileStatus::Read { .. } | FileStatus::Kept(_));
    let files = resolved.files.iter().filter(|file| understood(&file.status)).count();
    let errors = resolved.problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = resolved.problems.len() - errors;
    let told = match (errors, warnings) {
        (0, 0) => "nothing is wrong".to_owned(),
        (0, warnings) => count(warnings, "warning"),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    format!("{} in {}; {told}", count(resolved.entries.len(), "server"), count(files, "file"))
}
