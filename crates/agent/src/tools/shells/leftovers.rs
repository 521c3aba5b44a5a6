//! Owns finding what a command left behind that is in its process group no more: such processes still carry the variable
//! that each command is given. Linux only, by `/proc`.

use std::fs;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// Ends everything that carries this mark, by force after `grace`; how many processes that were.
pub(super) fn end(mark: &str, grace: Duration) -> usize {
    let mut handles = find(mark);
    let found = handles.len();
    if !grace.is_zero() && !handles.is_empty() {
        signal(&handles, Signal::TERM);
        let limit = Timespec::try_from(grace).ok();
        // One after the other; the first that does not end in time is the last that is waited for.
        handles
            .iter()
            .all(|handle| matches!(poll(&mut [PollFd::new(handle, PollFlags::IN)], limit.as_ref()), Ok(1..)));
        handles = find(mark);
    }
    signal(&handles, Signal::KILL);
    found
}

fn signal(handles: &[OwnedFd], signal: Signal) {
    for handle in handles {
        // It may have ended meanwhile: what was wanted.
        pidfd_send_signal(handle, signal).ok();
    }
}

/// What carries this mark and has not ended.
fn find(mark: &str) -> Vec<OwnedFd> {
    let wanted = format!("{}={mark}", super::process::MARK);
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let marked =
        processes.filter_map(Pid::from_raw).filter(|process| *process != getpid()).filter_map(|process| {
            // The handle first: it stays with the process that is looked at next, whoever gets the number later.
            let handle = pidfd_open(process, PidfdFlags::empty()).ok()?;
            let variables = fs::read(format!("/proc/{}/environ", process.as_raw_nonzero())).ok()?;
            variables.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes()).then_some(handle)
        });
    marked.collect()
}
