//! Owns the process of its own that a query runs in: it bounds itself first, so that no filter can take more than its share
//! of the machine, even when the one that started it is gone.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use super::{QUERY_COMMAND, answer_query};
use crate::{Store, StoreConfig};

/// Address space, in bytes; the stack of the filter's thread is a sixth of it.
#[cfg(unix)]
const MEMORY: u64 = 1536 << 20;

/// For programs that name themselves as [`crate::QueryProcess::program`], first thing in `main`: where the arguments (the
/// program's own name first) are those of a query, it is answered, and the exit code is given.
pub fn query_process(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != QUERY_COMMAND {
        return None;
    }
    let words: Vec<OsString> = arguments.collect();
    Some(if answered(words).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn answered(words: Vec<OsString>) -> io::Result<()> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    let [seconds, _, dir, session, id, filter] = <[OsString; 6]>::try_from(words).map_err(|_| wrong())?;
    let text = |word: OsString| word.into_string().map_err(|_| wrong());
    bound_query(text(seconds)?.parse().map_err(|_| wrong())?)?;
    let store = Store::new(StoreConfig::new(PathBuf::from(dir)));
    let mut out = BufWriter::new(io::stdout());
    answer_query(&store, &text(session)?, &text(id)?, &text(filter)?, &mut out)?;
    out.flush()
}

/// Bounds this process: the kernel ends it when its time is over; an allocation over the bound fails, which aborts it.
#[cfg(unix)]
pub fn bound_query(seconds: u64) -> io::Result<()> {
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

/// Windows: who started this process ends it when its time is over.
#[cfg(windows)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
pub fn bound_query(_seconds: u64) -> io::Result<()> {
    Ok(())
}
