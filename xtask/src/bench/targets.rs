//! What the relay shall reach, and whether it did. Figures of other programs are the yardsticks' and the peers' own.

use super::machine::Facts;
use super::runs::Measured;
use super::summary::{Summary, shown};

/// One figure beside its target.
#[derive(Debug)]
pub(super) struct Target {
    what: String,
    wanted: String,
    found: Option<f64>,
    unit: &'static str,
    is_met: bool,
}

impl Target {
    pub(super) fn new(what: impl Into<String>, found: Option<f64>, unit: &'static str, bound: Bound) -> Self {
        Self {
            what: what.into(),
            wanted: bound.wanted(unit),
            is_met: found.is_some_and(|f| bound.holds(f)),
            found,
            unit,
        }
    }

    /// A row of the table.
    pub(super) fn row(&self) -> String {
        let found =
            self.found.map_or_else(|| "not measured".into(), |f| format!("{}{}", shown(f), self.unit));
        let verdict = match (self.found, self.is_met) {
            (None, _) => "?",
            (_, true) => "met",
            (_, false) => "**not met**",
        };
        format!("| {} | {} | {found} | {verdict} |", self.what, self.wanted)
    }

    pub(super) const fn is_met(&self) -> bool {
        self.is_met
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

use Bound::{AtLeast, AtMost};

impl Bound {
    fn wanted(self, unit: &str) -> String {
        match self {
            AtMost(x) => format!("at most {}{unit}", shown(x)),
            AtLeast(x) => format!("at least {}{unit}", shown(x)),
        }
    }

    fn holds(self, figure: f64) -> bool {
        match self {
            AtMost(x) => figure <= x,
            AtLeast(x) => figure >= x,
        }
    }
}

const X: &str = " x";
const MIB: &str = " MiB";

/// The Python reference, `cursor-mcp-response-proxy`, as ratios to `relay` on one machine (2026-11-30): pipelined
/// calls, and start; and its idle memory in MiB.
const REFERENCE_PIPE: f64 = 1_777.0 / 569_393.0;
const REFERENCE_START: f64 = 421.2 / 2.0;
const REFERENCE_MIB: f64 = 53.2;

fn stdio(run: &Summary, how: &str) -> [Target; 3] {
    let of = |metric| run.ratio("toolway", metric);
    [
        Target::new(format!("stdio{how}: sequential p50, to `relay`"), of("echo_p50_us"), X, AtMost(1.15)),
        Target::new(
            format!("stdio{how}: CPU per sequential call, to `relay`"),
            of("cpu_us_call"),
            X,
            AtMost(1.3),
        ),
        Target::new(
            format!("stdio{how}: pipelined calls per second, to `relay`"),
            of("pipe_calls_s"),
            X,
            AtLeast(0.7),
        ),
    ]
}

/// All targets, in the order of the page.
pub(super) fn targets(measured: &Measured, facts: &Facts) -> Vec<Target> {
    let Measured { stdio: free, pinned, big, http, start, huge, sse: _ } = measured;
    let of = |run: &Summary, metric| run.ratio("toolway", metric);
    let raised = |metric| big.ratio("toolway-raised", metric);
    let later = start.median("toolway", "cold_ms").zip(start.median("relay", "cold_ms")).map(|(t, r)| t - r);
    let memory = free.median("toolway", "peak_small_mb");
    let mut all: Vec<Target> = stdio(free, "").into();
    all.extend(stdio(pinned, ", one core"));
    all.extend([
        Target::new("stdio, 1 MB result, to `relay --frame`", raised("blob_1M_ms"), X, AtMost(1.2)),
        Target::new("stdio, 10 MB result, to `relay --frame`", raised("blob_10M_ms"), X, AtMost(1.2)),
        Target::new("HTTP: sequential p50, to `bridge`", of(http, "echo_p50_us"), X, AtMost(2.0)),
        Target::new(
            "HTTP: pipelined calls per second, to `bridge`",
            of(http, "pipe_calls_s"),
            X,
            AtLeast(0.5),
        ),
        Target::new("start: `initialize` answered later than through `relay`", later, " ms", AtMost(3.0)),
        Target::new(
            "memory, idle (all processes of the front)",
            free.median("toolway", "rss_idle_mb"),
            MIB,
            AtMost(6.0),
        ),
        Target::new("memory, peak under small calls", memory, MIB, AtMost(6.0)),
        Target::new(
            "memory, peak with a result of 1 GiB",
            huge.median("toolway", "huge_peak_mb"),
            MIB,
            AtMost(32.0),
        ),
        Target::new(
            "1 GiB result saved whole: speed, to `relay` passing it",
            of(huge, "huge_mib_s"),
            X,
            AtLeast(0.4),
        ),
        Target::new(
            "the same, from an upstream that streams it at no cost",
            of(huge, "huge_mib_s"),
            X,
            AtLeast(0.4),
        ),
        Target::new("release binary", Some(facts.binary_mib), MIB, AtMost(12.0)),
        Target::new(
            "Python reference: pipelined calls, times its own",
            of(free, "pipe_calls_s").map(|r| r / REFERENCE_PIPE),
            X,
            AtLeast(150.0),
        ),
        Target::new(
            "Python reference: its idle memory, times ours",
            free.median("toolway", "rss_idle_mb").map(|m| REFERENCE_MIB / m),
            X,
            AtLeast(8.0),
        ),
        Target::new(
            "Python reference: its start, times ours",
            of(start, "cold_ms").map(|r| REFERENCE_START / r),
            X,
            AtLeast(80.0),
        ),
    ]);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_on_their_side() {
        let table = [
            (AtMost(1.15), Some(1.15), "| x | at most 1.15 x | 1.15 x | met |"),
            (AtMost(1.15), Some(1.2), "| x | at most 1.15 x | 1.20 x | **not met** |"),
            (AtLeast(0.7), Some(0.69), "| x | at least 0.70 x | 0.69 x | **not met** |"),
            (AtLeast(0.7), None, "| x | at least 0.70 x | not measured | ? |"),
        ];
        for (bound, found, row) in table {
            let target = Target::new("x", found, X, bound);
            assert_eq!(target.row(), row);
            assert_eq!(target.is_met(), row.ends_with("| met |"));
        }
    }

    #[test]
    fn start_is_a_difference_and_the_reference_a_quotient() {
        let start = r#"{"fronts":{"relay":{"cold_ms":{"median":2.0}},"toolway":{"cold_ms":{"median":4.0,"ratio":2.0}}}}"#;
        let measured = Measured { start: Summary::parse(start).expect("parses"), ..Measured::default() };
        let rows: Vec<String> = targets(&measured, &Facts::default()).iter().map(Target::row).collect();
        let row = |name: &str| rows.iter().find(|r| r.contains(name)).cloned().unwrap_or_default();
        assert!(row("`initialize`").ends_with("| at most 3.00 ms | 2.00 ms | met |"), "{rows:?}");
        assert!(row("its start").ends_with("| at least 80.0 x | 105 x | met |"), "{rows:?}");
    }
}
