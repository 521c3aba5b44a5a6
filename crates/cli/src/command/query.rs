//! `toolway __query`: one query of a relay's read-back tool. Bounds this process first, so that no filter can take
//! more than its share of the machine, even when the relay is gone.

use std::io::{self, BufWriter, Write};

use toolway_guard::{Store, StoreConfig, answer_query};

use crate::args::QueryArgs;
use crate::compose::UsageError;
use crate::exit::Exit;

/// Address space, in bytes; the stack of the filter's thread is a sixth of it.
#[cfg(unix)]
const MEMORY: u64 = 1536 << 20;

/// Runs the query. What goes wrong with it is an answer too, so the exit says only whether it was given.
pub(super) fn run(args: &QueryArgs) -> Result<Exit, UsageError> {
    bound(args.seconds).map_err(|error| UsageError::new("limits", error.to_string()))?;
    let store = Store::new(StoreConfig::new(args.dir.clone()));
    let mut out = BufWriter::new(super::stream(io::stdout())?);
    let written = answer_query(&store, &args.session, &args.id, &args.filter, &mut out);
    Ok(if written.and_then(|()| out.flush()).is_ok() { Exit::Done } else { Exit::Ended })
}

/// The kernel ends the process when its time is over; an allocation over the bound fails, which aborts it.
#[cfg(unix)]
fn bound(seconds: u64) -> io::Result<()> {
    use rustix::process::Resource;
    // Its end is expected and leaves no core file.
    lower(Resource::Core, 0)?;
    lower(Resource::Cpu, seconds)?;
    match lower(Resource::As, MEMORY) {
        // Not every system bounds the address space; the time bounds what can be filled there.
        Err(_) if !cfg!(target_os = "linux") => Ok(()),
        bounded => bounded,
    }
}

#[cfg(unix)]
fn lower(resource: rustix::process::Resource, most: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let now = getrlimit(resource);
    let most = now.maximum.map_or(most, |maximum| maximum.min(most));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Windows: the relay ends this process when its time is over.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
fn bound(_seconds: u64) -> io::Result<()> {
    Ok(())
}
