//! What is right for each scenario, judged from the words that the run left. Starts nothing.

use std::fmt::Write as _;

use serde_json::Value;

use crate::table::Row;

/// The words under a key; lists as they print.
fn words(row: &Row, key: &str) -> Option<String> {
    row.get(key).map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
}

fn is_result(row: &Row, key: &str) -> bool {
    words(row, key).is_some_and(|w| w.starts_with("result"))
}

fn is_error(row: &Row, key: &str) -> bool {
    words(row, key).is_some_and(|w| w.starts_with("error") || w.starts_with("isError"))
}

/// No upstream was left behind; one over HTTP is the harness's own.
fn upstream_is_gone(row: &Row) -> bool {
    words(row, "upstream_state").is_none_or(|w| w.contains("gone"))
}

fn has_no_unanswered(row: &Row) -> bool {
    words(row, "pending").is_some_and(|w| w.contains("0 unanswered"))
}

type Rule = fn(&Row) -> bool;

/// The rule of a scenario; `hang` has none, since how long to wait is the client's affair.
fn rule(scenario: &str) -> Option<Rule> {
    let rule: Rule = match scenario {
        "crash" | "crash_partial" | "unauth_later" | "sse_cut" => |row| is_error(row, "pending"),
        "garbage" | "deep_answer_10k" => |row| is_result(row, "pending") && is_result(row, "next"),
        "stderr_flood" | "session_404" | "sse_cut_resumable" => |row| is_result(row, "pending"),
        "never" => |row| is_result(row, "next"),
        "stdin_close_inflight" | "sigterm_inflight" => |row| has_no_unanswered(row) && upstream_is_gone(row),
        "stdin_close_stubborn"
        | "stdin_close_shell"
        | "sigterm_ignores_eof"
        | "sigkill"
        | "sigkill_ignores_eof" => upstream_is_gone,
        "invalid_json" => {
            |row| words(row, "answer").is_some_and(|w| w.contains("-32700")) && is_result(row, "next")
        }
        "batch" => {
            |row| words(row, "answer").is_some_and(|w| !w.contains("nothing")) && is_result(row, "next")
        }
        "blob_100M" => |row| {
            is_result(row, "pending")
                && row.get("peak_mb").and_then(Value::as_f64).is_some_and(|mb| mb < 64.0)
        },
        "deep_request_10k" => {
            |row| (is_result(row, "pending") || is_error(row, "pending")) && is_result(row, "next")
        }
        "unauth_start" | "refused_start" => |row| is_error(row, "initialize"),
        "restart" => |row| is_error(row, "while_down") && is_result(row, "second_after"),
        "status_500" => |row| is_error(row, "pending") && is_result(row, "next"),
        _ => return None,
    };
    Some(rule)
}

#[cfg(test)]
pub(super) fn has_rule(scenario: &str) -> bool {
    rule(scenario).is_some()
}

/// Whether the front did right; None where nothing is judged. A front that did not start did wrong.
pub(crate) fn is_right(row: &Row) -> Option<bool> {
    let rule = rule(row.get("scenario")?.as_str()?)?;
    Some(!row.contains_key("error") && !row.contains_key("skipped") && rule(row))
}

