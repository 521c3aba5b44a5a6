//! Owns the guard against a gateway that serves itself: an entry that runs `toolway serve` in a file that it reads too
//! would start processes without end.

use std::ffi::OsString;

use crate::options::Machine;

/// How many gateways stand above a process. Servers are given it with their variables.
const VARIABLE: &str = "TOOLWAY_DEPTH";
/// A gateway behind an agent behind a gateway may be meant; more is a circle.
const DEEPEST: u32 = 3;

/// The variable for processes that are started from here.
pub(super) fn below(machine: &Machine) -> (OsString, OsString) {
    (VARIABLE.into(), (depth(machine) + 1).to_string().into())
}

/// So many gateways stand above this process that it must be part of a circle: how many.
pub fn gateway_circle(machine: &Machine) -> Option<u32> {
    let depth = depth(machine);
    (depth >= DEEPEST).then_some(DEEPEST)
}

fn depth(machine: &Machine) -> u32 {
    machine.variable(VARIABLE).and_then(|value| value.to_str()?.parse().ok()).unwrap_or(0)
}
