//! `cargo xtask bench bridge`: what the bridge shall reach beside a bare loopback server, the run that says whether it
//! does, and the block of the page. The harness measures; the servers are an example of the bridge's crate.

use std::time::Duration;

use anyhow::Result;

use super::machine::Facts;
use super::page::{Column, table};
use super::summary::Summary;
use super::targets::{Bound, Target};
use super::{Bench, Options, target_folder};
use Bound::{AtLeast, AtMost};

const BARE: &str = "bare";
const BRIDGE: &str = "bridge";
/// The bridge with a host in a process of its own.
const HOSTED: &str = "bridge-stdio";

/// The run: nothing else may use the machine meanwhile.
pub(super) fn measure(bench: &Bench<'_>, options: Options) -> Result<Summary> {
    let build = ["build", "--release", "--locked", "-p", "toolway-bridge", "--example", "loopback"];
    bench.workspace.cargo(&build).run()?;
    let example = target_folder(bench.workspace)?.join("release/examples/loopback");
    let example = example.to_string_lossy();
    let rows = bench.out.join("bridge.jsonl");
    if rows.exists() {
        std::fs::remove_file(&rows)?;
    }
    let rows = rows.to_string_lossy().into_owned();
    let programs = [
        format!("{BARE}={example} bare"),
        format!("{BRIDGE}={example} bridge"),
        format!("{HOSTED}={example} stdio {}", bench.toolway.display()),
    ];
    let (calls, pipe) = if options.quick { ("500", "6400") } else { ("5000", "64000") };
    let rounds = options.rounds.to_string();
    let mut arguments = vec!["loopback"];
    arguments.extend(programs.iter().map(String::as_str));
    arguments.extend(["--rounds", &rounds, "--calls", calls, "--pipe", pipe, "--out", &rows]);
    bench.harness(&arguments).run()?;
    let summary = bench.harness(&["summary", "--baseline", BARE, &rows]);
    Summary::parse(&summary.output(Duration::from_mins(1))?)
}

fn targets(run: &Summary) -> Vec<Target> {
    let row = Target::new;
    let own = |metric: &str| run.median(BRIDGE, metric);
    vec![
        row(
            "one call after the other, p50, to a bare server",
            run.ratio(BRIDGE, "echo_p50_us"),
            " x",
            AtMost(1.3),
        ),
        row("1,000 calls in flight: answered right", own("flight_right"), "", AtLeast(1000.0)),
        row("1,000 calls in flight: peak memory", own("flight_peak_mb"), " MiB", AtMost(64.0)),
        row("opening a run", own("open_ms"), " ms", AtMost(2.0)),
        row("500 tools: snapshot and signature", own("snapshot_ms"), " ms", AtMost(5.0)),
    ]
}

const COLUMNS: [Column; 8] = [
    ("echo p50 µs", "echo_p50_us", true),
    ("echo p99 µs", "echo_p99_us", false),
    ("CPU µs/call", "cpu_us_call", true),
    ("calls/s over 64 connections", "pipe_calls_s", true),
    ("CPU µs/call", "pipe_cpu_us_call", true),
    ("1,000 in flight, ms", "flight_ms", false),
    ("answered right", "flight_right", false),
    ("peak MiB", "flight_peak_mb", false),
];

/// The block of the page.
pub(super) fn block(run: &Summary, facts: &Facts, options: Options) -> String {
    let Facts { date, machine, compiler, .. } = facts;
    let command = if options.quick { "cargo xtask bench bridge --quick" } else { "cargo xtask bench bridge" };
    let all = targets(run);
    let met = all.iter().filter(|t| t.is_met()).count();
    let rows: Vec<String> = all.iter().map(Target::row).collect();
    let mut out = format!(
        "Measured on {date} by `{command}` ({} interleaved rounds, medians; ratios are medians of the ratios within a \
         round) on {machine}; {compiler}, release profile. `bare` answers each call itself, on the same HTTP library; \
         `bridge` has its host in the same process, `bridge-stdio` in another one.\n\n\
         ### Targets of the bridge ({met} of {} met)\n\n| figure | target | found | |\n|---|---|---|---|\n{}\n",
        options.rounds,
        all.len(),
        rows.join("\n")
    );
    out += &table("Calls over loopback (ratios to `bare`)", run, &COLUMNS);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_those_of_the_bridge_in_one_process() {
        let json = r#"{"fronts":{"bridge":{"echo_p50_us":{"median":40,"ratio":1.31},"open_ms":{"median":0.4}},
            "bridge-stdio":{"echo_p50_us":{"median":90,"ratio":2.5},"flight_peak_mb":{"median":80}}}}"#;
        let run = Summary::parse(json).expect("parses");
        let rows: Vec<String> = targets(&run).iter().map(Target::row).collect();
        assert!(rows[0].ends_with("| at most 1.30 x | 1.31 x | **not met** |"), "{rows:?}");
        assert!(rows[2].ends_with("| not measured | ? |"), "{rows:?}");
        assert!(rows[3].ends_with("| 0.40 ms | met |") || rows[3].ends_with("| met |"), "{rows:?}");
    }
}
