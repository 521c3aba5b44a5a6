//! What was typed: a measure and its options. It knows no measure.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

pub(crate) struct Args {
    pub(crate) what: String,
    options: Vec<(String, String)>,
}

impl Args {
    pub(crate) fn parse(words: Vec<String>) -> Result<Self> {
        let mut words = words.into_iter();
        let what = words.next().context("no measure")?;
        let mut options = Vec::new();
        while let Some(name) = words.next() {
            let value = words.next().with_context(|| format!("{name} needs a value"))?;
            options.push((name, value));
        }
        Ok(Self { what, options })
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self, name: &str) -> Result<PathBuf> {
        self.text(name).map(PathBuf::from).with_context(|| format!("{name} is missing"))
    }

    /// How often, or how many.
    pub(crate) fn count(&self, default: usize) -> Result<usize> {
        let count = self.text("--count").map(str::parse).transpose().context("--count")?;
        Ok(count.unwrap_or(default).clamp(1, 1_000_000))
    }
}
