//! Owns what is told of every configured server: where it stands, what it is, and why. Decides nothing.

use toolway_proxy::gateway::{ServerState, Status};
use toolway_secret::Secret;

use super::{Generation, Part};
use crate::compose::Configured;
use crate::event::ServerReport;
use crate::hooks::McpServerUse;

impl Generation {
    /// Every configured server and what it is now, also those that are never started, and those that were there before.
    pub fn reports(&self) -> Vec<ServerReport> {
        let mut reports: Vec<ServerReport> = Vec::new();
        for part in &self.parts {
            let view = part.core.view();
            let within = |one: &&Configured| part.only.as_ref().is_none_or(|only| only.contains(&one.name));
            for configured in part.core.configured.iter().filter(within) {
                let status = view.status.iter().find(|status| status.name == configured.name);
                let mut report = report(configured, status.filter(|_| configured.state.is_none()));
                if self.changed.contains(&configured.name) && is_given(part, configured) {
                    let told = "its definition has changed since the agent was made";
                    let reason = report.reason.take();
                    report.reason = Some(reason.map_or_else(|| told.to_owned(), |r| format!("{r}; {told}")));
                }
                reports.push(report);
            }
        }
        for aside in &self.aside {
            let told = Told::of(&aside.state, false);
            reports.push(ServerReport {
                name: aside.name.clone(),
                source: "inline".to_owned(),
                place: None,
                transport: Some(aside.transport.clone()),
                state: told.state,
                reason: told.reason,
                tools: 0,
            });
        }
        reports
    }

    /// A server, as rules and hooks are told about it.
    pub(crate) fn server_use(&self, name: &str) -> McpServerUse {
        let configured = self.parts.iter().flat_map(|part| {
            let within = |one: &&Configured| part.only.as_ref().is_none_or(|only| only.contains(&one.name));
            part.core.configured.iter().filter(within)
        });
        let mut named = configured.filter(|one| one.name == name);
        // The one that wins stands first.
        let Some(found) = named.next() else {
            return McpServerUse { name: name.to_owned(), ..McpServerUse::default() };
        };
        McpServerUse {
            name: name.to_owned(),
            explicit: matches!(found.source.as_str(), "inline" | "per-send" | "custom" | "direct"),
            command: found.command.clone(),
            url: found.url.clone(),
        }
    }

    /// Values that no text may repeat: those of its servers' entries, as they became when they were read.
    pub(crate) fn secrets(&self) -> Vec<Secret> {
        let configured = self.parts.iter().flat_map(|part| &part.core.configured);
        configured.flat_map(|one| one.secrets.iter().cloned()).collect()
    }
}

/// It was given by the program that made the agent.
fn is_given(part: &Part, configured: &Configured) -> bool {
    !part.is_direct && configured.source == "inline"
}

fn report(configured: &Configured, status: Option<&Status>) -> ServerReport {
    let state = configured.state.as_ref().or_else(|| status.map(|status| &status.state));
    let mut told = Told::of(state.unwrap_or(&ServerState::Starting), configured.lazy);
    if configured.source == "direct" && matches!(state, Some(ServerState::Disabled { .. })) {
        // Nobody has switched it off: an agent behind a protocol has it, as it is.
        let reason = Some("the agent connects to it itself".to_owned());
        told = Told { state: "handed_over".to_owned(), reason };
    }
    let used = status.and_then(|status| status.transport);
    let notes = status.map(notes).filter(|notes| !notes.is_empty());
    ServerReport {
        name: configured.name.clone(),
        source: configured.source.clone(),
        place: configured.place.clone(),
        transport: used.or(configured.transport).map(str::to_owned),
        state: told.state,
        reason: match (told.reason, notes) {
            (Some(reason), Some(notes)) => Some(format!("{reason}; {notes}")),
            (reason, notes) => reason.or(notes),
        },
        tools: status.map_or(0, |status| status.tools),
    }
}

/// What is not shown of a server that is up, and what had to be changed.
fn notes(status: &Status) -> String {
    let hidden =
        status.hidden_tools.iter().map(|(tool, reason)| format!("tool {tool:?} is hidden: {reason}"));
    let notes: Vec<String> = hidden.chain(status.notes.iter().cloned()).collect();
    notes.join("; ")
}

/// A state in words.
struct Told {
    state: String,
    reason: Option<String>,
}

impl Told {
    fn of(state: &ServerState, lazy: bool) -> Self {
        let reason = match state {
            ServerState::Starting if lazy => Some("it is started by its first call".to_owned()),
            ServerState::Starting | ServerState::Connected => None,
            ServerState::Missing => {
                Some("it was given when the agent was made, and is not given now".to_owned())
            }
            ServerState::Failed { stage, reason, hint } => {
                let hint = hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                Some(format!("{}: {reason}{hint}", stage.name()))
            }
            ServerState::NeedsAuth { hint } | ServerState::Untrusted { hint } => Some(hint.clone()),
            ServerState::NeedsInput { inputs } => Some(format!("it needs {}", inputs.join(", "))),
            ServerState::Blocked { policy } => Some(policy.clone()),
            ServerState::Disabled { by } => Some(format!("switched off by {by}")),
            ServerState::Shadowed { by } => Some(format!("another one of that name wins: {by}")),
        };
        Self { state: state.name().to_owned(), reason }
    }
}
