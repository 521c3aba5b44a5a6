//! Owns what can go wrong with saved results, as one enum. Knows nothing of JSON-RPC codes.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something asked of the guard or of its store cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError {
    /// The directory for saved results cannot be used.
    #[error("{path}: {reason}", path = .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An operation on a file failed.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried: `write`, `read`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// No saved result has this id, or none that the caller may see.
    #[error("no saved result has the id {0:?}")]
    NotFound(String),
    /// Several saved results begin with this id.
    #[error("{count} saved results have an id that begins with {prefix:?}; give more of it")]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// How many begin with it.
        count: usize,
    },
    /// A query needs the whole result in memory and it is too large for that.
    #[error("{bytes} bytes are too many for a query (the most is {limit}); use search or lines, or jq on {path}", path = .path.display())]
    TooLarge {
        /// Its size in bytes.
        bytes: u64,
        /// The most in bytes.
        limit: u64,
        /// The file.
        path: PathBuf,
    },
    /// A range of lines or bytes that makes no sense.
    #[error(
        "bad range {0:?}: give FIRST-LAST, FIRST- or FIRST, counted from one for lines and from zero for bytes"
    )]
    Range(String),
    /// A regular expression that does not compile.
    #[error("bad regular expression: {0}")]
    Pattern(String),
    /// A jq filter that does not compile, or that failed.
    #[error("query failed: {0}")]
    Query(String),
    /// A query in a process of its own was ended by a bound; the one of its time is named.
    #[error("the query took more than {} s, or more memory than it may", .0.as_secs_f64())]
    QueryBounds(Duration),
    /// A query in a process of its own failed: that process's words.
    #[error("{0}")]
    QueryProcess(String),
    /// A glob that cannot be meant.
    #[error("bad pattern {0:?}: it is empty")]
    Glob(String),
    /// Arguments of the read-back tool that do not fit its schema.
    #[error("{0}")]
    Arguments(String),
    /// Bytes that should have been JSON are not.
    #[error("not JSON: {0}")]
    Json(String),
}

impl GuardError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }
}
