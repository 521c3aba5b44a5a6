//! The official conformance suite as a judge of one URL: what it said of each scenario, and how two judgements differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::interop::Stage;
use crate::process::Step;

/// The suite takes about a minute for a revision with sessions.
const DEADLINE: Duration = Duration::from_secs(400);

/// A set of scenarios.
#[derive(Debug, Clone, Copy)]
pub(super) enum Revision {
    /// 2025-11-25: `initialize` and sessions.
    Legacy,
    /// 2026-07-28: everything with each request.
    Modern,
}

impl Revision {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Legacy => "2025-11-25",
            Self::Modern => "2026-07-28",
        }
    }

    /// What makes a server's entry speak it.
    pub(super) const fn protocol(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Legacy => Self::Modern,
            Self::Modern => Self::Legacy,
        }
    }
}

/// What the suite said of one scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Checks that passed, and how often.
    passed: BTreeMap<String, usize>,
    /// Checks that failed, with the suite's words.
    failed: BTreeMap<String, String>,
    /// Checks of what nobody has to do, and was not done.
    optional: BTreeSet<String>,
}

impl Verdict {
    #[cfg(test)]
    pub(super) fn new(passed: &[&str], failed: &[&str]) -> Self {
        Self {
            passed: passed.iter().map(|check| ((*check).to_owned(), 1)).collect(),
            failed: failed.iter().map(|check| ((*check).to_owned(), "why".to_owned())).collect(),
            optional: BTreeSet::new(),
        }
    }
}

/// By scenario.
pub(super) type Verdicts = BTreeMap<String, Verdict>;

/// Runs the suite; its own files stay in `folder`.
pub(super) fn judge(stage: &Stage, revision: Revision, url: &str, folder: &Path) -> Result<Verdicts> {
    let peers = stage.peers.node24.as_ref().context("no Node.js 24")?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let suite = Step::new(&peers.node)
        .arg(peers.file("@modelcontextprotocol/conformance/dist/index.js"))
        .args(&["server", "--url", url, "--requirements", revision.name()])
        .args(&["--timeout", "15000", "-o"])
        .arg(folder);
    let finished = suite.capture(DEADLINE)?;
    if !finished.stdout.contains("=== SUMMARY ===") {
        bail!("the suite gave no summary:\n{}", finished.stderr);
    }
    let mut verdicts = Verdicts::new();
    for entry in fs::read_dir(folder).context("the suite left no folder")? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let checks = fs::read_to_string(entry.path().join("checks.json"))?;
        let checks: Value = serde_json::from_str(&checks).with_context(|| name.clone())?;
        verdicts.insert(scenario(&name).to_owned(), verdict(&checks));
    }
    Ok(verdicts)
}

/// `server-NAME-2026-11-30T13-45-19-128Z`, as the suite names its folders.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let time = "-2026-11-30T13-45-19-128Z".len();
    name.len().checked_sub(time).and_then(|end| name.get(..end)).unwrap_or(name)
}

fn verdict(checks: &Value) -> Verdict {
    let mut out = Verdict::default();
    for check in checks.as_array().into_iter().flatten() {
        let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
        match check["status"].as_str() {
            Some("SUCCESS") => *out.passed.entry(text("id")).or_default() += 1,
            Some("FAILURE") => {
                out.failed.insert(text("id"), text("errorMessage"));
            }
            _ => {
                out.optional.insert(text("id"));
            }
        }
    }
    out
}

/// One line for each scenario whose verdict is another one.
pub(super) fn unlike(alone: &Verdicts, through: &Verdicts) -> Vec<String> {
    let mut found = compared(alone, through, &|alone, through| {
        let failed = |verdict: &Verdict| verdict.failed.keys().cloned().collect::<Vec<_>>();
        alone.passed == through.passed && failed(alone) == failed(through)
    });
    let new = through.keys().filter(|name| !alone.contains_key(*name));
    found.extend(new.map(|name| format!("{name}: not judged without Toolway")));
    found
}

