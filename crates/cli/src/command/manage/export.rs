//! `toolway export`: writes Toolway's servers to a client's file.

use std::io::Write as _;

use toolway_config::{ClientFile, ExportLine, ExportOutcome, Node, Scope, own_servers, plan_export};

use super::{Ground, Refusal, Target, client, servers, short, told};
use crate::args::ExportArgs;
use crate::compose::UsageError;
use crate::exit::Exit;
use crate::show::one_line;

/// Writes the servers.
pub(crate) fn run(args: &ExportArgs) -> Exit {
    told(export(args))
}

fn export(args: &ExportArgs) -> Result<Exit, Refusal> {
    let ground = Ground::new()?;
    let client = client("--to", &args.to)?;
    let scope = args.scope.named().unwrap_or(Scope::User);
    let own = ground.own(scope)?;
    let mut entries = own_servers(own.root());
    if !args.servers.is_empty() {
        for name in &args.servers {
            if !entries.iter().any(|(other, _)| other == name) {
                let error =
                    UsageError::new(name.as_str(), format!("there is no such server in {}", own.shown()));
                return Err(error.with_hint("toolway import takes over those of a client").into());
            }
        }
        entries.retain(|(name, _)| args.servers.contains(name));
    }
    let mut out = std::io::stdout().lock();
    if entries.is_empty() {
        writeln!(out, "there are no servers in {}", short(&own.path, &ground.env))?;
        return Ok(Exit::Done);
    }
    let target = match &args.file {
        Some(path) => {
            let file = ClientFile::given(path.clone(), scope);
            Target::read(file.path, file.format, scope)?
        }
        None => ground.of_client(client, scope)?,
    };
    let inputs = own.root().and_then(|root| root.get("inputs")).and_then(Node::items).unwrap_or_default();
    let inputs: Vec<_> = inputs.iter().map(Node::to_json).collect();
    let plan = plan_export(client, target.root(), &entries, &inputs, args.replace);
    let shown = short(&target.path, &ground.env);
    writeln!(out, "{}: {shown}", client.title)?;
    for line in &plan.lines {
        writeln!(out, "  {}", told_of(line))?;
        if !line.left_out.is_empty() {
            let words: Vec<String> = line.left_out.iter().map(|word| one_line(word, 60)).collect();
            writeln!(out, "      left out, {} has no word for it: {}", client.title, words.join(", "))?;
        }
    }
    let is_written =
        |line: &&ExportLine| matches!(line.outcome, ExportOutcome::Added | ExportOutcome::Changed);
    let written = plan.lines.iter().filter(is_written).count();
    if args.dry_run {
        writeln!(out, "would write {} to {shown}", servers(written))?;
    } else {
        if !plan.changes.is_empty() {
            target.write(&plan.changes)?;
        }
        writeln!(out, "wrote {} to {shown}", servers(written))?;
    }
    let is_refused =
        |line: &ExportLine| matches!(line.outcome, ExportOutcome::Conflict | ExportOutcome::Refused(_));
    Ok(if plan.lines.iter().any(is_refused) { Exit::Ended } else { Exit::Done })
}

fn told_of(line: &ExportLine) -> String {
    let theirs = one_line(&line.theirs, 64);
    let name = if line.theirs == line.name { theirs } else { format!("{} ({theirs})", line.name) };
    match &line.outcome {
        ExportOutcome::Added => format!("+ {name}"),
        ExportOutcome::Changed => format!("~ {name}"),
        ExportOutcome::Same => format!("= {name}"),
        ExportOutcome::Conflict => {
            format!("! {name}: another server of that name is there; --replace replaces it")
        }
        ExportOutcome::Refused(reason) => format!("! {name}: {}", one_line(reason, 200)),
    }
}
