//! What belongs to one upstream and in which order it is stopped: pure decisions over plain values. Knows no
//! clock, no signal numbers and no operating system.

use std::collections::HashSet;
use std::time::Duration;

/// How long each step of the stop sequence may take before the next one: 2 seconds, as the lifecycle section of
/// MCP 2025-11-25 leaves to the client ("within a reasonable time").
pub const GRACE: Duration = Duration::from_secs(2);

/// One step towards the end of an upstream, from gentle to final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopStep {
    /// Close the upstream's standard input: a well-behaved server exits by itself.
    CloseInput,
    /// Ask every process of the tree to end (SIGTERM; Windows has no such request and goes on to `Kill`).
    Terminate,
    /// End every process of the tree by force.
    Kill,
}

/// The order in which an upstream is stopped, without clock and without processes: the caller carries out each
/// step, waits at most as long as it says, and asks for the next one only while something is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopSequence {
    next: Option<StopStep>,
    grace: Duration,
}

impl StopSequence {
    /// A sequence that begins with `first` and waits `grace` after each step.
    pub fn new(first: StopStep, grace: Duration) -> Self {
        Self { next: Some(first), grace }
    }

    /// The next step and how long to wait for its effect; `None` when all has been tried.
    pub fn advance(&mut self) -> Option<(StopStep, Duration)> {
        let step = self.next?;
        self.next = match step {
            StopStep::CloseInput => Some(StopStep::Terminate),
            StopStep::Terminate => Some(StopStep::Kill),
            StopStep::Kill => None,
        };
        Some((step, self.grace))
    }
}

/// One process as the process table showed it. A process number alone is never trusted: `started` tells whether
/// it is still the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// When it started, in the platform's own spelling; compared for equality only.
    pub(crate) started: String,
    /// Ended already, but not yet collected by its parent.
    pub(crate) zombie: bool,
}

/// The descendants of `root` in a snapshot of the process table, zombies too, without `root` itself and without
/// the subtrees of `except`.
pub(crate) fn descendants_of(table: &[Process], root: i32, except: &[i32]) -> Vec<Process> {
    let mut found = Vec::new();
    let mut seen: HashSet<i32> = except.iter().copied().collect();
    let mut queue = vec![root];
    while let Some(parent) = queue.pop() {
        for process in table.iter().filter(|process| process.parent == parent && process.pid != root) {
            if seen.insert(process.pid) {
                queue.push(process.pid);
                found.push(process.clone());
            }
        }
    }
    found
}

/// Reads one line of `ps -o pid=,ppid=,pgid=,stat=,lstart=`.
#[cfg(any(test, all(unix, not(target_os = "linux"))))]
pub(crate) fn parse_ps_line(line: &str) -> Option<Process> {
    let mut fields = line.split_ascii_whitespace();
    let pid = fields.next()?.parse().ok()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let zombie = fields.next()?.starts_with('Z');
    let started = fields.collect::<Vec<_>>().join(" ");
    Some(Process { pid, parent, group, started, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, group: pid, started: String::new(), zombie: false }
    }

    fn pids(found: &[Process]) -> Vec<i32> {
        let mut pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        pids
    }

    #[test]
    fn stop_sequence_goes_from_gentle_to_final_and_ends() {
        let table = [
            (StopStep::CloseInput, vec![StopStep::CloseInput, StopStep::Terminate, StopStep::Kill]),
            (StopStep::Terminate, vec![StopStep::Terminate, StopStep::Kill]),
            (StopStep::Kill, vec![StopStep::Kill]),
        ];
        for (first, expected) in table {
            let mut sequence = StopSequence::new(first, GRACE);
            let mut steps = Vec::new();
            while let Some((step, wait)) = sequence.advance() {
                assert_eq!(wait, Duration::from_secs(2));
                steps.push(step);
            }
            assert_eq!(steps, expected, "from {first:?}");
            assert_eq!(sequence.advance(), None, "nothing comes after the last step");
        }
    }

    #[test]
    fn descendants_are_found_through_generations_past_zombies() {
        let mut table = vec![process(1, 0), process(10, 1), process(11, 10), process(12, 11), process(20, 1)];
        table.push(Process { zombie: true, ..process(13, 10) });
        table.push(process(14, 13));
        assert_eq!(pids(&descendants_of(&table, 10, &[])), [11, 12, 13, 14]);
    }

    #[test]
    fn excepted_subtrees_are_left_alone() {
        let table = [process(10, 1), process(11, 10), process(12, 11), process(13, 10)];
        assert_eq!(pids(&descendants_of(&table, 10, &[11])), [13]);
    }

    #[test]
    fn a_torn_snapshot_with_a_cycle_ends() {
        let table = [process(10, 12), process(11, 10), process(12, 11)];
        assert_eq!(pids(&descendants_of(&table, 10, &[])), [11, 12]);
    }

    #[test]
    fn ps_lines_are_read() {
        let started = "Mon Nov 30 10:00:00 2026".to_owned();
        let expected = Process { pid: 71, parent: 1, group: 70, started, zombie: false };
        assert_eq!(parse_ps_line("   71     1    70 Ss   Mon Nov 30 10:00:00 2026"), Some(expected));
        assert!(parse_ps_line("7 1 7 Z+ Mon Nov 30 10:00:00 2026").is_some_and(|process| process.zombie));
        for line in ["", "garbage", "7 1", "7 1 x S Mon"] {
            assert_eq!(parse_ps_line(line), None, "{line:?}");
        }
    }
}
