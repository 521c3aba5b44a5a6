//! Markdown of what was measured, and its place between two markers of a page that is otherwise written by hand.

use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::machine::Facts;
use super::runs::{Judged, Measured};
use super::summary::{Summary, shown};
use super::targets::{Target, targets};

/// A column: heading, metric, and whether the ratio to the baseline follows.
pub(super) type Column = (&'static str, &'static str, bool);

const SMALL: [Column; 6] = [
    ("echo p50 µs", "echo_p50_us", true),
    ("echo p99 µs", "echo_p99_us", false),
    ("CPU µs/call", "cpu_us_call", true),
    ("pipelined calls/s", "pipe_calls_s", true),
    ("start ms", "cold_ms", false),
    ("idle MiB", "rss_idle_mb", false),
];
const BIG: [Column; 4] = [
    ("1 MB ms", "blob_1M_ms", true),
    ("10 MB ms", "blob_10M_ms", true),
    ("10 MB CPU ms", "blob_10M_cpu_ms", false),
    ("10 MB peak MiB", "blob_10M_peak_mb", false),
];
const START: [Column; 4] = [
    ("start ms, median", "cold_ms", true),
    ("CPU ms", "cpu_start_ms", false),
    ("idle RSS MiB", "rss_idle_mb", false),
    ("idle PSS MiB", "pss_idle_mb", false),
];
const HUGE: [Column; 6] = [
    ("ms", "huge_ms", false),
    ("MiB/s", "huge_mib_s", true),
    ("CPU ms", "huge_cpu_ms", false),
    ("peak MiB", "huge_peak_mb", false),
    ("made at once: MiB/s", "huge_made_mib_s", true),
    ("its peak MiB", "huge_made_peak_mb", false),
];

fn cell(run: &Summary, front: &str, (_, metric, with_ratio): Column) -> String {
    let Some(median) = run.median(front, metric) else { return "-".into() };
    match run.ratio(front, metric).filter(|_| with_ratio) {
        Some(ratio) => format!("{} ({} x)", shown(median), shown(ratio)),
        None => shown(median),
    }
}

pub(super) fn table(title: &str, run: &Summary, columns: &[Column]) -> String {
    let headings: Vec<&str> = columns.iter().map(|c| c.0).collect();
    let mut out = format!("\n### {title}\n\n| front | {} |\n", headings.join(" | "));
    writeln!(out, "|---|{}", "---|".repeat(columns.len())).ok();
    for front in run.names() {
        let cells: Vec<String> = columns.iter().map(|c| cell(run, front, *c)).collect();
        writeln!(out, "| {front} | {} |", cells.join(" | ")).ok();
    }
    for failure in &run.failures {
        writeln!(out, "\n- {failure}").ok();
    }
    out
}

/// The block of `cargo xtask bench relay`.
pub(super) fn relay(measured: &Measured, facts: &Facts, rounds: usize, quick: bool) -> String {
    let Facts { date, machine, compiler, binary_mib, relay_crates, binary_crates } = facts;
    let command = if quick { "cargo xtask bench relay --quick" } else { "cargo xtask bench relay" };
    let all = targets(measured, facts);
    let met = all.iter().filter(|t| t.is_met()).count();
    let rows: Vec<String> = all.iter().map(Target::row).collect();
    let mut out = format!(
        "Measured on {date} by `{command}` ({rounds} interleaved rounds, medians; ratios are medians of the ratios \
         within a round) on {machine}; {compiler}, release profile. The relay's crates link {relay_crates} crates \
         from elsewhere, the whole binary {binary_crates}; the binary has {} MiB.\n\n\
         ### Targets ({met} of {} met)\n\n| figure | target | found | |\n|---|---|---|---|\n{}\n",
        shown(*binary_mib),
        all.len(),
        rows.join("\n")
    );
    out += &table("stdio to stdio (ratios to `relay`)", &measured.stdio, &SMALL);
    out += &table("stdio to stdio, everything on one core (ratios to `relay`)", &measured.pinned, &SMALL);
    out += &table("Large results over stdio, limit raised (ratios to `relay --frame`)", &measured.big, &BIG);
    out += &table("stdio to Streamable HTTP (ratios to `bridge`)", &measured.http, &SMALL);
    out += &table("stdio to legacy HTTP+SSE (ratios to Toolway)", &measured.sse, &SMALL);
    out += &table("Start and idle memory (ratios to `relay`)", &measured.start, &START);
    out += &table(
        "One result of 1 GiB, on a tmpfs (ratios to `relay`, which passes it on)",
        &measured.huge,
        &HUGE,
    );
    out
}

/// The block of `cargo xtask bench faults`.
pub(super) fn faults(judged: &Judged, date: &str) -> String {
    let mut out = format!(
        "Judged on {date} by `cargo xtask bench faults`: runs that ended right, of those judged.\n\n\
         | upstream | front | right | wrong |\n|---|---|---|---|\n"
    );
    for line in &judged.lines {
        let (head, wrong) = line.split_once("  wrong: ").unwrap_or((line, ""));
        let (name, score) = head.split_once(": ").unwrap_or((head, ""));
        let (upstream, front) = name.split_once(' ').unwrap_or((name, ""));
        writeln!(out, "| {upstream} | {front} | {score} | {wrong} |").ok();
    }
    out
}

/// The page with what lies between the markers replaced.
pub(super) fn replaced(page: &str, marker: &str, block: &str) -> Result<String> {
    let (open, close) = (format!("<!-- {marker} -->\n"), format!("<!-- /{marker} -->"));
    let parts = page.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?.1)));
    let Some((before, after)) = parts else { bail!("the page lacks {open} or {close}") };
    Ok(format!("{before}{open}\n{}\n\n{close}{after}", block.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_between_the_markers_changes() {
        let page = "# T\n<!-- a -->\nold\n<!-- /a -->\nby hand\n<!-- b -->\nkept\n<!-- /b -->\n";
        let once = replaced(page, "a", "new\n").expect("markers are there");
        assert_eq!(once, "# T\n<!-- a -->\n\nnew\n\n<!-- /a -->\nby hand\n<!-- b -->\nkept\n<!-- /b -->\n");
        assert_eq!(replaced(&once, "a", "new").expect("markers are there"), once);
        assert!(replaced(page, "c", "new").is_err());
    }

    #[test]
    fn tables_show_medians_ratios_and_what_is_missing() {
        let text = r#"{"fronts":{"relay":{"echo_p50_us":{"median":10.0}},"toolway":{"echo_p50_us":{"median":11.0,"ratio":1.1}}},"failures":["toolway round 1: x"]}"#;
        let run = Summary::parse(text).expect("parses");
        let got = table("t", &run, &SMALL[..2]);
        let want = "\n### t\n\n| front | echo p50 µs | echo p99 µs |\n|---|---|---|\n| relay | 10.0 | - |\n| toolway | 11.0 (1.10 x) | - |\n\n- toolway round 1: x\n";
        assert_eq!(got, want);
    }

    #[test]
    fn judged_lines_become_rows() {
        let judged = Judged { lines: vec!["http toolway: 17/18  wrong: sse_cut".into()] };
        assert!(faults(&judged, "d").ends_with("| http | toolway | 17/18 | sse_cut |\n"));
    }
}
