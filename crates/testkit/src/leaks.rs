//! What must not be left: processes, ports, open files, temporary files. Linux: it reads /proc.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Finds what a test has started by a word that is unique to it, in argument lists and environments.
#[derive(Debug)]
pub struct Leaks {
    mark: String,
}

impl Leaks {
    /// `mark` is unique to the test, and is given to every process that it starts.
    pub fn new(mark: &str) -> Self {
        Self { mark: mark.to_owned() }
    }

    /// The processes that carry the mark: pid and command line. This process itself is none of them.
    pub fn processes(&self) -> Vec<(u32, String)> {
        let own = std::process::id();
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != own && !is_zombie(*pid))
            .filter_map(|pid| {
                let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
                let command = read("cmdline");
                let text = [command.clone(), read("environ")].concat();
                let marked = String::from_utf8_lossy(&text).contains(&self.mark);
                let shown = String::from_utf8_lossy(&command).replace('\0', " ");
                marked.then_some((pid, shown))
            })
            .collect()
    }

    /// Fails unless all marked processes, and with them their ports, are gone by the deadline.
    pub fn check(&self, within: Duration) -> Result<()> {
        let end = Instant::now() + within;
        loop {
            let left = self.processes();
            let Some((pid, _)) = left.first() else {
                return Ok(());
            };
            let time = end.saturating_duration_since(Instant::now());
            if time.is_zero() || !wait_for_end(*pid, time)? {
                let ports: Vec<_> = left.iter().map(|(pid, _)| listening(*pid)).collect();
                bail!("left behind after {within:?}: {left:?}, listening on {ports:?}");
            }
        }
    }
}

/// Waits until a process that need not be a child has ended; false when the time is over first.
pub fn wait_for_end(pid: u32, within: Duration) -> Result<bool> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(true);
    };
    let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
        return Ok(true);
    };
    let time = Timespec::try_from(within)?;
    let mut polled = [PollFd::new(&process, PollFlags::IN)];
    loop {
        match poll(&mut polled, Some(&time)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The TCP ports that a process listens on.
pub fn listening(pid: u32) -> BTreeSet<u16> {
    let sockets: BTreeSet<String> = open_files(pid)
        .into_iter()
        .filter_map(|target| Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let listens = |line: &str| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let port = columns.get(1)?.rsplit(':').next()?;
        let open = columns.get(3) == Some(&"0A") && sockets.contains(*columns.get(9)?);
        open.then(|| u16::from_str_radix(port, 16).ok()).flatten()
    };
    let tables = tables.into_iter().flatten();
    tables.flat_map(|table| table.lines().filter_map(listens).collect::<Vec<_>>()).collect()
}

/// What the open file descriptors of a process point at.
pub fn open_files(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .map(|target| target.to_string_lossy().into_owned())
        .collect()
}

/// The largest resident size of a process so far, in bytes.
pub fn peak_memory(pid: u32) -> Option<u64> {
    status(pid, "VmHWM:")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// A process and all that it has started, as far as they still are its descendants.
pub fn tree(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let tasks = fs::read_dir(format!("/proc/{parent}/task"));
        for task in tasks.into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
        at += 1;
    }
    found
}

/// The processor time that a process has used, in clock ticks (usually a hundredth of a second).
pub fn processor_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let rest: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    Some(rest.get(11)?.parse::<u64>().ok()? + rest.get(12)?.parse::<u64>().ok()?)
}

/// All files below a directory.
pub fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .flat_map(|entry| {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) { files(&path) } else { vec![path] }
        })
        .collect();
    found.sort();
    found
}

fn is_zombie(pid: u32) -> bool {
    status(pid, "State:").is_none_or(|state| state == "Z" || state == "X")
}

fn status(pid: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process::{Command, Stdio};

    #[test]
    fn a_marked_process_is_found_until_it_has_ended() {
        let leaks = Leaks::new("testkit-leaks-mark-1");
        let mut child = Command::new("cat")
            .env("MARK", "testkit-leaks-mark-1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The environment can be read only once the program itself runs, a little after `spawn` has returned.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        assert_eq!(leaks.processes()[0].0, child.id());
        let error = leaks.check(Duration::from_millis(10)).unwrap_err();
        assert!(error.to_string().contains("left behind"), "{error}");
        drop(child.stdin.take());
        leaks.check(Duration::from_secs(10)).unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn own_ports_memory_and_children_are_seen() {
        let own = std::process::id();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listening(own).contains(&port));
        drop(listener);
        assert!(!listening(own).contains(&port));
        assert!(peak_memory(own).unwrap() > 100_000);
        assert!(tree(1).len() > 1 && processor_ticks(own).is_some());
    }
}
