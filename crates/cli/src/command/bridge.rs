//! `toolway bridge`: tools of a host application, offered to the agent that it drives; the host speaks at stdin and stdout.

use tokio::task::JoinSet;
use toolway_agent::LocalPort;
use toolway_bridge::{HostEnding, serve_host, serve_host_with};
use toolway_transport::{AsyncInput, AsyncOutput};

use super::serve::signals;
use crate::args::BridgeArgs;
use crate::compose::bridge::Bridging;
use crate::compose::{Environment, UsageError};
use crate::exit::Exit;
use crate::logs;

/// Serves one host.
pub(super) fn run(args: BridgeArgs) -> Result<Exit, UsageError> {
    let own = Environment::read();
    let Bridging { protocol, log, agent } = Bridging::new(args, &own)?;
    logs::start(log);
    more_files();
    let system = |error: std::io::Error| UsageError::new("system", error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let mut signals = signals()?;
    let ending: Result<HostEnding, UsageError> = runtime.block_on(async {
        let input = AsyncInput::stdin().map_err(system)?;
        let output = AsyncOutput::stdout().map_err(system)?;
        let signal = async move {
            match signals.recv().await {
                Some(signal) => signal,
                None => std::future::pending().await,
            }
        };
        // A task of its own: waking the first future of a runtime costs a system call, and every call wakes it.
        let mut tasks = JoinSet::new();
        match agent {
            None => tasks.spawn(serve_host(protocol, input, output, signal)),
            Some(options) => {
                tasks.spawn(serve_host_with(protocol, LocalPort::new(options), input, output, signal))
            }
        };
        match tasks.join_next().await {
            Some(Ok(ending)) => Ok(ending),
            _ => Err(UsageError::new("system", "the bridge broke off".to_owned())),
        }
    });
    runtime.block_on(toolway_auth::settle());
    logs::finish();
    // A thread may still wait for the host's input: it ends with the process.
    runtime.shutdown_background();
    Ok(match ending? {
        HostEnding::Closed => Exit::Done,
        HostEnding::HostGone => Exit::Ended,
        HostEnding::Signal(signal) => Exit::Signal(u8::try_from(signal).unwrap_or(0)),
    })
}

/// Every connection of an agent is an open file, and the usual limit of 1024 is soon reached: raises it, within what the
/// process may have. Best effort.
#[cfg(unix)]
fn more_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    // Some systems refuse more than a number of their own, whatever they say the most is.
    const WANTED: [u64; 2] = [65_536, 10_240];
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    for wanted in WANTED {
        let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
        if current.is_none_or(|current| current >= wanted) {
            return;
        }
        match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, wanted, "the limit of open files could not be raised"),
        }
    }
}

#[cfg(not(unix))]
fn more_files() {}
