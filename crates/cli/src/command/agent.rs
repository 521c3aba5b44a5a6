//! `toolway agent`: prompts to agents, and what is kept of them.

mod delta;
mod drive;
mod failure;
mod kept;
mod prompt;
mod show;
mod tell;

use toolway_agent::{Agent, AgentError, AgentId, RunId};

use crate::args::{AgentArgs, AgentCommand, KeptArgs, OneArgs};
use crate::compose::agent::kept_options;
use crate::compose::{Environment, UsageError};
use crate::exit::Exit;
use crate::logs;

use failure::Failure;

pub(super) use tell::{not_there, summary};

/// Does what was asked.
pub(super) fn run(args: AgentArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    match args.command {
        AgentCommand::Run(args) => drive::run(*args, &own),
        AgentCommand::Resume(args) => drive::resume(*args, &own),
        AgentCommand::List { all, limit, kept } => {
            look(&kept, &own, |options| kept::list(options, all, limit, kept.json))
        }
        AgentCommand::Show { agent, run, kept } => {
            let (agent, run) = (id(&agent)?, run.as_deref().map(run_id).transpose()?);
            look(&kept, &own, |options| show::show(options, agent, run, kept.json))
        }
        AgentCommand::Cancel { agent, run, kept } => {
            let (agent, run) = (id(&agent)?, run.as_deref().map(run_id).transpose()?);
            look(&kept, &own, |options| kept::cancel(options, agent, run, kept.json))
        }
        AgentCommand::Archive(args) => {
            one(&args, &own, "archived", async |id, options| Agent::archive(&id, &options).await)
        }
        AgentCommand::Unarchive(args) => {
            one(&args, &own, "unarchived", async |id, options| Agent::unarchive(&id, &options).await)
        }
        AgentCommand::Delete(args) => {
            one(&args, &own, "deleted", async |id, options| Agent::delete(&id, &options).await)
        }
    }
}

/// A command that looks at what is kept.
fn look<F: Future<Output = Result<Exit, AgentError>>>(
    kept: &KeptArgs,
    own: &Environment,
    command: impl FnOnce(toolway_agent::AgentOptions) -> F,
) -> Result<Exit, UsageError> {
    logs::start(tracing::level_filters::LevelFilter::WARN);
    let options = kept_options(kept.store.clone(), own)?;
    let done = runtime()?.block_on(command(options));
    Ok(done.unwrap_or_else(|error| Failure::of(&error).tell()))
}

fn one<F: Future<Output = Result<(), AgentError>>>(
    args: &OneArgs,
    own: &Environment,
    done: &str,
    command: impl FnOnce(AgentId, toolway_agent::AgentOptions) -> F,
) -> Result<Exit, UsageError> {
    let id = id(&args.agent)?;
    let json = args.kept.json;
    look(&args.kept, own, |options| async move {
        command(id.clone(), options).await?;
        Ok(kept::said(&id, done, json))
    })
}

/// The runtime of such a command.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, UsageError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|error| UsageError::new("system", error.to_string()))
}

fn id(text: &str) -> Result<AgentId, UsageError> {
    text.parse().map_err(|fault: toolway_agent::IdFault| {
        UsageError::new("AGENT", fault.to_string()).with_hint("toolway agent list shows the ids")
    })
}

fn run_id(text: &str) -> Result<RunId, UsageError> {
    text.parse().map_err(|fault: toolway_agent::IdFault| UsageError::new("RUN", fault.to_string()))
}
