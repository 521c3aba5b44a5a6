//! `toolway import`: takes over what other clients have. Starts and approves nothing.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toolway_config::{
    CLIENTS, Client, ClientFile, Found, Home, ImportLine, ImportOutcome, Problem, Scope, find, plan_import,
    read_bytes,
};

use super::{Ground, Refusal, Target, client, servers, short, tell, told};
use crate::args::ImportArgs;
use crate::compose::UsageError;
use crate::exit::Exit;
use crate::show::one_line;

/// Takes servers over.
pub(crate) fn run(args: &ImportArgs) -> Exit {
    told(import(args))
}

/// What all files hold.
#[derive(Debug, Default)]
struct Holdings {
    /// For whom, and what.
    found: Vec<(Scope, Found)>,
    inputs: Vec<Value>,
    /// Files that were read.
    read: usize,
    /// Files that could not be.
    failed: bool,
}

fn import(args: &ImportArgs) -> Result<Exit, Refusal> {
    let ground = Ground::new()?;
    let holdings = look(args, &ground)?;
    let mut out = std::io::stdout().lock();
    if holdings.found.is_empty() {
        writeln!(out, "found no servers in {}", files(holdings.read))?;
        return Ok(if holdings.failed { Exit::Usage } else { Exit::Done });
    }
    for scope in [Scope::User, Scope::Project] {
        let found: Vec<Found> = holdings
            .found
            .iter()
            .filter(|(other, _)| *other == scope)
            .map(|(_, found)| found.clone())
            .collect();
        if !found.is_empty() {
            add_to(scope, found, &holdings.inputs, args.dry_run, &ground, &mut out)?;
        }
    }
    Ok(if holdings.failed { Exit::Usage } else { Exit::Done })
}

fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Reads the files that the arguments mean, each once, whoever shares it.
fn look(args: &ImportArgs, ground: &Ground) -> Result<Holdings, Refusal> {
    let from = args.from.as_deref().unwrap_or("all");
    let clients: Vec<&'static Client> =
        if from == "all" { CLIENTS.iter().collect() } else { vec![client("--from", from)?] };
    let mut holdings = Holdings::default();
    if let Some(path) = &args.file {
        let [client] = clients.as_slice() else {
            return Err(UsageError::new("--file", "belongs to one client: name it with --from").into());
        };
        let file = ClientFile::given(path.clone(), args.scope.named().unwrap_or(Scope::User));
        look_into(client, &file, args, ground, &mut holdings)?;
        return Ok(holdings);
    }
    let mut seen = BTreeSet::new();
    for client in clients {
        for file in client.files(&ground.env, &ground.project) {
            let real = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
            if file.path.symlink_metadata().is_ok() && seen.insert(real) {
                look_into(client, &file, args, ground, &mut holdings)?;
            }
        }
    }
    Ok(holdings)
}

fn look_into(
    client: &'static Client,
    file: &ClientFile,
    args: &ImportArgs,
    ground: &Ground,
    holdings: &mut Holdings,
) -> Result<(), Refusal> {
    let bytes = match read_bytes(&file.path) {
        Ok(bytes) => bytes,
        // A file the user named has to be there.
        Err(problem) if args.file.is_some() => return Err(problem.into()),
        Err(problem) => {
            tell(&[problem]);
            holdings.failed = true;
            return Ok(());
        }
    };
    if bytes.trim_ascii().is_empty() {
        return Ok(());
    }
    match find(client, file, &bytes, &ground.project) {
        Ok(in_file) => {
            holdings.read += 1;
            tell(&in_file.problems);
            holdings.inputs.extend(in_file.inputs);
            for found in in_file.found {
                let scope = args.scope.named().unwrap_or(file.scope);
                if matches!(found.home, Home::Project(_)) && args.scope.named().is_none() {
                    let message = "is yours alone in this project, so it was left out";
                    let hint =
                        "--project adds it for everybody who works on it, --user for all your projects";
                    let problem =
                        Problem::warning(message).file(&found.file).at(found.at).server(&found.name);
                    tell(&[problem.hint(hint)]);
                    continue;
                }
                holdings.found.push((scope, found));
            }
        }
        Err(problems) => {
            tell(&problems);
            holdings.failed = true;
        }
    }
    Ok(())
}

