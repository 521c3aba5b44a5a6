//! Owns what a program of its own does first, so that it can be its own helper: the process that ends what servers have
//! started, the one that closes a sandbox around itself, and the one that reads saved results within bounds.

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use toolway_transport::supervisor;

static BEGUN: AtomicBool = AtomicBool::new(false);

/// To be called first thing in `main`, with the program's arguments (`std::env::args_os()`): where the program was started
/// as its own helper, it does that work and gives the exit code to return. Otherwise `None`, and from then on
/// [`crate::Machine::here`] knows that this program can be its own helper. A program that never calls this has servers
/// all the same: they are its direct children, and what they have started ends with their process group.
pub fn begin(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let code = crate::sandbox::run_sandboxed(arguments.iter().cloned())
        .or_else(|| toolway_guard::query_process(arguments.iter().cloned()))
        .or_else(|| supervisor::run(arguments));
    if code.is_none() {
        BEGUN.store(true, Ordering::Relaxed);
    }
    code
}

/// The program's `main` has begun so.
pub(crate) fn has_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}
