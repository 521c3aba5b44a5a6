//! `toolway list`: every configured entry and its state, also those that are never started, and why.

mod row;

use serde_json::{Value, json};
use toolway_config::{FileReport, FileStatus, Problem};
use toolway_proxy::gateway::ServerState;

use super::shell::{Refusal, Shell, Wanted, start_all, told};
use crate::args::ListArgs;
use crate::compose::servers::Servers;
use crate::exit::Exit;
use crate::show::safe;
use crate::table::{Align, columns};
use row::Row;

/// The version of the JSON that `--json` prints; members are added, never changed.
const SCHEMA: u32 = 1;

/// Lists the servers.
pub(super) fn run(args: &ListArgs) -> Exit {
    told(list(args))
}

fn list(args: &ListArgs) -> Result<Exit, Refusal> {
    let shell = Shell::new(&args.talk)?;
    let servers = shell.servers(&args.sources)?;
    let mut rows: Vec<Row> = servers
        .resolved
        .entries
        .iter()
        .zip(&servers.entries)
        .map(|(entry, server)| Row::new(entry, server))
        .collect();
    if !args.no_start {
        let configs = servers.entries.iter().enumerate().filter_map(|(index, entry)| {
            let config = entry.plan.as_ref().ok()?;
            Some((index, shell.timed(config)))
        });
        let started = Shell::block_on(start_all(&shell, configs.collect(), Wanted::Lists))?;
        for started in started {
            if let Some(row) = rows.get_mut(started.index) {
                row.add(&started);
            }
        }
    }
    if shell.json {
        shell.report_json(&described(&rows, &servers))?;
        return Ok(exit(args, &servers));
    }
    shell.report(&page(&rows, &servers))?;
    for problem in servers.resolved.problems.iter().filter(|problem| !has_row(problem, &servers)) {
        let word = if problem.is_error() { "error" } else { "warning" };
        crate::border::say(format_args!("{word}: {}", safe(&problem.to_string())));
    }
    Ok(exit(args, &servers))
}

/// A file that the person named must be usable; of what is found by itself, the faults are told.
fn exit(args: &ListArgs, servers: &Servers) -> Exit {
    let faulty = !args.sources.config.is_empty() && servers.failed_files().next().is_some();
    if faulty { Exit::Usage } else { Exit::Done }
}

/// The faults of an entry are the reason of its state, and that it lost is its state.
fn has_row(problem: &Problem, servers: &Servers) -> bool {
    let Some(name) = &problem.server else { return false };
    let mut entries = servers.resolved.entries.iter().zip(&servers.entries);
    entries.any(|(entry, server)| {
        entry.name == *name
            && entry.place.file == problem.file
            && match &server.plan {
                Ok(_) => false,
                Err(ServerState::Shadowed { .. }) => true,
                Err(_) => problem.is_error(),
            }
    })
}

fn page(rows: &[Row], servers: &Servers) -> String {
    if rows.is_empty() && servers.failed_files().next().is_some() {
        return "no server is configured in what could be read\n".to_owned();
    }
    if rows.is_empty() {
        let mut page = "no server is configured\n".to_owned();
        let absent = servers.resolved.files.iter().filter(|file| file.status == FileStatus::Absent);
        let paths: Vec<String> = absent.map(|file| format!("  {}\n", file.path.display())).collect();
        if !paths.is_empty() {
            page.push_str("These files would be read, and are not there:\n");
            page.extend(paths);
        }
        page.push_str("toolway import takes over what other clients have; toolway add adds a server.\n");
        return page;
    }
    let mut lines = vec![["SERVER", "STATE", "TOOLS", "TRANSPORT", "FROM"].map(String::from).to_vec()];
    lines.extend(rows.iter().map(Row::cells));
    let align = [Align::Left, Align::Left, Align::Right, Align::Left, Align::Left];
    let mut page = columns(&align, &lines);
    let reasons: Vec<String> = rows.iter().filter_map(Row::reason).collect();
    if !reasons.is_empty() {
        page.push('\n');
        page.extend(reasons);
    }
    page
}

fn described(rows: &[Row], servers: &Servers) -> Value {
    let servers_json: Vec<Value> = rows.iter().map(Row::json).collect();
    let problems: Vec<Value> = servers.resolved.problems.iter().map(problem).collect();
    let files: Vec<Value> = servers.resolved.files.iter().map(file).collect();
    json!({ "schema": SCHEMA, "servers": servers_json, "problems": problems, "files": files })
}

fn problem(problem: &Problem) -> Value {
    json!({
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

/// A file that was looked at, as `config path --json` shows it too.
pub(super) fn file(report: &FileReport) -> Value {
    let (status, servers, reason) = match &report.status {
        FileStatus::Read { servers } => ("read", Some(*servers), None),
        FileStatus::Absent => ("absent", None, None),
        FileStatus::Same { of } => ("same", None, Some(of.display().to_string())),
        FileStatus::Kept(problem) => ("kept", None, Some(problem.to_string())),
        FileStatus::Failed(problem) => ("failed", None, Some(problem.to_string())),
    };
    json!({
        "path": report.path.to_string_lossy(),
        "source": report.source.name(),
        "dialect": report.dialect.name(),
        "status": status,
        "servers": servers,
        "reason": reason,
    })
}
