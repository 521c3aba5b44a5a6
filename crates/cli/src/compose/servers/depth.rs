//! Owns the guard against a gateway that serves itself: an entry that runs `toolway serve` in a file that it reads too
//! would start processes without end.

use std::ffi::OsString;

use crate::compose::{Environment, UsageError};

/// How many gateways stand above a process. Servers are given it with their variables.
const VARIABLE: &str = "TOOLWAY_DEPTH";
/// A gateway behind an agent behind a gateway may be meant; more is a circle.
const DEEPEST: u32 = 3;

/// The variable for processes that are started from here.
pub(super) fn below(own: &Environment) -> (OsString, OsString) {
    (VARIABLE.into(), (depth(own) + 1).to_string().into())
}

/// A gateway that stands behind so many others is part of a circle.
pub(crate) fn refuse_circle(own: &Environment) -> Result<(), UsageError> {
    if depth(own) < DEEPEST {
        return Ok(());
    }
    Err(UsageError::new("serve", format!("{DEEPEST} gateways stand above this one: it would serve itself"))
        .with_hint("take the entry that runs `toolway serve` out of the files that it reads, or name others by --config"))
}

fn depth(own: &Environment) -> u32 {
    own.get(VARIABLE).and_then(|value| value.to_str()?.parse().ok()).unwrap_or(0)
}