fn add_to(
    scope: Scope,
    found: Vec<Found>,
    inputs: &[Value],
    dry_run: bool,
    ground: &Ground,
    out: &mut impl std::io::Write,
) -> Result<(), Refusal> {
    let target = ground.own(scope)?;
    let texts: String = found.iter().map(|found| Value::Object(found.own.clone()).to_string()).collect();
    let is_asked_for = |input: &&Value| {
        let id = input.get("id").and_then(Value::as_str);
        id.is_some_and(|id| texts.contains(&format!("${{input:{id}}}")))
    };
    let inputs: Vec<Value> = inputs.iter().filter(is_asked_for).cloned().collect();
    let plan = plan_import(target.root(), found, &inputs);
    let mut last: Option<&Path> = None;
    for line in &plan.lines {
        if last != Some(&line.found.file) {
            writeln!(out, "{}: {}", line.found.client.title, short(&line.found.file, &ground.env))?;
            last = Some(&line.found.file);
        }
        writeln!(out, "  {}", told_of(line, &target, ground))?;
        let is_added = matches!(line.outcome, ImportOutcome::Added { .. });
        if !line.found.unknown.is_empty() && is_added {
            let words: Vec<String> = line.found.unknown.iter().map(|word| one_line(word, 60)).collect();
            writeln!(out, "      kept as a note for {}: {}", line.found.client.title, words.join(", "))?;
        }
    }
    for id in &plan.input_conflicts {
        writeln!(out, "  ! another input {} is there: it was not added", one_line(id, 60))?;
    }
    let added = plan.lines.iter().filter(|line| matches!(line.outcome, ImportOutcome::Added { .. })).count();
    let shown = short(&target.path, &ground.env);
    if dry_run {
        writeln!(out, "would add {} to {shown}", servers(added))?;
    } else {
        if !plan.changes.is_empty() {
            target.write(&plan.changes)?;
        }
        writeln!(out, "added {} to {shown}", servers(added))?;
    }
    Ok(())
}

fn told_of(line: &ImportLine, target: &Target, ground: &Ground) -> String {
    let theirs = one_line(&line.found.name, 64);
    let renamed =
        |name: &str| if name == line.found.name { theirs.clone() } else { format!("{name} ({theirs})") };
    match &line.outcome {
        ImportOutcome::Added { name } => {
            let off = line.found.own.get("enabled") == Some(&Value::Bool(false));
            let off = if off { ", switched off" } else { "" };
            format!("+ {}: {}{off}", renamed(name), what(&line.found.own))
        }
        ImportOutcome::Present { name } => format!("= {}: there already", renamed(name)),
        ImportOutcome::Itself => format!("- {theirs}: Toolway's own gateway"),
        ImportOutcome::Conflict { name, with } => {
            let other = with.as_ref().map(|place| PathBuf::from(place.as_str()));
            let other = short(other.as_deref().unwrap_or(&target.path), &ground.env);
            format!("! {theirs}: another server {name} is in {other}: it was not added")
        }
    }
}

/// What a server is, without anything that may be secret: the program, or the address's host.
fn what(own: &Map<String, Value>) -> String {
    let text = |name: &str| own.get(name).and_then(Value::as_str);
    if let Some(command) = text("command") {
        let spaced = own.contains_key("args");
        let program = if spaced { command } else { command.split_whitespace().next().unwrap_or_default() };
        return one_line(program, 60);
    }
    let Some(url) = text("url") else { return "a switch alone".to_owned() };
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    one_line(host, 60)
}
