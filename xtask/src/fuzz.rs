//! `cargo xtask fuzz`: runs the targets of `fuzz/` with cargo-fuzz.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::process::Step;
use crate::workspace::Workspace;

/// Fuzzing instruments the code, which the stable compiler allows only when told so.
const UNSTABLE_FLAGS: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (mut target, mut seconds) = (None, 60_u64);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if word == "--seconds" {
            let value = words.next().context("--seconds needs a number")?;
            seconds = value.parse().with_context(|| format!("--seconds {value} is no number"))?;
        } else {
            target = Some(word.clone());
        }
    }
    let probe = Step::new("cargo").args(&["fuzz", "--version"]).output(Duration::from_secs(30));
    probe.context("cargo-fuzz is not installed: cargo install cargo-fuzz --locked")?;
    let known = targets(workspace)?;
    let chosen = match target {
        None => known,
        Some(target) if known.contains(&target) => vec![target],
        Some(target) => bail!("no fuzz target {target}; there are {}", known.join(", ")),
    };
    for target in chosen {
        let limit = format!("-max_total_time={seconds}");
        let mut step = workspace.cargo(&["fuzz", "run", "--sanitizer", "none", &target, "--", &limit]);
        let words = workspace.root().join("fuzz/dictionaries").join(format!("{target}.dict"));
        if words.is_file() {
            step = step.arg(format!("-dict={}", words.display()));
        }
        step.env(UNSTABLE_FLAGS.0, UNSTABLE_FLAGS.1).run()?;
    }
    Ok(())
}

fn targets(workspace: &Workspace) -> Result<Vec<String>> {
    let folder = workspace.root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}
