//! The example hosts of `toolway bridge`: each runs its tools for its stand-in agent, and ends with nothing left.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::interop::{DEADLINE, Stage};
use crate::process::Step;

/// The language of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    TypeScript,
}

impl Language {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript",
        }
    }

    /// The interpreter, and the example's file.
    fn command(self, stage: &Stage) -> Result<(PathBuf, PathBuf)> {
        match self {
            Self::TypeScript => {
                let node = stage.peers.node24.as_ref().context("no Node.js that strips types")?;
                Ok((node.node.clone(), stage.root.join("examples/hosts/typescript/host.ts")))
            }
        }
    }
}

/// What each example prints, in any order.
const LINES: [&str; 7] = [
    "agent: sees host__add, host__wait",
    "agent: host__add said: 5",
    "agent: host__wait said: waited 50 ms",
    "agent: host__add failed: a and b must be numbers",
    "host: add answered",
    "host: wait answered",
    "host: add answered",
];

pub(super) fn run(stage: &Stage, name: &str, language: Language) -> Result<()> {
    let folder = stage.folder(name)?;
    let (interpreter, file) = language.command(stage)?;
    let step = Step::new(interpreter).arg(file).arg(&stage.front).dir(&folder).env("HOME", &folder);
    let printed = step.output(DEADLINE)?;
    let mut lines: Vec<&str> = printed.lines().collect();
    let mut wanted = LINES.to_vec();
    lines.sort_unstable();
    wanted.sort_unstable();
    ensure!(lines == wanted, "it printed\n{printed}");
    Ok(())
}
