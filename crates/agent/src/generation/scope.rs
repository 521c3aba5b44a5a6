//! Owns which servers a subagent has: those of its parent that it names, and its own. It knows no subagents.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Generation, Part};
use crate::compose::Wanted;
use crate::error::{AgentError, Fault};
use crate::inline::McpServers;
use crate::options::{AgentDefinition, SubagentServers};

impl Generation {
    /// The same servers for a subagent: those that its definition names, and its own, which end with what is given. One
    /// without a list has all of its parent's.
    ///
    /// # Errors
    /// It names one that is not there.
    pub async fn for_subagent(
        self: &Arc<Self>,
        name: &str,
        definition: &AgentDefinition,
    ) -> Result<Arc<Self>, AgentError> {
        let Some(servers) = &definition.mcp_servers else { return Ok(Arc::clone(self)) };
        let known = self.names();
        let mut faults = Vec::new();
        let (mut named, mut own) = (BTreeSet::new(), McpServers::new());
        for (at, server) in servers.iter().enumerate() {
            match server {
                SubagentServers::Named(server) if known.contains(server) => {
                    named.insert(server.clone());
                }
                SubagentServers::Named(server) => {
                    let known: Vec<&str> = known.iter().map(String::as_str).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    faults.push(Fault {
                        subject: Some(name.to_owned()),
                        field: format!("agents.{name}.mcpServers.{at}"),
                        message: format!("there is no server {server:?}; there is {known}"),
                    });
                }
                SubagentServers::Inline(servers) => {
                    for (name, server) in servers.iter() {
                        own.insert(name, server.clone());
                    }
                }
            }
        }
        if !faults.is_empty() {
            return Err(AgentError::Configuration(faults));
        }
        for name in own.names() {
            named.remove(name);
        }
        let mut parts: Vec<Part> = self
            .parts
            .iter()
            .map(|part| Part { only: Some(part.within(&named)), owned: false, ..part.clone() })
            .filter(|part| part.only.as_ref().is_some_and(|only| !only.is_empty()))
            .collect();
        let mut diagnostics = Vec::new();
        if !own.is_empty() {
            let mut composer = self.composer.without_files();
            let composed = composer.compose(Wanted { inline: own.to_json(), ..Wanted::default() }).await;
            if let Some(core) = self.maker.main(&composed, &[], composer.timeouts()).await {
                parts.push(Part { core, only: None, is_direct: false, owned: true });
            }
            diagnostics = composed.diagnostics;
        }
        Ok(Arc::new(Self {
            parts,
            direct: self.direct.iter().filter(|one| named.contains(&one.name)).cloned().collect(),
            aside: Vec::new(),
            diagnostics,
            changed: self.changed.clone(),
            maker: Arc::clone(&self.maker),
            composer: self.composer.without_files(),
        }))
    }

    /// The names of all servers within reach, whatever their state.
    fn names(&self) -> BTreeSet<String> {
        let configured = self.parts.iter().flat_map(|part| {
            let within = |name: &&String| part.only.as_ref().is_none_or(|only| only.contains(*name));
            part.core.configured.iter().map(|one| &one.name).filter(within)
        });
        configured.cloned().collect()
    }
}

impl Part {
    /// Of these servers the ones that it has.
    fn within(&self, named: &BTreeSet<String>) -> BTreeSet<String> {
        let has = |name: &&String| {
            self.core.configured.iter().any(|one| one.name == **name)
                && self.only.as_ref().is_none_or(|only| only.contains(*name))
        };
        named.iter().filter(has).cloned().collect()
    }
}
