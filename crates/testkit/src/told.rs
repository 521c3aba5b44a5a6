//! What a program said, and how it ended.

use std::process::Output;

use anyhow::{Result, ensure};
use serde_json::Value;

/// What a program said, and how it ended.
#[derive(Debug)]
pub struct Told {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub out: String,
    /// What it wrote to stderr.
    pub err: String,
}

impl Told {
    /// Of a program that ended.
    pub fn of(output: Output) -> Result<Self> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes);
        Ok(Self { code: output.status.code(), out: text(output.stdout)?, err: text(output.stderr)? })
    }

    /// It ended with that code.
    pub fn ended(self, code: i32) -> Result<Self> {
        ensure!(self.code == Some(code), "exit code {:?}, not {code}: {self:#?}", self.code);
        Ok(self)
    }

    /// That is all.
    pub fn is(&self, code: i32, out: &str, err: &str) -> Result<()> {
        let fits = self.code == Some(code) && self.out == out && self.err == err;
        ensure!(fits, "{self:#?}\nis not {code}\n{out}\n{err}");
        Ok(())
    }

    /// Stdout is JSON.
    pub fn json(&self) -> Result<Value> {
        Ok(serde_json::from_str(&self.out)?)
    }

    /// The lines of stdout, each JSON.
    pub fn lines(&self) -> Result<Vec<Value>> {
        Ok(self.out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }

    /// It says each of these somewhere.
    pub fn says(&self, texts: &[&str]) -> Result<()> {
        for text in texts {
            ensure!(self.out.contains(text) || self.err.contains(text), "{text:?} is not in {self:#?}");
        }
        Ok(())
    }
}
