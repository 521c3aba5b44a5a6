//! `cargo xtask bench gateway`: what the gateway shall reach with many servers, the runs that say whether it does, and
//! the block of the page. The harness measures.

use anyhow::Result;

use super::machine::Facts;
use super::page::{Column, table};
use super::runs::Run;
use super::summary::Summary;
use super::targets::{Bound, Target};
use super::{Bench, Options};
use Bound::{AtLeast, AtMost};

/// What one call of `cargo xtask bench gateway` measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    calls: Summary,
    pinned: Summary,
    start: Summary,
    scale: Summary,
    idle: Summary,
    reload: Summary,
}

const CALLS: [&str; 4] = ["toolway", "relay", "serve", "serve-8"];
const MORE_CALLS: [&str; 6] =
    ["mcpway", "fastmcp", "fastmcp-8", "supergateway-srv", "py-mcp-proxy-srv", "tower-mcp-proxy-srv"];
const MANY: [&str; 1] = ["serve-many"];
const MORE_MANY: [&str; 2] = ["fastmcp-many", "tower-many-srv"];
const SCALE: [&str; 3] = ["serve-many", "serve-lazy", "serve-search"];

/// All runs, one after the other: nothing else may use the machine meanwhile.
pub(super) fn measure(bench: &Bench<'_>, options: Options) -> Result<Measured> {
    let pick = |full, quick| if options.quick { quick } else { full };
    let calls = || {
        Run::new("gateway-calls", "stdio", "toolway", &CALLS)
            .small(pick("3000", "300"), pick("200000", "8000"))
    };
    let many = |name, what, fronts, more| Run {
        command: "gateway",
        more,
        options: vec![what],
        ..Run::new(name, "stdio", "serve-many", fronts)
    };
    let scale = Run {
        options: vec!["scale", "--asks", pick("200", "20")],
        ..many("gateway-scale", "scale", &SCALE, &MORE_MANY)
    };
    let reload = Run {
        options: vec!["reload", "--reloads", pick("200", "10")],
        ..many("gateway-reload", "reload", &MANY, &[])
    };
    // Peers that are installed are measured; `--peers` is what installs them.
    let options = Options { all_peers: true, ..options };
    let once = Options { rounds: 1, ..options };
    Ok(Measured {
        calls: Run { more: &MORE_CALLS, ..calls() }.measure(bench, options)?,
        pinned: Run { name: "gateway-calls-pinned", ..calls() }.pinned().measure(bench, options)?,
        start: many("gateway-start", "start", &MANY, &MORE_MANY).measure(bench, options)?,
        scale: scale.measure(bench, options)?,
        idle: many("gateway-idle", "idle", &MANY, &MORE_MANY).measure(bench, options)?,
        reload: reload.measure(bench, once)?,
    })
}

/// Every target with what was found, in the order of the page.
fn targets(measured: &Measured) -> Vec<Target> {
    let Measured { calls, pinned, start, scale, idle, reload } = measured;
    let many = |run: &Summary, metric: &str| run.median("serve-many", metric);
    let more = |what: &str| {
        let at = |when: &str| many(reload, &format!("{what}_{when}"));
        Some(at("after")? - at("before")?)
    };
    let row = Target::new;
    vec![
        row("one call after the other, p50, to Toolway's relay", calls.ratio("serve", P50), X, AtMost(1.6)),
        row("pipelined over 8 servers, to Toolway's relay", calls.ratio("serve-8", PIPE), X, AtLeast(0.7)),
        row("one core: one call after the other, p50", pinned.ratio("serve", P50), X, AtMost(1.6)),
        row("one core: pipelined over 8 servers", pinned.ratio("serve-8", PIPE), X, AtLeast(0.7)),
        row("50 servers: `initialize` answered", many(start, "init_ms"), MS, AtMost(50.0)),
        row("50 servers: those whose tools came", many(start, "servers_seen"), "", AtLeast(48.0)),
        row("50 servers: latest after its own answer", many(start, "late_max_ms"), MS, AtMost(50.0)),
        row("1,000 tools: `tools/list`", many(scale, "list_ms"), MS, AtMost(5.0)),
        row(
            "1,000 tools: the first `tools/list`, no server running",
            scale.median("serve-lazy", "disk_list_ms"),
            MS,
            AtMost(5.0),
        ),
        row("1,000 tools: `toolway_search`", scale.median("serve-search", "search_ms"), MS, AtMost(2.0)),
        row(
            "1,000 tools: `tools/list` in search mode",
            scale.median("serve-search", "list_bytes"),
            " bytes",
            AtMost(4000.0),
        ),
        row("20 servers, idle: memory of its own (PSS)", many(idle, "pss_idle_mb"), MIB, AtMost(20.0)),
        row("200 reloads: processes more than before", more("procs"), "", AtMost(0.0)),
        row("200 reloads: descriptors more than before", more("fds"), "", AtMost(0.0)),
        row("200 reloads: memory more than before (PSS)", more("pss_mb"), MIB, AtMost(1.0)),
        row("200 reloads: calls lost", many(reload, "calls_lost"), "", AtMost(0.0)),
    ]
}

