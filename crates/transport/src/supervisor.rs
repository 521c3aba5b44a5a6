//! The small process between a relay and its upstream: our own binary, re-executed. It owns the upstream's whole
//! process tree and ends it when asked, when the relay dies, or when the upstream's main process is gone. It
//! touches no data: the upstream inherits the relay's pipes. Knows no messages. Windows has job objects instead.

#[cfg(unix)]
mod supervision;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::platform;

/// The first argument that makes our binary a supervisor: `__supervise PARENT -- COMMAND [ARGS...]`.
#[cfg(unix)]
pub(crate) const SUPERVISE: &str = "__supervise";
/// Exit code of a supervisor that could not start its command; the line on stderr that says why begins with
/// [`CANNOT_START`].
pub const EXIT_CANNOT_START: u8 = 125;
/// How the one line on stderr begins when the command could not be started. Command and reason follow.
pub const CANNOT_START: &str = "toolway-supervisor: cannot start ";

/// Becomes a supervisor when the arguments (the program's name first) ask for it, and returns its exit code when
/// all is over; `None`: the arguments are the program's own. To be called first thing in `main`, on the main
/// thread and before anything has started another one.
///
/// The exit code is the upstream's own. If a signal ended the upstream, this process ends by the same signal and
/// the call does not return.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    #[cfg(unix)]
    return supervision::run(arguments.into_iter().skip(1));
    #[cfg(windows)]
    return arguments.into_iter().next().and(None);
}

/// Our own binary, for [`ChildConfig::supervise`](crate::ChildConfig::supervise). While it runs, an update may have
/// put another file in its place or none: then Linux still has the one that runs.
pub fn own_binary() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    let running = PathBuf::from("/proc/self/exe");
    Ok(if !path.is_file() && running.exists() { running } else { path })
}

/// Binds to this process whatever is started below it, even if a supervisor is killed: on Linux descendants whose
/// parents end become our children, on Windows they end with us, elsewhere nothing happens. For the relay, before
/// it starts its first child. A process that called this starts children by [`Child`](crate::Child) only: others
/// would be taken for orphans and ended.
pub fn adopt_orphans() -> io::Result<()> {
    platform::adopt_orphans()
}
