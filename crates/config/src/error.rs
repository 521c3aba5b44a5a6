//! Owns what can go wrong when something is done, beside what is wrong in a file.

use std::io;
use std::path::{Path, PathBuf};

use crate::problem::Problem;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write` or `watch`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration is not fit for it.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
}

impl ConfigError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }
}

fn list(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
