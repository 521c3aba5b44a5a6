//! `toolway add`: writes a server to a file of Toolway's own, or of a client.

use std::io::Write as _;

use serde_json::{Map, Value};
use toolway_config::{ExportOutcome, Problem, Scope, check_own, plan_export, plan_own_addition};

use super::{Ground, Refusal, client, short, tell, told};
use crate::args::AddArgs;
use crate::compose::{UsageError, arguments, pair_seen};
use crate::exit::Exit;

/// Adds the server.
pub(crate) fn run(args: &AddArgs) -> Exit {
    told(add(args))
}

fn add(args: &AddArgs) -> Result<Exit, Refusal> {
    let ground = Ground::new()?;
    let entry = entry(args)?;
    let problems = check_own(&args.name, &entry);
    if problems.iter().any(Problem::is_error) {
        return Err(problems.into());
    }
    tell(&problems);
    let scope = args.scope.named().unwrap_or(Scope::User);
    let target = match &args.client {
        None => {
            let target = ground.own(scope)?;
            let changes = plan_own_addition(target.root(), &args.name, entry, args.replace);
            target.write(&changes.map_err(|problem| problem.file(&target.path))?)?;
            target
        }
        Some(id) => {
            let client = client("--in", id)?;
            let target = ground.of_client(client, scope)?;
            let plan = plan_export(client, target.root(), &[(args.name.clone(), entry)], &[], args.replace);
            for line in &plan.lines {
                let problem = |message: String| Problem::error(message).server(&args.name).file(&target.path);
                match &line.outcome {
                    ExportOutcome::Refused(reason) => return Err(problem(reason.clone()).into()),
                    ExportOutcome::Conflict => {
                        let problem = problem("another one of that name is there".to_owned());
                        return Err(problem.hint("--replace replaces it").into());
                    }
                    _ if !line.left_out.is_empty() => {
                        let message =
                            format!("{} has no word for {}", client.title, line.left_out.join(", "));
                        return Err(problem(message).into());
                    }
                    _ => {}
                }
            }
            target.write(&plan.changes)?;
            target
        }
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "added {} to {}", args.name, short(&target.path, &ground.env))?;
    if scope == Scope::Project && args.client.is_none() {
        writeln!(out, "it starts once it is approved: toolway trust")?;
    }
    Ok(Exit::Done)
}

fn entry(args: &AddArgs) -> Result<Map<String, Value>, UsageError> {
    let mut entry = Map::new();
    let mut put = |name: &str, value: Value| entry.insert(name.to_owned(), value);
    match (&args.url, args.command.split_first()) {
        (Some(url), None) => {
            if let Some(transport) = &args.transport {
                if !["http", "sse"].contains(&transport.as_str()) {
                    return Err(UsageError::new(
                        "--transport",
                        format!("{transport:?} is neither http nor sse"),
                    ));
                }
                put("type", transport.as_str().into());
            }
            put("url", url.as_str().into());
            if !args.header.is_empty() {
                put("headers", pairs("--header", &args.header)?);
            }
        }
        (None, Some((command, rest))) => {
            arguments(rest.iter().map(String::as_str));
            put("command", command.as_str().into());
            put("args", rest.to_vec().into());
            if !args.env.is_empty() {
                put("env", pairs("--env", &args.env)?);
            }
            for (name, value) in [("envFile", &args.env_file), ("cwd", &args.cwd)] {
                if let Some(value) = value {
                    put(name, value.as_str().into());
                }
            }
        }
        _ => {
            let error = UsageError::new("add", "says neither what to start nor where it is");
            return Err(error.with_hint("toolway add NAME -- COMMAND, or toolway add NAME --url URL"));
        }
    }
    Ok(entry)
}

/// `NAME=VALUE`, each name once.
fn pairs(flag: &str, given: &[String]) -> Result<Value, UsageError> {
    let mut pairs = Map::new();
    for pair in given {
        // The value may be a secret, so the text is not shown.
        let (name, value) = pair.split_once('=').ok_or_else(|| UsageError::new(flag, "is no NAME=VALUE"))?;
        pair_seen(flag, name, value);
        if pairs.insert(name.to_owned(), value.into()).is_some() {
            return Err(UsageError::new(flag, format!("{name} is given twice")));
        }
    }
    Ok(pairs.into())
}
