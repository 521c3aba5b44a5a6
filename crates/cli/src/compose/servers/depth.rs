//! Owns the guard against a gateway that serves itself: an entry that runs `toolway serve` in a file that it reads too
//! would start processes without end.

use std::ffi::OsString;
use std::path::Path;

use toolway_config::{Definition, Target};

use crate::compose::{Environment, UsageError};

/// How many gateways stand above a process. Servers are given it with their variables.
const VARIABLE: &str = "TOOLWAY_DEPTH";
/// A gateway behind an agent behind a gateway may be meant; more is a circle.
const DEEPEST: u32 = 3;
/// Names under which the program may be installed.
const OURS: [&str; 2] = ["toolway", "cursor-mcp-response-proxy"];

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

/// Whether the entry is a client's way to this very gateway.
pub(super) fn is_own_front(definition: &Definition) -> bool {
    let Target::Stdio(stdio) = &definition.target else { return false };
    let command = stdio.command.raw();
    let (program, first) = match &stdio.args {
        Some(args) => (command, args.first().map(|arg| arg.raw())),
        None => {
            let mut words = command.split_whitespace();
            (words.next().unwrap_or_default(), words.next())
        }
    };
    let name = Path::new(program).file_stem().map(|name| name.to_string_lossy().to_lowercase());
    first == Some("serve") && name.is_some_and(|name| OURS.contains(&name.as_str()))
}
