//! `cargo xtask bench agent`: what agents shall reach, the runs that say whether they do, and the block of the page. An
//! example of the harness's crate measures; each measure is a process of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::machine::Facts;
use super::page::{Column, table};
use super::summary::Summary;
use super::targets::{Bound, Target};
use super::{Bench, Options, peers, target_folder};
use crate::process::Step;
use crate::workspace::find_program;
use Bound::{AtLeast, AtMost};

/// The longest that one measure may take.
const LIMIT: Duration = Duration::from_mins(10);
/// Beside which turns are measured, and searches.
const BARE: &str = "bare";
const RIPGREP: &str = "rg";

/// What one call of `cargo xtask bench agent` measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    agents: Summary,
    stores: Summary,
    search: Summary,
    ripgrep: Option<String>,
}

/// A measure: the summary it belongs to, its words, and how often within a round, quick or not.
type Measure = (&'static str, &'static [&'static str], [&'static str; 2]);

const MEASURES: [Measure; 8] = [
    ("agents", &["start"], ["5", "20"]),
    ("agents", &["servers"], ["2", "5"]),
    ("agents", &["turns"], ["50", "50"]),
    ("agents", &["memory"], ["9", "9"]),
    ("agents", &["many"], ["10", "50"]),
    ("stores", &["events", "--store", "sqlite"], ["2000", "20000"]),
    ("stores", &["events", "--store", "jsonl"], ["2000", "20000"]),
    ("search", &["search"], ["3", "9"]),
];

/// The runs, one after the other: nothing else may use the machine meanwhile.
pub(super) fn measure(bench: &Bench<'_>, options: Options) -> Result<Measured> {
    let build = ["build", "--release", "--locked", "-p", "toolway-bench", "--example", "agent"];
    bench.workspace.cargo(&build).run()?;
    let example = target_folder(bench.workspace)?.join("release/examples/agent");
    let ripgrep = ripgrep(bench);
    let version = ripgrep.as_ref().map(|rg| Step::new(rg).arg("--version").output(LIMIT)).transpose()?;
    let (tmp, tree) = (bench.out.join("agent"), bench.out.join("tree"));
    let mut rows = [("agents", String::new()), ("stores", String::new()), ("search", String::new())];
    for round in 0..options.rounds {
        for (kind, words, counts) in MEASURES {
            let count = if options.quick { counts[0] } else { counts[1] };
            let mut step = Step::new(&example).args(words).args(&["--count", count, "--tmp"]).arg(&tmp);
            if kind == "search" {
                step = step.arg("--tree").arg(&tree);
                if let Some(rg) = &ripgrep {
                    step = step.arg("--rg").arg(rg);
                }
            }
            println!("round {round}: {}", words.join(" "));
            let said = step.output(LIMIT);
            if let Some((_, all)) = rows.iter_mut().find(|(known, _)| *known == kind) {
                *all += &told(said, words, round)?;
            }
        }
    }
    let [agents, stores, search] = rows;
    Ok(Measured {
        agents: summary(bench, &agents, BARE)?,
        stores: summary(bench, &stores, "sqlite")?,
        search: summary(bench, &search, RIPGREP)?,
        ripgrep: version.and_then(|text| text.lines().next().map(str::to_owned)),
    })
}

/// The rows of one process with the round in each; a failure is a row that says so.
fn told(said: Result<String>, words: &[&str], round: usize) -> Result<String> {
    let mut out = String::new();
    match said {
        Ok(lines) => {
            for line in lines.lines() {
                let mut row: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
                row["round"] = json!(round);
                writeln!(out, "{row}")?;
            }
        }
        Err(error) => {
            eprintln!("warning: {}: {error:#}", words.join(" "));
            let failure =
                json!({"front": "agent", "round": round, "error": format!("{}: {error}", words.join(" "))});
            writeln!(out, "{failure}")?;
        }
    }
    Ok(out)
}

fn summary(bench: &Bench<'_>, (name, rows): &(&str, String), baseline: &str) -> Result<Summary> {
    let file = bench.out.join(format!("agent-{name}.jsonl"));
    fs::write(&file, rows)?;
    let file = file.to_string_lossy();
    let summary = bench.harness(&["summary", "--baseline", baseline, &file]);
    Summary::parse(&summary.output(Duration::from_mins(1))?)
}

/// The one that is installed here, else one of a pinned version.
fn ripgrep(bench: &Bench<'_>) -> Option<PathBuf> {
    find_program(&["rg"]).or_else(|| peers::ripgrep(&bench.peers))
}

