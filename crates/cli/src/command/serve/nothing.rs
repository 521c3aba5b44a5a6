//! Owns what is said when nothing is configured: to a person on a terminal, and to a client that started us, whose user
//! sees the answer to its first request and little else.

use std::io::IsTerminal as _;
use std::sync::Arc;

use toolway_proxy::{Ending, Relay, RelayConfig, run_unstarted};

use crate::compose::UsageError;
use crate::compose::serve::Serving;
use crate::compose::servers::Servers;
use crate::exit::{Exit, complain};
use crate::logs;

/// Says it, and ends.
pub(super) fn run(servers: &Servers, serving: Serving, listens: bool) -> Result<Exit, UsageError> {
    let reason = reason(servers);
    complain(&reason, Some(HINT));
    if listens || std::io::stdin().is_terminal() {
        logs::finish();
        return Ok(Exit::Usage);
    }
    let guard = Arc::into_inner(serving.guard);
    let Some(guard) = guard else { return Ok(Exit::Usage) };
    let config = RelayConfig {
        guard,
        server: "toolway".to_owned(),
        session: crate::compose::session_name(),
        drain: serving.drain,
        record: serving.record,
        redactor: None,
    };
    let streams = (super::super::stream(std::io::stdin())?, super::super::stream(std::io::stdout())?);
    let signals = super::super::signals()?;
    let said = format!("toolway: {reason}. {HINT}");
    let ending = run_unstarted(&Arc::new(Relay::new(config)), &said, streams, signals);
    logs::finish();
    Ok(if let Ending::Signal(_) = ending { ending.into() } else { Exit::Usage })
}

const HINT: &str = "run `toolway import` to take over the servers of the clients on this machine, `toolway add` for a \
single one, or name a file with --config";

fn reason(servers: &Servers) -> String {
    let mut shown: Vec<String> = Vec::new();
    for file in &servers.resolved.files {
        let path = file.path.display().to_string();
        if !shown.contains(&path) {
            shown.push(path);
        }
    }
    let errors = servers.resolved.problems.iter().filter(|problem| problem.is_error()).count();
    let faults = match errors {
        0 => String::new(),
        1 => ", where one fault was found (see stderr)".to_owned(),
        more => format!(", where {more} faults were found (see stderr)"),
    };
    if shown.is_empty() {
        return "no MCP server is configured".to_owned();
    }
    format!("no MCP server is configured (looked at {}{faults})", shown.join(", "))
}
