//! Linux: child subreaper, parent-death signal, the process table in `/proc`, and signals through pidfds, which
//! cannot hit a process that only inherited the number.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_parent_process_death_signal, wait,
};

use crate::process_group::{Process, descendants_of};

/// The signal by which the kernel tells a supervisor that its parent (the thread that started it) has ended.
/// Not TERM: a thread of the parent may end while the parent goes on, so the receiver has to look.
pub(crate) const PARENT_ENDED: Signal = Signal::USR1;

/// From now on descendants whose parents end become children of this process instead of init's.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)
}

/// Whether this process adopts orphans, see [`adopt_orphans`].
pub(crate) fn adopts_orphans() -> bool {
    matches!(rustix::process::child_subreaper(), Ok(Some(_)))
}

/// Asks the kernel for `signal` when the parent ends. The caller then checks that the parent is still there: a
/// death before this call is not told.
pub(crate) fn signal_when_parent_ends(signal: Signal) -> io::Result<()> {
    set_parent_process_death_signal(Some(signal)).map_err(io::Error::from)
}

/// Sets the name that the process table shows for this process (at most 15 bytes). Main thread only.
pub(crate) fn name_process(name: &CStr) {
    rustix::thread::set_name(name).ok();
}

/// The descendants of `root`, zombies too, without the subtrees of `except`. Empty where `/proc` is not mounted.
pub(crate) fn descendants(root: i32, except: &[i32]) -> Vec<Process> {
    descendants_of(&process_table(), root, except)
}

/// Sends `signal` to exactly this process: not to another one that has got its number meanwhile.
pub(crate) fn signal(process: &Process, signal: Signal) {
    let Some(pid) = Pid::from_raw(process.pid) else { return };
    let handle = pidfd_open(pid, PidfdFlags::empty());
    let same = look(process.pid).is_some_and(|now| now.started == process.started);
    if same {
        // A process that has ended meanwhile is what was wanted.
        match handle {
            Ok(handle) => pidfd_send_signal(handle, signal).ok(),
            Err(_) => kill_process(pid, signal).ok(),
        };
    }
}

fn process_table() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter_map(look).collect()
}

fn look(pid: i32) -> Option<Process> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads `/proc/PID/stat` (`man 5 proc`). The second field, the name, may hold spaces and parentheses.
fn parse_stat(stat: &[u8]) -> Option<Process> {
    let name_begin = stat.iter().position(|&byte| byte == b'(')?;
    let name_end = stat.iter().rposition(|&byte| byte == b')')?;
    let pid = std::str::from_utf8(stat.get(..name_begin)?).ok()?.trim().parse().ok()?;
    let mut fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let started = fields.nth(16)?.to_owned();
    Some(Process { pid, parent, group, started, zombie: matches!(state, "Z" | "X") })
}

/// All that runs below a supervisor: the upstream's main process and whatever came of it. The supervisor is a
/// subreaper, so everything below it sooner or later becomes its own child, and "no child left" is the truth.
#[derive(Debug)]
pub(crate) struct Tree {
    main: Pid,
    status: Option<WaitStatus>,
    empty: bool,
}

impl Tree {
    /// The tree below this process, whose main process is `main`.
    pub(crate) fn new(main: Pid) -> Self {
        Self { main, status: None, empty: false }
    }

    /// How the main process ended, once it has.
    pub(crate) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Whether nothing is left of it, as of the last [`Tree::collect`].
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Collects every child that has ended. Never waits.
    pub(crate) fn collect(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.main => self.status = Some(status),
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return,
                Err(_) => {
                    self.empty = true;
                    return;
                }
            }
        }
    }

    /// Sends `signal` once to every process of the tree.
    pub(crate) fn signal(&mut self, signal: Signal) {
        // Until the main process is collected its number, and so its group's, cannot belong to anyone else.
        let group = if self.status.is_none() { self.main.as_raw_nonzero().get() } else { 0 };
        if group != 0 {
            kill_process_group(self.main, signal).ok();
        }
        let mut found = descendants(getpid().as_raw_nonzero().get(), &[]);
        found.retain(|process| process.group != group && !process.zombie);
        for process in &found {
            self::signal(process, signal);
        }
    }

    /// How often to look at the tree while it is being ended; `None`: SIGCHLD tells everything.
    pub(crate) const fn interval() -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_read_whatever_the_name() {
        let rest = "S 10 12 13 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 2 3";
        for name in ["cat", "a b", "a) S 99 (b", ")", "((", ""] {
            let expected =
                Process { pid: 7, parent: 10, group: 12, started: "4711".to_owned(), zombie: false };
            assert_eq!(parse_stat(format!("7 ({name}) {rest}\n").as_bytes()), Some(expected), "{name:?}");
        }
    }

    #[test]
    fn broken_stat_lines_are_no_process() {
        for line in ["", "7", "7 (cat", "x (cat) S 1 1 1", "7 (cat) S", "7 (cat) S 1 2 3 4", ") 7 ("] {
            assert_eq!(parse_stat(line.as_bytes()), None, "{line:?}");
        }
    }

    #[test]
    fn zombies_are_known() {
        let line = b"7 (cat) Z 10 12 13 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 2 3";
        assert!(parse_stat(line).is_some_and(|process| process.zombie));
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = getpid().as_raw_nonzero().get();
        assert!(process_table().iter().any(|process| process.pid == own && !process.zombie));
    }
}
