//! `toolway config path`.

use std::io::Write as _;

use serde_json::{Value, json};
use toolway_config::FileStatus;

use super::{SCHEMA, load};
use crate::args::PathArgs;
use crate::command::list;
use crate::command::shell::Refusal;
use crate::exit::Exit;
use crate::render::Output;
use crate::table::{Align, columns};

pub(super) fn run(args: &PathArgs) -> Result<Exit, Refusal> {
    let resolved = load(&args.sources)?.resolved;
    let mut out = Output::new();
    if args.json {
        let files: Vec<Value> = resolved.files.iter().map(list::file).collect();
        let all = json!({
            "schema": SCHEMA,
            "project": resolved.root.to_string_lossy(),
            "files": files,
            "approvals": resolved.trust_file.to_string_lossy(),
        });
        writeln!(out, "{all:#}")?;
    } else {
        let mut rows = vec![["SOURCE", "STATUS", "FILE"].map(String::from).to_vec()];
        rows.extend(
            resolved.files.iter().map(|file| {
                vec![file.source.to_string(), told(&file.status), file.path.display().to_string()]
            }),
        );
        let there = if resolved.trust_file.is_file() { "read" } else { "absent" };
        rows.push(vec!["approvals".into(), there.into(), resolved.trust_file.display().to_string()]);
        let table = columns(&[Align::Left, Align::Left, Align::Left], &rows);
        write!(out, "{table}\nThe project is {}. Of equal names the first wins.\n", resolved.root.display())?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// What became of a file, in a few words.
fn told(status: &FileStatus) -> String {
    match status {
        FileStatus::Read { servers: 1 } => "1 server".to_owned(),
        FileStatus::Read { servers } => format!("{servers} servers"),
        FileStatus::Absent => "absent".to_owned(),
        FileStatus::Same { of } => format!("the same as {}", of.display()),
        FileStatus::Kept(problem) => format!("faulty, kept as it was: {}", problem.message),
        FileStatus::Failed(problem) => format!("faulty: {}", problem.message),
    }
}