fn targets(measured: &Measured) -> Vec<Target> {
    let Measured { agents, stores, search, .. } = measured;
    let own = |metric: &str| agents.median("agent", metric);
    let row = Target::new;
    let mut all = vec![
        row("made and sent, until the model is asked", own("begin_ms"), " ms", AtMost(10.0)),
        row("the same, the first of a process, with a new store", own("first_ms"), " ms", AtMost(10.0)),
        row(
            "ten servers: the model asked after the slowest of them",
            own("servers_after_ms"),
            " ms",
            AtMost(20.0),
        ),
        row("a turn beside the model and the tool", own("overhead_ms"), " ms", AtMost(2.0)),
    ];
    for store in ["sqlite", "jsonl"] {
        let of = |metric| stores.median(store, metric);
        all.push(Target::new(format!("{store}: events per second"), of("events_s"), "", AtLeast(1000.0)));
        all.push(Target::new(format!("{store}: events lost"), of("events_lost"), "", AtMost(0.0)));
    }
    all.extend([
        row("an agent at rest", own("rest_mb"), " MiB", AtMost(15.0)),
        row("many agents: processes more than before", own("processes_more"), "", AtMost(0.0)),
        row("many agents: descriptors more than before", own("descriptors_more"), "", AtMost(0.0)),
        row("many agents: threads more than before", own("threads_more"), "", AtMost(0.0)),
        row("many agents: anonymous memory more than before", own("anonymous_more_mb"), " MiB", AtMost(2.0)),
        row(
            "as many again: anonymous memory more than before",
            own("anonymous_again_mb"),
            " MiB",
            AtMost(1.0),
        ),
    ]);
    for (what, metric) in [
        ("`grep` for a word", "grep_word_ms"),
        ("`grep` for an expression", "grep_regex_ms"),
        ("`glob`", "glob_ms"),
    ] {
        let what = format!("50,000 files: {what}, to ripgrep");
        all.push(Target::new(what, search.ratio("tools", metric), " x", AtMost(1.2)));
    }
    all
}

const TURNS: [Column; 1] = [("a turn, ms", "turn_ms", true)];
const BEGIN: [Column; 4] = [
    ("first request ms", "begin_ms", false),
    ("the first of a process", "first_ms", false),
    ("with ten servers", "servers_ms", false),
    ("after the slowest", "servers_after_ms", false),
];
const REST: [Column; 6] = [
    ("RSS MiB before", "none_mb", false),
    ("with one agent", "one_mb", false),
    ("PSS MiB", "one_pss_mb", false),
    ("anonymous MiB more", "rest_anonymous_mb", false),
    ("each more", "each_more_mb", false),
    ("descriptors", "rest_descriptors", false),
];
const MANY: [Column; 6] = [
    ("agents", "many", false),
    ("made, used, ended, ms", "many_ms", false),
    ("processes meanwhile", "many_processes", false),
    ("RSS MiB meanwhile", "many_mb", false),
    ("MiB more after it", "memory_more_mb", false),
    ("after as many again", "memory_again_mb", false),
];
const EVENTS: [Column; 2] = [("events/s", "events_s", true), ("lost", "events_lost", false)];
const SEARCH: [Column; 3] = [
    ("word ms", "grep_word_ms", true),
    ("expression ms", "grep_regex_ms", true),
    ("glob ms", "glob_ms", true),
];

/// The block of the page.
pub(super) fn block(measured: &Measured, facts: &Facts, options: Options) -> String {
    let Facts { date, machine, compiler, .. } = facts;
    let command = if options.quick { "cargo xtask bench agent --quick" } else { "cargo xtask bench agent" };
    let all = targets(measured);
    let met = all.iter().filter(|t| t.is_met()).count();
    let rows: Vec<String> = all.iter().map(Target::row).collect();
    let ripgrep = measured.ripgrep.as_deref().map_or_else(
        || "There is no ripgrep here, so that searches have nothing beside them.".to_owned(),
        |version| format!("Searches are measured beside {version}."),
    );
    let mut out = format!(
        "Measured on {date} by `{command}` ({} rounds, medians; ratios are medians of the ratios within a round) on \
         {machine}; {compiler}, release profile. {ripgrep}\n\n\
         ### Targets of agents ({met} of {} met)\n\n| figure | target | found | |\n|---|---|---|---|\n{}\n",
        options.rounds,
        all.len(),
        rows.join("\n")
    );
    let agents = &measured.agents;
    out += &table("A run of 50 turns (ratio to the same requests sent bare)", agents, &TURNS);
    out += &table("From making an agent to the first request", &agents.only("agent"), &BEGIN);
    out += &table("At rest, after its first answer", &agents.only("agent"), &REST);
    out += &table("Many agents at a time, three servers each", &agents.only("agent"), &MANY);
    out += &table("Events to two readers (ratio to SQLite)", &measured.stores, &EVENTS);
    out += &table("50,000 files (ratios to ripgrep)", &measured.search, &SEARCH);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_their_round_and_failures_are_rows() {
        let rows = told(Ok("{\"front\":\"agent\",\"x\":1}\n".into()), &["start"], 3).expect("rows");
        assert_eq!(rows, "{\"front\":\"agent\",\"x\":1,\"round\":3}\n");
        let rows = told(Err(anyhow::anyhow!("gone")), &["many"], 0).expect("rows");
        assert_eq!(rows, "{\"front\":\"agent\",\"round\":0,\"error\":\"many: gone\"}\n");
        assert!(told(Ok("no row\n".into()), &["many"], 0).is_err());
    }

    #[test]
    fn searches_without_ripgrep_are_not_measured_rather_than_met() {
        let json = r#"{"fronts":{"tools":{"glob_ms":{"median":40}}},"failures":[]}"#;
        let mut measured = Measured { search: Summary::parse(json).expect("parses"), ..Measured::default() };
        let rows = |measured: &Measured| targets(measured).iter().map(Target::row).collect::<Vec<_>>();
        assert!(rows(&measured).last().is_some_and(|row| row.ends_with("| not measured | ? |")));
        let json = r#"{"fronts":{"tools":{"glob_ms":{"median":40,"ratio":1.1}}},"failures":[]}"#;
        measured.search = Summary::parse(json).expect("parses");
        assert!(rows(&measured).last().is_some_and(|row| row.ends_with("| 1.10 x | met |")));
    }
}
