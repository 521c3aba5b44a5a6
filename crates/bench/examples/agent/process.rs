//! This process as the kernel sees it, and plain figures. Linux: it reads /proc.

use std::io::Write;
use std::time::Duration;

/// What a process has at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    /// Itself and all below it.
    pub(crate) processes: usize,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) rss_mb: f64,
    pub(crate) pss_mb: f64,
    /// What is no page of the program's file.
    pub(crate) anonymous_mb: f64,
}

impl Held {
    pub(crate) fn now() -> Self {
        let entries = |folder: &str| std::fs::read_dir(folder).map_or(0, Iterator::count);
        Self {
            processes: toolway_testkit::tree(std::process::id()).len(),
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            rss_mb: mib("/proc/self/status", "VmRSS:"),
            pss_mb: mib("/proc/self/smaps_rollup", "Pss:"),
            anonymous_mb: mib("/proc/self/status", "RssAnon:"),
        }
    }

    /// Waits until there is no more of anything that is counted than there was, five seconds at most.
    pub(crate) async fn settled(before: Self) -> Self {
        for _ in 0..100 {
            let now = Self::now();
            if now.processes <= before.processes
                && now.descriptors <= before.descriptors
                && now.threads <= before.threads
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Self::now()
    }
}

fn mib(file: &str, key: &str) -> f64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok());
    f64::from(kib.unwrap_or_default()) / 1024.0
}

/// One line, at once.
pub(crate) fn line(out: &mut impl Write, text: &str) {
    // Nobody reads it any more: then nobody misses it.
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A count as a float.
pub(crate) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

/// How many more there are than before; fewer is less than nothing.
pub(crate) fn more(after: usize, before: usize) -> f64 {
    float(after) - float(before)
}

/// The one in the middle; of none, 0.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}
