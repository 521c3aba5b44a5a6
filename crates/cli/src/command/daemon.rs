//! `toolway daemon`: one copy of each server for all gateways of a user that share; and the gateways' way to it.

use toolway_proxy::gateway::ServerEntry;

use crate::args::DaemonArgs;
use crate::compose::{Environment, UsageError};
use crate::exit::Exit;

#[cfg(unix)]
mod unix;

/// Runs the daemon, looks at it, or ends it.
#[cfg(unix)]
pub(super) fn run(args: &DaemonArgs) -> Result<Exit, UsageError> {
    unix::run(args)
}

/// The entries, with those that can be shared run by the daemon.
#[cfg(unix)]
pub(super) fn share(entries: Vec<ServerEntry>, own: &Environment) -> Result<Vec<ServerEntry>, UsageError> {
    unix::share(entries, own)
}

#[cfg(windows)]
pub(super) fn run(_: &DaemonArgs) -> Result<Exit, UsageError> {
    Err(UsageError::new("daemon", "is not there on Windows yet"))
}

#[cfg(windows)]
pub(super) fn share(_: Vec<ServerEntry>, _: &Environment) -> Result<Vec<ServerEntry>, UsageError> {
    Err(UsageError::new("--shared", "is not there on Windows yet"))
}
