//! Client and server of different revisions with the gateway between. Which checks such a pair cannot have, and why,
//! stands in tables of docs/protocol.md; everything else must end as it does without the gateway, and what the tables
//! say is not had must not be had, so that they stay true.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use crate::interop::conformance::{alone, fixture, serve};
use crate::interop::suite::{Revision, Verdict, Verdicts, judge, lost, told};
use crate::interop::upstream::{Upstreams, Wire};
use crate::interop::{PAGE, Stage, page};

/// Checks that a pair cannot have, by scenario.
pub(super) type Table = BTreeMap<String, BTreeSet<String>>;

/// The suite of the client's revision, against the gateway before a server that is made to speak the other one.
pub(super) fn run(stage: &Stage, upstreams: &Upstreams, name: &str, revision: Revision) -> Result<()> {
    let folder = stage.folder(name)?;
    let table = table(&page(stage)?, "cross-era", revision)?;
    let alone = alone(stage, upstreams, revision, &folder)?;
    let entry = fixture(stage, upstreams, Wire::Http, revision.other())?;
    let gateway = serve(stage, &entry, &folder)?;
    let through = judge(stage, revision, &gateway.url("/mcp"), &folder.join("through"))?;
    let problems = differences(&table, &alone, &through, lost);
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("\n"))
}

/// The rows between the markers of this kind and revision: `| scenario | all |` or `` | scenario | not `check`, `check` | ``.
pub(super) fn table(page: &str, kind: &str, revision: Revision) -> Result<Table> {
    let marker = revision.name();
    let (open, close) = (format!("<!-- {kind}:{marker} -->"), format!("<!-- /{kind}:{marker} -->"));
    let block = page.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
    let (block, _) = block.with_context(|| format!("{PAGE} lacks {open} or {close}"))?;
    let mut table = Table::new();
    for row in block.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [scenario, had, why] = cells[..] else { bail!("not three cells: {row}") };
        let not: BTreeSet<String> = had.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        if not.is_empty() != (had == "all") || not.is_empty() != why.is_empty() {
            bail!("a row says `all` and no reason, or which checks not and why: {row}");
        }
        table.insert(scenario.to_owned(), not);
    }
    Ok(table)
}

/// One line for each scenario of which the page does not say exactly what is lost.
pub(super) fn differences(
    table: &Table,
    alone: &Verdicts,
    through: &Verdicts,
    lost: impl Fn(&Verdict, &Verdict) -> BTreeSet<String>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let nothing = Verdict::default();
    if alone.is_empty() {
        problems.push("the suite judged nothing".to_owned());
    }
    for (scenario, before) in alone {
        let after = through.get(scenario).unwrap_or(&nothing);
        let Some(not) = table.get(scenario) else {
            problems.push(format!("{PAGE} has no row for {}", told(scenario, before, after)));
            continue;
        };
        let lost = lost(before, after);
        if lost != *not {
            problems.push(format!(
                "{PAGE} says that this lacks {not:?}: it lacks {lost:?}: {}",
                told(scenario, before, after)
            ));
        }
    }
    let unknown = table.keys().filter(|scenario| !alone.contains_key(*scenario));
    problems.extend(unknown.map(|scenario| format!("{PAGE} has a row for {scenario}, which is none")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "x\n<!-- cross-era:2025-11-25 -->\n\n| scenario | checks | why not |\n|---|---|---|\n\
                         | a | all | |\n| b | not `c`, `d` | for a reason |\n\n<!-- /cross-era:2025-11-25 -->\n";

    fn judged(scenario: &str, passed: &[&str], failed: &[&str]) -> Verdicts {
        [(scenario.to_owned(), Verdict::new(passed, failed))].into()
    }

    #[test]
    fn rows_are_read_from_the_page() {
        let table = table(TABLE, "cross-era", Revision::Legacy).unwrap();
        let b: BTreeSet<String> = ["c", "d"].map(str::to_owned).into();
        assert_eq!(table, [("a".to_owned(), BTreeSet::new()), ("b".to_owned(), b)].into());
        assert!(super::table(TABLE, "cross-era", Revision::Modern).is_err());
        assert!(
            super::table(&TABLE.replace("| a | all | |", "| a | not `x` | |"), "cross-era", Revision::Legacy)
                .is_err()
        );
        assert!(
            super::table(&TABLE.replace("| a | all | |", "| a | most | |"), "cross-era", Revision::Legacy)
                .is_err()
        );
    }

    #[test]
    fn the_page_must_say_exactly_what_is_lost() {
        let told_of =
            |table: &Table, alone: &Verdicts, through: &Verdicts| differences(table, alone, through, lost);
        let table: Table = [("a".to_owned(), ["x".to_owned()].into())].into();
        let all = Table::from([("a".to_owned(), BTreeSet::new())]);
        let (whole, lost) = (judged("a", &["x", "y"], &[]), judged("a", &["y"], &["x"]));
        assert_eq!(told_of(&table, &whole, &lost).len(), 0);
        assert_eq!(told_of(&all, &whole, &whole).len(), 0);
        assert_eq!(told_of(&table, &whole, &whole).len(), 1, "the page is too modest");
        assert_eq!(told_of(&all, &whole, &lost).len(), 1);
        assert_eq!(told_of(&all, &whole, &judged("a", &["x"], &[])).len(), 1, "fewer checks were made");
        assert_eq!(told_of(&Table::new(), &whole, &whole).len(), 1);
        assert_eq!(told_of(&table, &judged("b", &["z"], &[]), &judged("b", &["z"], &[])).len(), 2);
    }
}
