//! The subcommands: each takes its composed settings and gives an exit.

mod acp;
mod agent;
mod bridge;
mod call;
mod chat;
mod completions;
mod config;
mod daemon;
mod doctor;
mod list;
mod man;
mod manage;
mod person;
mod ping;
mod prompt;
mod query;
mod quickstart;
mod read;
mod remote;
mod saved;
mod serve;
mod server_name;
mod shell;
mod sign_in;
mod stdio;
mod tools;
mod trust;

use crate::args::{Cli, Command};
use crate::compose::UsageError;
use crate::exit::{Exit, complain};

/// Runs what was asked for.
pub(crate) fn run(cli: Cli) -> Exit {
    let result = match cli.command {
        Command::Stdio(args) => stdio::run(args),
        Command::Sse(args) => remote::run(args, remote::Kind::Sse),
        Command::StreamableHttp(args) => remote::run(args, remote::Kind::StreamableHttp),
        Command::Serve(args) => serve::run(*args),
        Command::Daemon(args) => daemon::run(&args),
        Command::Bridge(args) => bridge::run(args),
        Command::Agent(args) => agent::run(args),
        Command::Chat(args) => chat::run(*args),
        Command::Acp(args) => acp::run(*args),
        Command::Saved(args) => saved::run(args),
        Command::List(args) => Ok(list::run(&args)),
        Command::Tools(args) => Ok(tools::run(&args)),
        Command::Call(args) => Ok(call::run(&args)),
        Command::Read(args) => Ok(read::run(&args)),
        Command::Prompt(args) => Ok(prompt::run(&args)),
        Command::Ping(args) => Ok(ping::run(&args)),
        Command::Import(args) => Ok(manage::import(&args)),
        Command::Export(args) => Ok(manage::export(&args)),
        Command::Add(args) => Ok(manage::add(&args)),
        Command::Remove(args) => Ok(manage::remove(&args)),
        Command::Enable(args) => Ok(manage::switch(&args, true)),
        Command::Disable(args) => Ok(manage::switch(&args, false)),
        Command::Login(args) => Ok(sign_in::login(&args)),
        Command::Logout(args) => Ok(sign_in::logout(&args)),
        Command::Auth(args) => Ok(sign_in::auth(&args)),
        Command::Doctor(args) => Ok(doctor::run(&args)),
        Command::Config(args) => Ok(config::run(&args)),
        Command::Trust(args) => Ok(trust::run(&args)),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args),
        Command::Quickstart(args) => quickstart::run(args),
        Command::Demo => Ok(crate::demo::run()),
        Command::Query(args) => query::run(&args),
    };
    result.unwrap_or_else(|error| {
        complain(&error, error.hint().as_deref());
        Exit::Usage
    })
}

/// A standard stream as a file of its own, without a buffer in between.
#[cfg(unix)]
fn stream(stream: impl std::os::fd::AsFd) -> Result<std::fs::File, UsageError> {
    let owned = stream.as_fd().try_clone_to_owned();
    owned.map(Into::into).map_err(|error| UsageError::new("standard streams", error.to_string()))
}

/// A standard stream as a file of its own, without a buffer in between.
#[cfg(windows)]
fn stream(stream: impl std::os::windows::io::AsHandle) -> Result<std::fs::File, UsageError> {
    let owned = stream.as_handle().try_clone_to_owned();
    owned.map(Into::into).map_err(|error| UsageError::new("standard streams", error.to_string()))
}

/// The signals that end the program, as they come; the iterator blocks.
#[cfg(unix)]
fn signals() -> Result<impl Iterator<Item = i32> + Send + 'static, UsageError> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| UsageError::new("signals", error.to_string()))?;
    Ok(std::iter::from_fn(move || signals.forever().next()))
}

/// Windows ends the program itself, and the job object ends what it started.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn signals() -> Result<impl Iterator<Item = i32> + Send + 'static, UsageError> {
    Ok(std::iter::empty())
}

/// Logs what was not passed on.
fn sum_up(relay: &toolway_proxy::Relay) {
    let counts = relay.counts();
    tracing::info!(
        ignored_lines = counts.ignored_lines,
        stray_answers = counts.stray_answers,
        faults = counts.faults,
        replaced = counts.replaced,
        "the session is over"
    );
}
