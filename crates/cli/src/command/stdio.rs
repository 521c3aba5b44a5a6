//! `toolway stdio`: in front of a child process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolway_proxy::{Relay, run_stdio, run_unstarted};
use toolway_transport::command::{FileSystem, Search, batch_arguments_fault, is_batch_file, resolve};
use toolway_transport::environment::environment;
use toolway_transport::{Child, ChildConfig, Platform, supervisor};

use super::server_name::server_name;
use crate::args::StdioArgs;
use crate::compose::{self, Environment, UsageError, common, variable};
use crate::exit::Exit;
use crate::logs;

/// Runs the relay.
pub(super) fn run(args: StdioArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    let common = common(args.common, &own)?;
    let given = args.env.iter().map(|pair| variable(pair, &own)).collect::<Result<Vec<_>, _>>()?;
    let inherit =
        args.inherit_env || own.option(None, "inherit-env", None)?.is_some_and(|value| value.text != "0");
    let cwd = own.option(args.cwd, "cwd", None)?.map(|value| PathBuf::from(value.text));
    let (program, arguments) =
        args.upstream.split_first().ok_or_else(|| UsageError::new("COMMAND", "is missing"))?;
    let _known = compose::arguments(arguments.iter().filter_map(|argument| argument.to_str()));
    logs::start(common.log);
    let name = server_name(program, arguments);
    let relay = Arc::new(Relay::new(common.relay(name)));
    let input = super::stream(std::io::stdin())?;
    let output = super::stream(std::io::stdout())?;
    let set: Vec<(OsString, OsString)> =
        given.iter().map(|(name, value)| (name.into(), value.expose().into())).collect();
    let variables = environment(own.all(), &set, inherit, Platform::CURRENT);
    let signals = super::signals()?;
    if let Err(error) = supervisor::adopt_orphans() {
        tracing::debug!(%error, "descendants cannot be adopted");
    }
    relay.purge();
    let started = find(program, &variables.variables, cwd.as_deref()).and_then(|program| {
        if is_batch_file(&program, Platform::CURRENT)
            && let Some(fault) = batch_arguments_fault(arguments)
        {
            return Err(fault.to_owned());
        }
        let config = ChildConfig {
            program,
            args: arguments.to_vec(),
            env: variables.variables.clone(),
            cwd,
            supervise: supervisor::own_binary().ok(),
        };
        Child::spawn(&config).map_err(|error| error.to_string())
    });
    let ending = match started {
        Ok(child) => run_stdio(&relay, child, (input, output), signals, logs::forward_stderr),
        Err(reason) => unstarted(&relay, &reason, &variables.not_passed, (input, output), signals),
    };
    super::sum_up(&relay);
    logs::finish();
    Ok(ending.into())
}

fn unstarted(
    relay: &Arc<Relay>,
    reason: &str,
    not_passed: &[OsString],
    streams: (File, File),
    signals: impl Iterator<Item = i32> + Send + 'static,
) -> toolway_proxy::Ending {
    let reason = format!("cannot start the server: {reason}");
    tracing::error!("{reason}");
    tracing::info!(names = ?not_passed, "variables that the server does not get; --env or --inherit-env pass them");
    run_unstarted(relay, &reason, streams, signals)
}

/// The program's file, or why there is none.
fn find(
    program: &OsStr,
    variables: &std::collections::BTreeMap<OsString, OsString>,
    cwd: Option<&Path>,
) -> Result<PathBuf, String> {
    let here = std::env::current_dir().unwrap_or_default();
    let cwd = cwd.map_or_else(|| here.clone(), |cwd| here.join(cwd));
    let look = |name: &str| variables.get(OsStr::new(name)).map(OsString::as_os_str);
    let search = Search {
        path: look("PATH"),
        path_ext: look("PATHEXT"),
        cwd: cwd.as_os_str(),
        home: look(if cfg!(windows) { "USERPROFILE" } else { "HOME" }),
        platform: Platform::CURRENT,
    };
    resolve(program, &search, &FileSystem).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}