const P50: &str = "echo_p50_us";
const PIPE: &str = "pipe_calls_s";
const X: &str = " x";
const MS: &str = " ms";
const MIB: &str = " MiB";

const SMALL: [Column; 7] = [
    ("echo p50 µs", "echo_p50_us", true),
    ("echo p99 µs", "echo_p99_us", false),
    ("CPU µs/call", "cpu_us_call", true),
    ("pipelined calls/s", "pipe_calls_s", true),
    ("CPU µs/call, pipelined", "pipe_cpu_us_call", true),
    ("start ms", "cold_ms", false),
    ("idle MiB", "rss_idle_mb", false),
];
const START: [Column; 4] = [
    ("`initialize` ms", "init_ms", false),
    ("servers seen", "servers_seen", false),
    ("tools after their server's answer, median ms", "late_p50_ms", false),
    ("the latest, ms", "late_max_ms", false),
];
const LISTS: [Column; 7] = [
    ("all up ms", "all_ms", false),
    ("`tools/list` ms", "list_ms", false),
    ("bytes", "list_bytes", false),
    ("second start: `initialize` ms", "disk_init_ms", false),
    ("its first `tools/list` ms", "disk_list_ms", false),
    ("search ms", "search_ms", false),
    ("right tool found %", "search_found_percent", false),
];
const IDLE: [Column; 4] = [
    ("processes", "procs", false),
    ("RSS MiB", "rss_idle_mb", false),
    ("PSS MiB", "pss_idle_mb", false),
    ("CPU ms/s", "idle_cpu_ms_s", false),
];
const RELOAD: [Column; 10] = [
    ("reloads", "reloads", false),
    ("median ms", "reload_p50_ms", false),
    ("processes before", "procs_before", false),
    ("after", "procs_after", false),
    ("descriptors before", "fds_before", false),
    ("after", "fds_after", false),
    ("RSS MiB before", "rss_mb_before", false),
    ("after", "rss_mb_after", false),
    ("PSS MiB before", "pss_mb_before", false),
    ("after", "pss_mb_after", false),
];

/// The block of the page.
pub(super) fn block(measured: &Measured, facts: &Facts, options: Options) -> String {
    let Facts { date, machine, compiler, .. } = facts;
    let command =
        if options.quick { "cargo xtask bench gateway --quick" } else { "cargo xtask bench gateway" };
    let all = targets(measured);
    let met = all.iter().filter(|t| t.is_met()).count();
    let rows: Vec<String> = all.iter().map(Target::row).collect();
    let mut out = format!(
        "Measured on {date} by `{command}` ({} interleaved rounds, medians; ratios are medians of the ratios within a \
         round) on {machine}; {compiler}, release profile.\n\n\
         ### Targets of the gateway ({met} of {} met)\n\n| figure | target | found | |\n|---|---|---|---|\n{}\n",
        options.rounds,
        all.len(),
        rows.join("\n")
    );
    let Measured { calls, pinned, start, scale, idle, reload } = measured;
    out += &table("Calls through the gateway (ratios to `toolway`, the relay)", calls, &SMALL);
    out += &table("The same, everything on one core", pinned, &SMALL);
    out += &table("50 servers, one mute and one absent", start, &START);
    out += &table("1,000 tools over 20 servers", scale, &LISTS);
    out += &table("Idle with 20 servers (all processes of the front, not the servers)", idle, &IDLE);
    out += &table("Reloads of the configuration, one server of five changed by each", reload, &RELOAD);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(front: &str, figures: &str) -> Summary {
        Summary::parse(&format!(r#"{{"fronts":{{"{front}":{figures}}}}}"#)).expect("parses")
    }

    #[test]
    fn targets_are_read_from_their_own_run_and_front() {
        let measured = Measured {
            calls: summary("serve", r#"{"echo_p50_us":{"median":70,"ratio":1.7}}"#),
            idle: summary("serve-many", r#"{"pss_idle_mb":{"median":19.5}}"#),
            reload: summary("serve-many", r#"{"fds_before":{"median":30},"fds_after":{"median":31}}"#),
            ..Measured::default()
        };
        let rows: Vec<String> = targets(&measured).iter().map(Target::row).collect();
        let row = |name: &str| rows.iter().find(|r| r.contains(name)).cloned().unwrap_or_default();
        assert!(rows[0].ends_with("| at most 1.60 x | 1.70 x | **not met** |"), "{rows:?}");
        assert!(row("PSS) | at most 20.0").ends_with("| 19.5 MiB | met |"), "{rows:?}");
        assert!(row("descriptors").ends_with("| at most 0.00 | 1.00 | **not met** |"), "{rows:?}");
        assert!(row("processes").ends_with("| not measured | ? |"), "{rows:?}");
    }
}
