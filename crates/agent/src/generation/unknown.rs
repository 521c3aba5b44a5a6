//! Owns what is said, and waited for, when a tool is called that is not there. It calls nothing.

use toolway_bridge::RawJson;
use toolway_proxy::gateway::{ServerState, Status};

use super::{Generation, McpCall, Part, core};

impl Generation {
    /// Who knows best why there is no such tool: the gateway with the server that the name seems to be of.
    pub(super) fn unfound(&self, call: &McpCall<'_>) -> Option<(&Part, String, RawJson)> {
        let whole = self.parts.iter().filter(|part| part.only.is_none());
        let mut named = whole.filter(|part| part.server_of(call.exposed).is_some());
        named.next().map(|part| (part, call.exposed.to_owned(), call.arguments.clone()))
    }

    /// What to say of a tool that its server does not have, though that is up: what it has.
    pub(super) fn lacking(&self, exposed: &str) -> Option<String> {
        const NAMED: usize = 50;
        let part = self.parts.iter().find(|part| !part.is_direct && part.server_of(exposed).is_some())?;
        let (server, view) = (part.server_of(exposed)?, part.core.view());
        let is_up = |one: &Status| one.name == server && matches!(one.state, ServerState::Connected);
        if !view.status.iter().any(is_up) {
            return None;
        }
        let own = view.offer.all().iter().filter(|tool| *tool.server == *server && part.has(tool));
        let names: Vec<&str> = own.take(NAMED).map(|tool| tool.exposed.as_str()).collect();
        let names = if names.is_empty() { "no tools".to_owned() } else { names.join(", ") };
        Some(format!("unknown tool: {exposed:?}: server {server:?} has {names}"))
    }

    /// Waits while the server that a name seems to be of is starting.
    pub(super) async fn late(&self, exposed: &str) {
        for part in &self.parts {
            if let Some(server) = part.server_of(exposed) {
                let settled = |view: &core::View| {
                    view.offer.tool(exposed).is_some()
                        || view.status.iter().all(|one| one.name != server || one.settled || one.lazy)
                };
                part.core.until(settled).await;
            }
        }
    }

    pub(super) fn unknown(&self, exposed: &str) -> String {
        const NAMED: usize = 50;
        let tools = self.tools();
        let names: Vec<&str> = tools.iter().take(NAMED).map(|tool| tool.exposed.as_str()).collect();
        match (names.is_empty(), tools.len() > NAMED) {
            (true, _) => format!("unknown tool: {exposed:?}: there are no tools of servers"),
            (false, false) => format!("unknown tool: {exposed:?}; there is {}", names.join(", ")),
            (false, true) => format!("unknown tool: {exposed:?}; there is {}, ...", names.join(", ")),
        }
    }
}
