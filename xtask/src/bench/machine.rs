//! What the figures depend on: the machine, the compiler, the size and dependencies of what was measured.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use crate::process::Step;

/// Facts of the machine and of the build.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) date: String,
    pub(super) machine: String,
    pub(super) compiler: String,
    pub(super) binary_mib: f64,
    /// Crates from elsewhere that the relay's libraries link, and those that the binary links.
    pub(super) relay_crates: usize,
    pub(super) binary_crates: usize,
}

const SOON: Duration = Duration::from_mins(1);

pub(super) fn today() -> Result<String> {
    Ok(Step::new("date").args(&["-u", "+%Y-%m-%d"]).output(SOON)?.trim().to_owned())
}

pub(super) fn facts(bench: &Bench<'_>) -> Result<Facts> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (cpu, memory, kernel) =
        (read("/proc/cpuinfo"), read("/proc/meminfo"), read("/proc/sys/kernel/osrelease"));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let bytes = u32::try_from(fs::metadata(&bench.toolway)?.len() >> 10).context("a binary of over 4 TiB")?;
    Ok(Facts {
        date: today()?,
        machine: machine(&cpu, &memory, kernel.trim(), cores),
        compiler: Step::new("rustc").arg("--version").output(SOON)?.trim().to_owned(),
        binary_mib: f64::from(bytes) / 1024.0,
        relay_crates: crates(bench, "toolway-proxy")?,
        binary_crates: crates(bench, "toolway")?,
    })
}

fn machine(cpu: &str, memory: &str, kernel: &str, cores: usize) -> String {
    let field = |text: &str, key: &str| -> Option<String> {
        let line = text.lines().find(|l| l.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field(cpu, "model name").unwrap_or_else(|| "unknown processor".into());
    let kib = field(memory, "MemTotal").and_then(|m| m.trim_end_matches(" kB").parse::<u64>().ok());
    let gib = kib.map_or(0, |k| (k + (1 << 19)) >> 20);
    format!("{cores} cores of {model}, {gib} GiB of memory, Linux {kernel}")
}

fn crates(bench: &Bench<'_>, package: &str) -> Result<usize> {
    let tree = ["tree", "--locked", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}"];
    Ok(foreign(&bench.workspace.cargo(&tree).output(SOON)?))
}

/// Different crates of a `cargo tree` that are not of this workspace.
fn foreign(tree: &str) -> usize {
    let names: BTreeSet<&str> = tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.is_empty() && !line.starts_with("toolway"))
        .collect();
    names.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_is_described_from_proc() {
        let cpu = "processor\t: 0\nmodel name\t: Some CPU @ 2GHz\n\nprocessor\t: 1\nmodel name\t: Some CPU @ 2GHz\n";
        let memory = "MemTotal:       25165824 kB\nMemFree: 1 kB\n";
        let want = "2 cores of Some CPU @ 2GHz, 24 GiB of memory, Linux 6.1";
        assert_eq!(machine(cpu, memory, "6.1", 2), want);
        assert_eq!(machine("", "", "x", 1), "1 cores of unknown processor, 0 GiB of memory, Linux x");
    }

    #[test]
    fn crates_are_counted_once_and_our_own_not() {
        let tree = "toolway-proxy v0.1.0 (/x)\nbytes v1.0.0\ntoolway-wire v0.1.0 (/x)\nmemchr v2.0.0\nbytes v1.0.0 (*)\n";
        assert_eq!(foreign(tree), 2);
    }
}