/// One line for each scenario in which more fails than without the front, or is not judged.
pub(super) fn worse(alone: &Verdicts, through: &Verdicts) -> Vec<String> {
    compared(alone, through, &|alone, through| lost(alone, through).is_empty())
}

/// Checks that fail here and not alone, or that were passed alone and are not made here.
pub(super) fn lost(alone: &Verdict, through: &Verdict) -> BTreeSet<String> {
    let failed = through.failed.keys().filter(|check| !alone.failed.contains_key(*check));
    let Verdict { passed, failed: failures, optional } = through;
    let made = |check: &String| {
        passed.contains_key(check) || failures.contains_key(check) || optional.contains(check)
    };
    let unmade = alone.passed.keys().filter(|check| !made(check));
    failed.chain(unmade).cloned().collect()
}

/// The same, where a check that nobody has to pass counts as lost too.
pub(super) fn unpassed(alone: &Verdict, through: &Verdict) -> BTreeSet<String> {
    let missed = alone.passed.keys().filter(|check| !through.passed.contains_key(*check));
    missed.cloned().chain(lost(alone, through)).collect()
}

type Fits<'a> = &'a dyn Fn(&Verdict, &Verdict) -> bool;

fn compared(alone: &Verdicts, through: &Verdicts, fits: Fits<'_>) -> Vec<String> {
    if alone.is_empty() {
        return vec!["the suite judged nothing".to_owned()];
    }
    let mut found = Vec::new();
    for (name, before) in alone {
        match through.get(name) {
            None => found.push(format!("{name}: not judged with Toolway")),
            Some(after) if !fits(before, after) => found.push(told(name, before, after)),
            Some(_) => {}
        }
    }
    found
}

/// What of a scenario is lost, in the suite's words.
pub(super) fn told(name: &str, alone: &Verdict, through: &Verdict) -> String {
    let why: Vec<String> = lost(alone, through)
        .into_iter()
        .map(|check| {
            format!("\n    {check}: {}", through.failed.get(&check).map_or("not made", String::as_str))
        })
        .collect();
    format!(
        "{name}: {} passed, {} failed alone; {} passed, {} failed through Toolway{}",
        alone.passed.values().sum::<usize>(),
        alone.failed.len(),
        through.passed.values().sum::<usize>(),
        through.failed.len(),
        why.concat()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(passed: &[&str], failed: &[&str]) -> Verdicts {
        [("a".to_owned(), Verdict::new(passed, failed))].into()
    }

    #[test]
    fn folders_and_checks_are_read() {
        assert_eq!(scenario("server-tools-list-2026-11-30T13-45-19-128Z"), "tools-list");
        assert_eq!(scenario("server-server-sse-polling-2026-11-30T13-45-19-128Z"), "server-sse-polling");
        let checks = json!([
            { "id": "x", "status": "SUCCESS" }, { "id": "y", "status": "FAILURE", "errorMessage": "why" },
            { "id": "z", "status": "INFO" },
        ]);
        let mut want = Verdict::new(&["x"], &["y"]);
        want.optional.insert("z".to_owned());
        assert_eq!(verdict(&checks), want);
    }

    #[test]
    fn more_failures_are_worse_and_fewer_are_only_unlike() {
        let alone = judged(&["p", "q"], &["x"]);
        let mut optional = judged(&["p"], &["x"]);
        optional.entry("a".to_owned()).or_default().optional.insert("q".to_owned());
        for (through, is_worse, is_unlike) in [
            (judged(&["p", "q"], &["x"]), 0, 0),
            (judged(&["p", "q", "x"], &[]), 0, 1),
            (optional, 0, 1),
            (judged(&["p", "q"], &["y"]), 1, 1),
            (judged(&["p"], &["x", "q"]), 1, 1),
            (judged(&["p"], &["x"]), 1, 1),
            (Verdicts::new(), 1, 1),
        ] {
            assert_eq!(worse(&alone, &through).len(), is_worse, "{through:?}");
            assert_eq!(unlike(&alone, &through).len(), is_unlike, "{through:?}");
        }
        assert_eq!(worse(&Verdicts::new(), &Verdicts::new()).len(), 1);
    }
}
