//! Owns the exact times of calls and connections, and their clamps. Pure.

use std::fmt;
use std::time::Duration;

const TOOL_DEFAULT: u64 = 3_600_000;
const TOOL_LEAST: u64 = 60_000;
const TOOL_MOST: u64 = 2_147_483_647;
const CONNECT_DEFAULT: u64 = 10_000;
const CONNECT_LEAST: u64 = 1_000;
const CONNECT_MOST: u64 = 60_000;

/// How long calls and connections may take. Whole milliseconds, within their bounds by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For every MCP tool call of the agent, bridged or not: what the agent's MCP client is to be given.
    pub tool: Duration,
    /// For a call over the bridge, from its arrival: never longer than `tool`.
    pub bridge: Duration,
    /// For an MCP connection: connect, initialize, list.
    pub connect: Duration,
}

/// A configured time that is used otherwise than it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadlineWarning {
    /// Which of the three: `tool`, `bridge`, `connect`.
    pub which: &'static str,
    /// As it was configured, in milliseconds.
    pub configured: f64,
    /// As it is used, in milliseconds.
    pub used: u64,
}

impl fmt::Display for DeadlineWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { which, configured, used } = self;
        let what = match *which {
            "bridge" => "the deadline of a bridged call",
            "connect" => "the time for connecting to an MCP server",
            _ => "the time for an MCP tool call",
        };
        write!(f, "{what} is {used} ms, not {configured} ms as configured")?;
        if *which == "bridge" && *configured > 0.0 {
            f.write_str(": it can only lower the time for an MCP tool call")?;
        }
        Ok(())
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self::new(None, None, None).0
    }
}

impl Deadlines {
    /// From what is configured, in milliseconds. Fractions are cut off; what is not a positive finite number counts as
    /// not configured; the rest is brought within bounds. Every change but a cut fraction is told.
    pub fn new(tool: Option<f64>, bridge: Option<f64>, connect: Option<f64>) -> (Self, Vec<DeadlineWarning>) {
        let mut warnings = Vec::new();
        let tool_ms = clamped("tool", tool, TOOL_DEFAULT, TOOL_LEAST, TOOL_MOST, &mut warnings);
        let bridge_ms = clamped("bridge", bridge, tool_ms, 1, tool_ms, &mut warnings);
        let connect_ms =
            clamped("connect", connect, CONNECT_DEFAULT, CONNECT_LEAST, CONNECT_MOST, &mut warnings);
        let this = Self {
            tool: Duration::from_millis(tool_ms),
            bridge: Duration::from_millis(bridge_ms),
            connect: Duration::from_millis(connect_ms),
        };
        (this, warnings)
    }
}

fn clamped(
    which: &'static str,
    configured: Option<f64>,
    default: u64,
    least: u64,
    most: u64,
    warnings: &mut Vec<DeadlineWarning>,
) -> u64 {
    let Some(configured) = configured else { return default };
    let used = if configured.is_finite() && configured > 0.0 {
        whole(configured).clamp(least, most)
    } else {
        default
    };
    let kept = configured.is_finite() && configured > 0.0 && whole(configured) == used;
    if !kept {
        warnings.push(DeadlineWarning { which, configured, used });
    }
    used
}

/// The whole part of a positive finite number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast of a positive float cuts its fraction and stops at the largest integer, as wanted"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(tool: Option<f64>, bridge: Option<f64>, connect: Option<f64>) -> (u128, u128, u128, usize) {
        let (deadlines, warnings) = Deadlines::new(tool, bridge, connect);
        let Deadlines { tool, bridge, connect } = deadlines;
        (tool.as_millis(), bridge.as_millis(), connect.as_millis(), warnings.len())
    }

    #[test]
    fn statement_28_a_bridge_deadline_only_lowers_and_odd_values_give_the_tool_timeout() {
        assert_eq!(ms(None, Some(120_000.0), None), (3_600_000, 120_000, 10_000, 0));
        assert_eq!(ms(None, Some(7_200_000.0), None), (3_600_000, 3_600_000, 10_000, 1));
        assert_eq!(ms(Some(60_000.0), Some(120_000.0), None), (60_000, 60_000, 10_000, 1));
        // "x" in a file is dropped before it comes here, as unset.
        for odd in [None, Some(-1.0), Some(0.0), Some(f64::NAN), Some(f64::INFINITY), Some(f64::NEG_INFINITY)]
        {
            let warned = usize::from(odd.is_some());
            assert_eq!(ms(None, odd, None), (3_600_000, 3_600_000, 10_000, warned), "{odd:?}");
            assert_eq!(ms(Some(90_000.0), odd, None), (90_000, 90_000, 10_000, warned), "{odd:?}");
            assert_eq!(ms(odd, None, odd), (3_600_000, 3_600_000, 10_000, 2 * warned), "{odd:?}");
        }
    }

    #[test]
    fn values_are_cut_to_whole_milliseconds_and_brought_within_bounds() {
        assert_eq!(ms(None, Some(1500.9), None), (3_600_000, 1500, 10_000, 0));
        assert_eq!(ms(None, Some(0.4), None), (3_600_000, 1, 10_000, 1));
        assert_eq!(ms(Some(59_999.9), None, Some(999.0)), (60_000, 60_000, 1_000, 2));
        assert_eq!(ms(Some(1e300), None, Some(1e300)), (2_147_483_647, 2_147_483_647, 60_000, 2));
        assert_eq!(
            ms(Some(2_147_483_647.5), None, Some(60_000.5)),
            (2_147_483_647, 2_147_483_647, 60_000, 0)
        );
    }

    #[test]
    fn lesson_28_tool_calls_get_an_hour_and_dead_servers_ten_seconds() {
        let deadlines = Deadlines::default();
        assert_eq!(deadlines.tool, Duration::from_hours(1));
        assert_eq!(deadlines.bridge, deadlines.tool);
        assert_eq!(deadlines.connect, Duration::from_secs(10));
    }

    #[test]
    fn a_warning_says_what_was_configured_and_what_is_used() {
        let (_, warnings) = Deadlines::new(Some(60_000.0), Some(120_000.0), None);
        let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "the deadline of a bridged call is 60000 ms, not 120000 ms as configured: it can only lower the time \
              for an MCP tool call"
            ]
        );
    }
}
