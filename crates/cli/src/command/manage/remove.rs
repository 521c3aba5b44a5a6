//! `toolway remove`: takes a server out of a file of Toolway's own, or of a client.

use std::io::Write as _;

use toolway_config::{Change, Problem, Scope, own_servers, plan_own_removal, plan_removal};

use super::{Ground, Refusal, Target, client, short, told};
use crate::args::ServerArgs;
use crate::compose::UsageError;
use crate::exit::Exit;

/// Removes the server.
pub(crate) fn run(args: &ServerArgs) -> Exit {
    told(remove(args))
}

fn remove(args: &ServerArgs) -> Result<Exit, Refusal> {
    let ground = Ground::new()?;
    let (target, changes) = planned(args, &ground)?;
    target.write(&changes)?;
    writeln!(std::io::stdout().lock(), "removed {} from {}", args.name, short(&target.path, &ground.env))?;
    Ok(Exit::Done)
}

fn planned(args: &ServerArgs, ground: &Ground) -> Result<(Target, Vec<Change>), Refusal> {
    if let Some(id) = &args.client {
        let client = client("--in", id)?;
        let target = ground.of_client(client, args.scope.named().unwrap_or(Scope::User))?;
        let Some(root) = target.root() else { return Err(absent(&args.name, &target)) };
        let changes = plan_removal(client, root, &args.name).map_err(|problem| problem.file(&target.path))?;
        return Ok((target, changes));
    }
    let target = holder(args, ground)?;
    let changes = target.root().and_then(|root| plan_own_removal(root, &args.name));
    let changes = changes.ok_or_else(|| absent(&args.name, &target))?;
    Ok((target, changes))
}

fn absent(name: &str, target: &Target) -> Refusal {
    let names: Vec<String> = own_servers(target.root()).into_iter().map(|(name, _)| name).collect();
    let problem = Problem::error("is not in this file").server(name).file(&target.path);
    let hint = "toolway list shows where it comes from; --in CLIENT changes a client's file".to_owned();
    let hint = if names.is_empty() { hint } else { format!("in it are {}; {hint}", names.join(", ")) };
    problem.hint(hint).into()
}

/// Toolway's own file that has the server: the one that is named, or else the only one.
pub(super) fn holder(args: &ServerArgs, ground: &Ground) -> Result<Target, Refusal> {
    if let Some(scope) = args.scope.named() {
        return ground.own(scope);
    }
    let (user, project) = (ground.own(Scope::User)?, ground.own(Scope::Project)?);
    let has = |target: &Target| own_servers(target.root()).iter().any(|(name, _)| *name == args.name);
    match (has(&user), has(&project)) {
        (true, true) => {
            let error = UsageError::new(args.name.as_str(), "is in the user's file and in the project's");
            Err(error.with_hint("say which: --user or --project").into())
        }
        (false, true) => Ok(project),
        _ => Ok(user),
    }
}
