//! Owns what `--for CLIENT` looks at: the client's own files as that client reads them, and its limits. Starts nothing.

use std::io::ErrorKind;
use std::path::Path;

use toolway_config::{Client, Environment, Format, InFile, find, read, read_bytes};

use super::report::{Check, ClientReport, Layer, ServerReport, Verdict};

/// Programs of ours that may stand in a client's file.
const OURS: [&str; 2] = ["toolway", "cursor-mcp-response-proxy"];

/// Looks at the client's files and holds what servers offer against its limits.
pub(super) fn client(
    client: &'static Client,
    env: &Environment,
    project: &Path,
    servers: &[ServerReport],
) -> ClientReport {
    let mut checks = Vec::new();
    let mut is_in_front = false;
    let mut there = 0;
    for file in client.files(env, project) {
        if file.path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            continue;
        }
        there += 1;
        let bytes = match read_bytes(&file.path) {
            Ok(bytes) => bytes,
            Err(problem) => {
                checks.push(super::entries::of_problem(&problem));
                continue;
            }
        };
        if client.strict_json {
            checks.extend(strict(client, &file.path, &bytes));
        }
        match find(client, &file, &bytes, project) {
            Ok(found) => {
                is_in_front |= entries(&found, env, &mut checks);
                let finding = format!("{} names {} servers", file.path.display(), found.found.len());
                checks.push(Check::ok(Layer::File, finding));
            }
            Err(problems) => checks.extend(problems.iter().map(super::entries::of_problem)),
        }
    }
    if there == 0 {
        let path = client.files(env, project).into_iter().find(|file| file.is_written);
        let path = path.map_or_else(|| "its file".to_owned(), |file| file.path.display().to_string());
        let fix = format!("toolway export --to {} writes {path}", client.id);
        checks.push(Check::warning(Layer::File, format!("{} has no file with servers", client.title), fix));
    } else if !is_in_front {
        let finding = format!("no entry of {} runs Toolway: it starts its servers itself", client.title);
        checks.push(Check::warning(
            Layer::Merge,
            finding,
            "put one entry with `toolway serve` in their place",
        ));
    }
    limits(client, servers, &mut checks);
    ClientReport { client: client.id.to_owned(), checks }
}

/// A client that reads plain JSON only drops the whole file for a comment or a comma.
fn strict(client: &Client, path: &Path, bytes: &[u8]) -> Option<Check> {
    let problem = read(bytes, Format::Json).err()?.into_iter().next()?;
    let place = problem.at.map_or_else(String::new, |at| format!(":{}:{}", at.line, at.column));
    let finding = format!(
        "{}{place}: {}; {} reads plain JSON only and drops every server of this file",
        path.display(),
        problem.message,
        client.title
    );
    Some(Check::fault(Layer::File, finding, "take out comments and commas before a closing bracket"))
}

/// Whether an entry runs Toolway; what is wrong with those that do, and with the file.
fn entries(found: &InFile, env: &Environment, checks: &mut Vec<Check>) -> bool {
    // What strictness costs is told by `strict`.
    let other = |problem: &&toolway_config::Problem| !problem.message.contains(" reads strict JSON: ");
    checks.extend(found.problems.iter().filter(other).map(super::entries::of_problem));
    let mut ours = false;
    for server in &found.found {
        let command = server.own.iter().find(|(name, _)| name.as_str() == "command");
        let Some(command) = command.and_then(|(_, value)| value.as_str()) else { continue };
        let program = Path::new(command);
        let name = program.file_stem().map(|name| name.to_string_lossy().to_lowercase());
        if !name.is_some_and(|name| OURS.contains(&name.as_str())) {
            continue;
        }
        ours = true;
        if program.is_absolute() && !program.exists() {
            let finding = format!("the entry {:?} runs {command}, which is not there", server.name);
            checks.push(Check::fault(Layer::Command, finding, "give the path that `which toolway` tells"));
        } else if program.is_relative() && !on_path(program, env) {
            let finding = format!("the entry {:?} runs {command:?}, which is not on the PATH", server.name);
            checks.push(Check::fault(
                Layer::Command,
                finding,
                "give the whole path that `which toolway` tells",
            ));
        }
    }
    ours
}

fn on_path(program: &Path, env: &Environment) -> bool {
    let path = env.var("PATH").unwrap_or_default();
    std::env::split_paths(path).any(|folder| {
        let file = folder.join(program);
        file.is_file() || file.with_extension("exe").is_file()
    })
}

/// The client's caps.
fn limits(client: &Client, servers: &[ServerReport], checks: &mut Vec<Check>) {
    let offers: Vec<_> = servers.iter().filter_map(|server| server.tools.as_ref()).collect();
    let count: usize = offers.iter().map(|tools| tools.count).sum();
    let tokens: u64 = offers.iter().map(|tools| tools.tokens).sum();
    let told = format!("{count} tools of {} servers, about {tokens} tokens in every request", offers.len());
    match client.limits.tools.and_then(|most| usize::try_from(most).ok()) {
        Some(most) if count > most => checks.push(Check::fault(
            Layer::Tools,
            format!("{told}; {} takes {most} and drops the rest without a word", client.title),
            "toolway serve --expose search, or fewer tools with tools.allow and tools.deny",
        )),
        Some(most) => checks.push(Check::ok(Layer::Tools, format!("{told}; {} takes {most}", client.title))),
        None => checks.push(Check::ok(Layer::Tools, format!("{told}; no cap is known"))),
    }
    debug_assert!(checks.iter().all(|check| check.verdict == Verdict::Ok || check.fix.is_some()));
}
