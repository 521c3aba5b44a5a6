//! Owns what is wrong with servers that a program gives. The rules are the configuration's own.

use std::collections::BTreeSet;

use toolway_config::{LoadOptions, Problem, TrustMode};

use super::Faults;
use crate::inline::McpServers;
use crate::options::Machine;

/// Looks at every entry; nothing is opened, started or asked. What a file of variables says is seen when its server
/// starts.
pub(super) fn check(field: &str, servers: &McpServers, machine: &Machine, faults: &mut Faults) {
    if servers.is_empty() {
        return;
    }
    let mut seen = BTreeSet::new();
    for name in servers.names() {
        if !seen.insert(name) {
            faults.about(name, format!("{field}.{name}"), "the name is there twice");
        }
    }
    let mut environment = machine.environment().clone();
    // What an administrator forbids is a state, and no fault.
    environment.managed_dirs.clear();
    let options =
        LoadOptions { inline: servers.to_json(), trust: TrustMode::Given, ..LoadOptions::default() };
    let resolved = toolway_config::load(&options, &environment);
    let of_file = |problem: &&Problem| problem.field.as_deref() == Some("envFile");
    for problem in resolved.problems.iter().filter(|problem| problem.is_error() && !of_file(problem)) {
        let server = problem.server.as_deref().unwrap_or_default();
        let member = problem.field.as_ref().map(|field| format!(".{field}")).unwrap_or_default();
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        faults.about(server, format!("{field}.{server}{member}"), format!("{}{hint}", problem.message));
    }
}
