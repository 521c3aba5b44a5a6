//! `toolway enable` and `toolway disable`: switch a server in a file of Toolway's own, or of a client.

use std::collections::BTreeSet;
use std::io::Write as _;

use toolway_config::{
    Change, Entry, LoadOptions, Problem, Scope, SettingSource, Source, Standing, own_servers,
    plan_own_switch, plan_switch,
};

use super::remove::holder;
use super::{Ground, Refusal, Target, client, short, told};
use crate::args::ServerArgs;
use crate::exit::Exit;

/// Switches the server.
pub(crate) fn run(args: &ServerArgs, on: bool) -> Exit {
    told(switch(args, on))
}

fn switch(args: &ServerArgs, on: bool) -> Result<Exit, Refusal> {
    let ground = Ground::new()?;
    let (target, changes) = planned(args, on, &ground)?;
    let (mut out, word) = (std::io::stdout().lock(), if on { "on" } else { "off" });
    let shown = short(&target.path, &ground.env);
    if !changes.is_empty() && target.write(&changes)?.changed {
        writeln!(out, "switched {} {word} in {shown}", args.name)?;
    } else {
        writeln!(out, "{} is switched {word} already in {shown}", args.name)?;
    }
    Ok(Exit::Done)
}

fn planned(args: &ServerArgs, on: bool, ground: &Ground) -> Result<(Target, Vec<Change>), Refusal> {
    let Some(id) = &args.client else {
        let target = target(args, on, ground)?;
        let changes = plan_own_switch(target.root(), &args.name, on);
        return Ok((target, changes));
    };
    let client = client("--in", id)?;
    let target = ground.of_client(client, args.scope.named().unwrap_or(Scope::User))?;
    let absent = || Problem::error("is not in this file").server(&args.name).file(&target.path);
    let root = target.root().ok_or_else(absent)?;
    let changes = plan_switch(client, root, &args.name, on).map_err(|problem| problem.file(&target.path))?;
    Ok((target, changes))
}

/// The own file in which the switch has an effect.
fn target(args: &ServerArgs, on: bool, ground: &Ground) -> Result<Target, Refusal> {
    let holder = holder(args, ground)?;
    if own_servers(holder.root()).iter().any(|(name, _)| *name == args.name) {
        return Ok(holder);
    }
    // It comes from elsewhere: an entry that only switches it stands in the file above it.
    let options = LoadOptions { sources: SettingSource::ALL.to_vec(), ..LoadOptions::default() };
    let resolved = toolway_config::load(&options, &ground.env);
    let Some(entry) = resolved.entry(&args.name) else {
        let names: BTreeSet<&str> = resolved.entries.iter().map(|entry| entry.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let problem = Problem::error("is not configured").server(&args.name);
        let problem =
            if names.is_empty() { problem } else { problem.hint(format!("there are {}", names.join(", "))) };
        return Err(problem.into());
    };
    if on {
        return Err(elsewhere(entry).into());
    }
    let scope = if entry.source == Source::Project { Scope::Project } else { Scope::User };
    Ok(if args.scope.named().is_some() { holder } else { ground.own(scope)? })
}

/// Why a server that is in no file of Toolway's own cannot be switched on there.
fn elsewhere(entry: &Entry) -> Problem {
    let problem = match &entry.standing {
        Standing::Disabled { by } => Problem::error(format!("is switched off in {by}")),
        other => Problem::error(format!("is in {}, and is not switched off: {other}", entry.place)),
    };
    problem.server(&entry.name).hint("--in CLIENT changes a client's file")
}