/// Right of judged for each front and upstream, and what was wrong.
pub(crate) fn summary(rows: &[Row]) -> String {
    let mut fronts: Vec<(String, usize, Vec<String>)> = vec![];
    for row in rows {
        let Some(right) = is_right(row) else { continue };
        let of = |key| words(row, key).unwrap_or_default();
        let name = format!("{} {}", of("upstream"), of("front"));
        let at = fronts.iter().position(|f| f.0 == name).unwrap_or_else(|| {
            fronts.push((name, 0, vec![]));
            fronts.len() - 1
        });
        if right {
            fronts[at].1 += 1;
        } else {
            fronts[at].2.push(of("scenario"));
        }
    }
    let mut out = String::new();
    for (name, right, wrong) in fronts {
        let all = right + wrong.len();
        let list = if wrong.is_empty() { "none".to_owned() } else { wrong.join(", ") };
        writeln!(out, "{name}: {right}/{all}  wrong: {list}").ok();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(value: &Value) -> Row {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn each_rule_can_be_met_and_missed() {
        use serde_json::json;
        let (good, bad) = ("result (9 bytes) after 1 ms", "nothing in 5 s");
        let table = [
            (
                json!({"scenario": "crash", "pending": "error -32000 x"}),
                json!({"scenario": "crash", "pending": good}),
            ),
            (
                json!({"scenario": "garbage", "pending": good, "next": good}),
                json!({"scenario": "garbage", "pending": good, "next": bad}),
            ),
            (
                json!({"scenario": "stderr_flood", "pending": good}),
                json!({"scenario": "stderr_flood", "pending": bad}),
            ),
            (json!({"scenario": "never", "next": good}), json!({"scenario": "never", "next": "front gone"})),
            (
                json!({"scenario": "sigterm_inflight", "pending": "0 results, 3 errors, 0 unanswered of 3", "upstream_state": "gone after 0.0 s"}),
                json!({"scenario": "sigterm_inflight", "pending": "0 results, 3 errors, 0 unanswered of 3", "upstream_state": "ORPHAN (1 still there)"}),
            ),
            (
                json!({"scenario": "sigkill", "upstream_state": "gone after 0.1 s"}),
                json!({"scenario": "sigkill", "upstream_state": "ORPHAN"}),
            ),
            (
                json!({"scenario": "invalid_json", "answer": "{\"code\":-32700}", "next": good}),
                json!({"scenario": "invalid_json", "answer": "nothing", "next": good}),
            ),
            (
                json!({"scenario": "batch", "answer": ["[..]"], "next": good}),
                json!({"scenario": "batch", "answer": ["nothing in 3 s"], "next": good}),
            ),
            (
                json!({"scenario": "blob_100M", "pending": good, "peak_mb": 9}),
                json!({"scenario": "blob_100M", "pending": good, "peak_mb": 100}),
            ),
            (
                json!({"scenario": "deep_request_10k", "pending": "error x", "next": good}),
                json!({"scenario": "deep_request_10k", "pending": bad, "next": good}),
            ),
            (
                json!({"scenario": "unauth_start", "initialize": "error -32001"}),
                json!({"scenario": "unauth_start", "initialize": bad}),
            ),
            (
                json!({"scenario": "restart", "while_down": "error x", "second_after": good}),
                json!({"scenario": "restart", "while_down": bad, "second_after": good}),
            ),
            (
                json!({"scenario": "status_500", "pending": "isError result", "next": good}),
                json!({"scenario": "status_500", "pending": good, "next": good}),
            ),
            (
                json!({"scenario": "session_404", "pending": good}),
                json!({"scenario": "session_404", "error": "initialize: timeout"}),
            ),
        ];
        for (right, wrong) in table {
            assert_eq!(is_right(&row(&right)), Some(true), "{right}");
            assert_eq!(is_right(&row(&wrong)), Some(false), "{wrong}");
        }
        assert_eq!(is_right(&row(&json!({"scenario": "hang", "pending": bad}))), None);
    }

    #[test]
    fn summary_counts_each_front_and_upstream() {
        use serde_json::json;
        let rows = [
            row(&json!({"front": "a", "upstream": "http", "scenario": "crash", "pending": "error x"})),
            row(&json!({"front": "a", "upstream": "http", "scenario": "sse_cut", "pending": "result"})),
            row(&json!({"front": "b", "upstream": "http", "scenario": "crash", "pending": "error x"})),
        ];
        assert_eq!(summary(&rows), "http a: 1/2  wrong: sse_cut\nhttp b: 1/1  wrong: none\n");
    }
}
