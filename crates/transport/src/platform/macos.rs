//! macOS and other Unix systems without subreapers: process groups and the process table as `ps` prints it.
//! A descendant that leaves both the group and its parents cannot be found here.

use std::ffi::CStr;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, waitpid};

use crate::process_group::{Process, descendants_of, parse_ps_line};

/// Never sent here: supervisors look for their parent from time to time.
pub(crate) const PARENT_ENDED: Signal = Signal::USR1;

/// There are no subreapers here: orphans go to launchd.
#[expect(clippy::unnecessary_wraps, reason = "on Linux it can fail")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

pub(crate) fn adopts_orphans() -> bool {
    false
}

/// There is no such request here.
pub(crate) fn signal_when_parent_ends(_signal: Signal) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The name in the process table is the file's here.
pub(crate) fn name_process(_name: &CStr) {}

/// The descendants of `root`, zombies too, without the subtrees of `except`.
pub(crate) fn descendants(root: i32, except: &[i32]) -> Vec<Process> {
    descendants_of(&process_table(), root, except)
}

/// Sends `signal`, if the process still is the one that was meant.
pub(crate) fn signal(process: &Process, signal: Signal) {
    let same = process_table().iter().any(|now| now.pid == process.pid && now.started == process.started);
    if same && let Some(pid) = Pid::from_raw(process.pid) {
        kill_process(pid, signal).ok();
    }
}

fn process_table() -> Vec<Process> {
    let mut ps = Command::new("/bin/ps");
    ps.args(["-axo", "pid=,ppid=,pgid=,stat=,lstart="]).stdin(Stdio::null()).stderr(Stdio::null());
    ps.env_clear().env("LC_ALL", "C");
    let output = ps.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().filter_map(parse_ps_line).collect()
}

/// All that can be found of an upstream: its process group and the descendants that still have their parents.
#[derive(Debug)]
pub(crate) struct Tree {
    main: Pid,
    status: Option<WaitStatus>,
    /// What was ever seen below the main process, found again by number and start time after its parents ended.
    known: Vec<Process>,
    empty: bool,
}

impl Tree {
    /// The tree below this process, whose main process is `main`.
    pub(crate) fn new(main: Pid) -> Self {
        Self { main, status: None, known: Vec::new(), empty: false }
    }

    /// How the main process ended, once it has.
    pub(crate) fn status(&self) -> Option<WaitStatus> {
        self.status
    }

    /// Whether nothing that could be found is left of it, as of the last [`Tree::collect`].
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Collects the main process if it has ended, and looks for what it left.
    pub(crate) fn collect(&mut self) {
        if self.status.is_none() {
            match waitpid(Some(self.main), WaitOptions::NOHANG) {
                Ok(Some((_, status))) => self.status = Some(status),
                Ok(None) | Err(_) => return,
            }
        }
        self.look();
        self.empty = self.known.is_empty();
    }

    /// Sends `signal` once to every process of the tree.
    pub(crate) fn signal(&mut self, signal: Signal) {
        self.look();
        let group = self.main.as_raw_nonzero().get();
        if self.status.is_none() || self.known.iter().any(|process| process.group == group) {
            kill_process_group(self.main, signal).ok();
        }
        for process in self.known.iter().filter(|process| process.group != group) {
            self::signal(process, signal);
        }
    }

    fn look(&mut self) {
        let table = process_table();
        let group = self.main.as_raw_nonzero().get();
        let mut found = descendants_of(&table, group, &[]);
        let below = found.len();
        for process in &table {
            let known =
                self.known.iter().any(|known| known.pid == process.pid && known.started == process.started);
            if (known || process.group == group) && !found.iter().any(|own| own.pid == process.pid) {
                found.push(process.clone());
            }
        }
        for orphan in found.split_off(below) {
            found.extend(descendants_of(&table, orphan.pid, &[]));
            found.push(orphan);
        }
        found.retain(|process| !process.zombie && process.pid != group);
        self.known = found;
    }

    /// How often to look at the tree while it is being ended: the end of a grandchild is not told.
    #[expect(clippy::unnecessary_wraps, reason = "on Linux there is none")]
    pub(crate) const fn interval() -> Option<Duration> {
        Some(Duration::from_millis(100))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::time::Instant;

    use super::*;

    /// A shell in a group of its own with a child and a grandchild, all deaf to TERM, and their numbers.
    fn stubborn() -> io::Result<(Tree, Vec<i32>)> {
        let script = "trap '' TERM; sh -c 'trap \"\" TERM; sleep 1000 & echo $$ $!; wait' & wait; wait";
        let mut shell = Command::new("/bin/sh");
        let mut main = shell.args(["-c", script]).stdout(Stdio::piped()).process_group(0).spawn()?;
        let mut line = String::new();
        BufReader::new(main.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut line)?;
        let below = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        let pid = i32::try_from(main.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        Ok((Tree::new(pid), below))
    }

    fn until_empty(tree: &mut Tree) {
        let deadline = Instant::now() + Duration::from_secs(40);
        while !tree.is_empty() {
            assert!(Instant::now() < deadline, "{tree:?}");
            std::thread::park_timeout(Duration::from_millis(20));
            tree.collect();
        }
    }

    #[test]
    fn a_tree_is_ended_by_its_group() -> io::Result<()> {
        let (mut tree, below) = stubborn()?;
        tree.signal(Signal::TERM);
        tree.collect();
        assert!(tree.status().is_none() && !tree.is_empty());
        tree.signal(Signal::KILL);
        until_empty(&mut tree);
        assert_eq!(tree.status().and_then(WaitStatus::terminating_signal), Some(9));
        assert!(!process_table().iter().any(|process| below.contains(&process.pid) && !process.zombie));
        Ok(())
    }

    #[test]
    fn what_a_dead_main_process_leaves_is_still_found() -> io::Result<()> {
        let (mut tree, below) = stubborn()?;
        kill_process(tree.main, Signal::KILL)?;
        while tree.status().is_none() {
            std::thread::park_timeout(Duration::from_millis(20));
            tree.collect();
        }
        assert!(!tree.is_empty(), "the group still has members");
        tree.signal(Signal::KILL);
        until_empty(&mut tree);
        assert!(!process_table().iter().any(|process| below.contains(&process.pid) && !process.zombie));
        Ok(())
    }
}
