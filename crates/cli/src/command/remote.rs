//! `toolway sse` and `toolway streamable-http`: in front of a server at an address.

use crate::args::RemoteArgs;
use crate::compose::UsageError;
use crate::exit::Exit;

/// Which transport the server has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Sse,
    StreamableHttp,
}

/// Runs the relay.
pub(super) fn run(_args: RemoteArgs, kind: Kind) -> Result<Exit, UsageError> {
    Err(UsageError::new(format!("{kind:?}"), "is being built"))
}
