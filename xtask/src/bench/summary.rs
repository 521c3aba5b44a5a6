//! Medians and ratios that the harness worked out of a run's rows. It reads numbers and judges none.

use anyhow::{Context, Result};
use serde_json::Value;

/// One run's fronts and figures.
#[derive(Debug, Default)]
pub(super) struct Summary {
    fronts: serde_json::Map<String, Value>,
    /// What failed, one line each.
    pub(super) failures: Vec<String>,
}

impl Summary {
    /// From what `toolway-bench summary` printed.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).context("the harness printed no summary")?;
        let failures = value["failures"].as_array().into_iter().flatten();
        Ok(Self {
            fronts: value["fronts"].as_object().cloned().context("a summary has fronts")?,
            failures: failures.filter_map(|f| f.as_str().map(str::to_owned)).collect(),
        })
    }

    /// The fronts in the order in which they were named.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fronts.keys().map(String::as_str)
    }

    /// The same of one front alone; its failures stay where they are told.
    pub(super) fn only(&self, front: &str) -> Self {
        let own = self.fronts.get(front).map(|figures| (front.to_owned(), figures.clone()));
        Self { fronts: own.into_iter().collect(), failures: Vec::new() }
    }

    fn figure(&self, front: &str, metric: &str, kind: &str) -> Option<f64> {
        self.fronts.get(front)?.get(metric)?.get(kind)?.as_f64()
    }

    /// Median over the rounds.
    pub(super) fn median(&self, front: &str, metric: &str) -> Option<f64> {
        self.figure(front, metric, "median")
    }

    /// Median of the per-round ratios to the run's baseline.
    pub(super) fn ratio(&self, front: &str, metric: &str) -> Option<f64> {
        self.figure(front, metric, "ratio")
    }
}

/// A figure as the tables show it.
pub(super) fn shown(figure: f64) -> String {
    match figure.abs() {
        a if a >= 1000.0 => grouped(figure),
        a if a >= 100.0 => format!("{figure:.0}"),
        a if a >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

fn grouped(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && out != "-" {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_by_front_and_metric() {
        let text = r#"{"fronts":{"relay":{"p50":{"median":10.0}},"toolway":{"p50":{"median":11.0,"ratio":1.1}}},"failures":["x"]}"#;
        let summary = Summary::parse(text).expect("parses");
        assert_eq!(summary.names().collect::<Vec<_>>(), ["relay", "toolway"]);
        assert_eq!(
            (summary.median("toolway", "p50"), summary.ratio("toolway", "p50")),
            (Some(11.0), Some(1.1))
        );
        assert_eq!((summary.ratio("relay", "p50"), summary.median("relay", "p99")), (None, None));
        assert_eq!(summary.failures, ["x"]);
        let only = summary.only("relay");
        assert_eq!((only.names().collect::<Vec<_>>(), only.failures.len()), (vec!["relay"], 0));
    }

    #[test]
    fn figures_have_three_digits_or_are_grouped() {
        let table =
            [(0.123, "0.12"), (1.5, "1.50"), (42.66, "42.7"), (999.4, "999"), (1_310_287.0, "1,310,287")];
        for (figure, want) in table {
            assert_eq!(shown(figure), want);
        }
    }
}
