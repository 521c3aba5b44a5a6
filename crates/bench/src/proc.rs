//! The processes of a front, out of /proc: its tree without the upstream, their CPU time and their memory. Linux
//! only, as the measurements are.

use std::collections::HashMap;
use std::fs;

use rustix::process::{Pid, Signal};

use crate::sys;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    parent: i32,
    cpu_ticks: u64,
    state: char,
}

/// What a front uses, all its processes together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_us: f64,
    pub(crate) rss_kib: u64,
    /// Proportional: pages that processes share are counted once.
    pub(crate) pss_kib: u64,
    /// Peak since the start or the last `reset_peak`.
    pub(crate) peak_kib: u64,
    pub(crate) processes: usize,
}

fn stat(pid: i32) -> Option<Process> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |i: usize| fields.get(i)?.parse::<u64>().ok();
    Some(Process {
        pid,
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        cpu_ticks: ticks(11)? + ticks(12)?,
    })
}

fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| stat(e.file_name().to_str()?.parse().ok()?)).collect()
}

/// Whether this process is a `toolway-bench server`.
pub(crate) fn is_upstream(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut args = line.split(|c| *c == 0);
    args.next().is_some_and(|program| program.ends_with(b"toolway-bench")) && args.next() == Some(b"server")
}

/// `root` and its descendants.
pub(crate) fn tree(root: i32) -> Vec<Process> {
    let all = all();
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in &all {
        children.entry(process.parent).or_default().push(process);
    }
    let mut out: Vec<Process> = all.iter().filter(|p| p.pid == root).copied().collect();
    let mut next = vec![root];
    while let Some(parent) = next.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            next.push(child.pid);
            out.push(**child);
        }
    }
    out
}

fn front(root: i32) -> Vec<Process> {
    tree(root).into_iter().filter(|p| p.pid == root || !is_upstream(p.pid)).collect()
}

fn kib(file: &str, pid: i32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = text.lines().find(|l| l.starts_with(key));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// `schedstat` of the live threads has nanoseconds where the kernel keeps them, else user and system time in ticks.
/// Threads that ended count only in the ticks, so these are taken once the two differ by more than rounding.
fn cpu_us(process: &Process) -> f64 {
    let tick = 1e6 / sys::float(rustix::param::clock_ticks_per_second());
    let ticks = sys::float(process.cpu_ticks) * tick;
    let threads = fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten().flatten();
    let fine: f64 = threads
        .filter_map(|t| fs::read_to_string(t.path().join("schedstat")).ok())
        .filter_map(|s| s.split(' ').next()?.parse::<f64>().ok())
        .sum::<f64>()
        / 1000.0;
    if fine > 0.0 && (ticks - fine) < 2.0 * tick { fine } else { ticks }
}

/// The use of the front whose first process is `root`.
pub(crate) fn usage(root: i32) -> Usage {
    let mut sum = Usage::default();
    for process in front(root) {
        sum.cpu_us += cpu_us(&process);
        sum.rss_kib += kib("status", process.pid, "VmRSS:");
        sum.peak_kib += kib("status", process.pid, "VmHWM:");
        sum.pss_kib += kib("smaps_rollup", process.pid, "Pss:");
        sum.processes += 1;
    }
    sum
}

/// Open descriptors of the front, all its processes together.
pub(crate) fn descriptors(root: i32) -> usize {
    let open =
        |process: &Process| fs::read_dir(format!("/proc/{}/fd", process.pid)).map_or(0, Iterator::count);
    front(root).iter().map(open).sum()
}

/// Sets the peak of the front back to its present size.
pub(crate) fn reset_peak(root: i32) {
    for process in front(root) {
        fs::write(format!("/proc/{}/clear_refs", process.pid), "5").ok();
    }
}

pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|p| p.state != 'Z' && p.state != 'X')
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid).filter(|_| pid > 1) {
        rustix::process::kill_process(pid, signal).ok();
    }
}

/// Ends a tree that this run started: the ids are read first, so children that are re-parented go too.
pub(crate) fn kill_tree(root: i32) {
    for process in tree(root) {
        signal(process.pid, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> i32 {
        i32::try_from(std::process::id()).expect("ids are small")
    }

    #[test]
    fn tree_has_the_child_until_it_is_killed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let pid = i32::try_from(child.id()).expect("ids are small");
        assert!(front(own()).iter().any(|p| p.pid == pid));
        assert!(is_alive(pid) && !is_upstream(pid));
        signal(pid, Signal::KILL);
        child.wait().expect("child ends");
        assert!(!is_alive(pid));
    }

    #[test]
    fn usage_of_this_process_is_plausible() {
        let usage = usage(own());
        assert!(usage.processes >= 1 && usage.rss_kib > 500 && usage.peak_kib >= usage.rss_kib / 2);
        assert!(usage.pss_kib > 0 && usage.pss_kib <= usage.rss_kib);
    }
}
