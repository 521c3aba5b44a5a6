//! A Markdown table of measured rows: medians over rounds, and ratios to a baseline within each round.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::sys::percentile;

/// One measured row: front, round, and what was measured.
pub(crate) type Row = Map<String, Value>;

fn number(x: f64) -> String {
    match x.abs() {
        a if !a.is_finite() => "-".into(),
        a if a >= 1000.0 => format!("{x:.0}"),
        a if a >= 100.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.2}"),
        _ => format!("{x:.3}"),
    }
}

fn front(row: &Row) -> &str {
    row.get("front").and_then(Value::as_str).unwrap_or("?")
}

/// (round, value) of one front.
fn values(rows: &[Row], name: &str, key: &str) -> Vec<(u64, f64)> {
    let of_front = rows.iter().filter(|r| front(r) == name);
    of_front
        .filter_map(|r| Some((r.get("round").and_then(Value::as_u64).unwrap_or(0), r.get(key)?.as_f64()?)))
        .collect()
}

/// The median over the rounds; NaN of none.
fn median(rows: &[Row], name: &str, key: &str) -> f64 {
    percentile(&mut values(rows, name, key).into_iter().map(|(_, x)| x).collect::<Vec<_>>(), 50)
}

/// The median of the ratios to `baseline` within each round; NaN of none.
fn ratio(rows: &[Row], name: &str, baseline: &str, key: &str) -> f64 {
    let base = values(rows, baseline, key);
    let mut ratios: Vec<f64> = values(rows, name, key)
        .into_iter()
        .filter_map(|(round, x)| base.iter().find(|b| b.0 == round).map(|b| x / b.1))
        .filter(|x| x.is_finite())
        .collect();
    percentile(&mut ratios, 50)
}

/// The table, with what failed below it.
pub(crate) fn table(rows: &[Row], baseline: &str) -> String {
    let (mut names, mut keys): (Vec<&str>, Vec<&str>) = (vec![], vec![]);
    for row in rows {
        if !names.contains(&front(row)) {
            names.push(front(row));
        }
        for (key, value) in row {
            if value.is_number() && key != "round" && !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
    }
    let mut out = String::from(
        "\nMedian over rounds; in brackets the median of the per-round ratios to the baseline.\n\n",
    );
    writeln!(out, "| metric | {} |\n|---|{}", names.join(" | "), "---|".repeat(names.len())).ok();
    for key in &keys {
        write!(out, "| {key} |").ok();
        for name in &names {
            let (middle, ratio) = (median(rows, name, key), ratio(rows, name, baseline, key));
            if *name == baseline || ratio.is_nan() {
                write!(out, " {} |", number(middle)).ok();
            } else {
                write!(out, " {} ({}x) |", number(middle), number(ratio)).ok();
            }
        }
        out.push('\n');
    }
    for failure in failures(rows) {
        write!(out, "\n- {failure}").ok();
    }
    out
}

/// What failed, one line each.
fn failures(rows: &[Row]) -> Vec<String> {
    let mut out = vec![];
    for row in rows {
        for (key, value) in row {
            if key.ends_with("verdict") || key.ends_with("error") || (key == "alive_after" && value == false)
            {
                let round = row.get("round").map(Value::to_string).unwrap_or_default();
                out.push(format!("{} round {round}: {key} = {value}", front(row)));
            }
        }
    }
    out
}

/// The same figures as JSON: `{"fronts": {NAME: {METRIC: {"median": x, "ratio": y}}}, "failures": [..]}`, without what
/// is not there.
pub(crate) fn summary(rows: &[Row], baseline: &str) -> Value {
    let mut fronts = Row::new();
    for row in rows {
        let name = front(row);
        let known = fronts.entry(name).or_insert_with(|| json!({}));
        for (key, _) in row.iter().filter(|(k, v)| v.is_number() && *k != "round") {
            if known.get(key).is_none() {
                let mut figure = json!({"median": median(rows, name, key)});
                let ratio = ratio(rows, name, baseline, key);
                if name != baseline && ratio.is_finite() {
                    figure["ratio"] = json!(ratio);
                }
                known[key] = figure;
            }
        }
    }
    json!({"fronts": fronts, "failures": failures(rows)})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let all = [
            ("relay", 0, 10.0),
            ("ours", 0, 20.0),
            ("relay", 1, 100.0),
            ("ours", 1, 110.0),
            ("relay", 2, 10.0),
            ("ours", 2, 11.0),
        ];
        all.into_iter()
            .filter_map(|(front, round, x)| {
                serde_json::json!({"front": front, "round": round, "p50": x}).as_object().cloned()
            })
            .collect()
    }

    #[test]
    fn ratios_are_taken_within_a_round() {
        assert!((ratio(&rows(), "ours", "relay", "p50") - 1.1).abs() < 1e-9);
        assert!((median(&rows(), "relay", "p50") - 10.0).abs() < 1e-9);
        assert!(ratio(&rows(), "ours", "other", "p50").is_nan());
    }

    #[test]
    fn summary_has_the_same_figures() {
        let summary = summary(&rows(), "relay");
        assert_eq!(summary["fronts"]["ours"]["p50"], json!({"median": 20.0, "ratio": 1.1}));
        assert_eq!(summary["fronts"]["relay"]["p50"], json!({"median": 10.0}));
        assert_eq!(summary["failures"], json!([]));
    }

    #[test]
    fn table_shows_medians_ratios_and_failures() {
        let mut rows = rows();
        rows[1].insert("blob_verdict".into(), "WRONG".into());
        let table = table(&rows, "relay");
        assert!(table.contains("| p50 | 10.00 | 20.00 (1.10x) |"), "{table}");
        assert!(table.contains("- ours round 0: blob_verdict = \"WRONG\""), "{table}");
    }
}
