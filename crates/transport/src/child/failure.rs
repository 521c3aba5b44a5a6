//! Why an upstream could not be started, in words that lead to the cure.

use std::io;
use std::path::PathBuf;

use super::Exit;
#[cfg(unix)]
use crate::supervisor::{CANNOT_START, EXIT_CANNOT_START};

/// Why an upstream could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The command is in none of the places that were searched.
    #[error(transparent)]
    NotFound(#[from] crate::command::NotFound),
    /// The working directory does not exist or is not a directory.
    #[error("the working directory {}: {}", if path.exists() { "is no directory" } else { "does not exist" }, path.display())]
    WorkingDirectory {
        /// As configured.
        path: PathBuf,
    },
    /// The system refused to start the process.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The program, or the supervisor in front of it.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The arguments cannot be handed to this kind of program.
    #[error("cannot start {}: {reason}", program.display())]
    Arguments {
        /// The program.
        program: PathBuf,
        /// What is wrong with them.
        reason: &'static str,
    },
    /// The supervisor could not start the program; the reason names it.
    #[error("cannot start {reason}")]
    Supervisor {
        /// Program and reason, such as `/opt/x: Permission denied (os error 13)`.
        reason: String,
    },
}

/// Reads the supervisor's one line about a command that it could not start.
#[cfg(unix)]
pub(super) fn from_supervisor(exit: Exit, stderr: &str) -> Option<StartError> {
    if exit != Exit::Code(i32::from(EXIT_CANNOT_START)) {
        return None;
    }
    let reason = stderr.lines().rev().find_map(|line| line.strip_prefix(CANNOT_START))?;
    Some(StartError::Supervisor { reason: reason.to_owned() })
}

/// There is no supervisor on Windows.
#[cfg(windows)]
pub(super) fn from_supervisor(_exit: Exit, _stderr: &str) -> Option<StartError> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_the_supervisors_own_line_is_a_start_failure() {
        let line = "noise\ntoolway-supervisor: cannot start /x: Permission denied (os error 13)\n";
        let table = [
            (Exit::Code(125), line, Some("cannot start /x: Permission denied (os error 13)")),
            (Exit::Code(1), line, None),
            (Exit::Code(125), "docker: daemon is not running\n", None),
            (Exit::Code(125), "", None),
            (Exit::Signal(9), line, None),
        ];
        for (exit, stderr, expected) in table {
            let failure = from_supervisor(exit, stderr).map(|error| error.to_string());
            assert_eq!(failure.as_deref(), expected, "{exit:?} {stderr:?}");
        }
    }
}
