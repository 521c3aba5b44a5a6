//! Owns which servers a subagent has: those of its parent that it names, and its own. It knows no subagents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Generation, Part};
use crate::compose::Wanted;
use crate::custom_tools::CUSTOM_SERVER;
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
        let mut faults = Vec::new();
        let (mut named, mut own) = (BTreeSet::new(), McpServers::new());
        self.check_names(name, servers, &mut faults);
        if !faults.is_empty() {
            return Err(AgentError::Configuration(faults));
        }
        for server in servers {
            match server {
                SubagentServers::Named(server) => {
                    named.insert(server.clone());
                }
                SubagentServers::Inline(servers) => {
                    for (name, server) in servers.iter() {
                        own.insert(name, server.clone());
                    }
                }
            }
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

    /// Looks whether every server that subagents name is there, whatever its state.
    ///
    /// # Errors
    /// [`AgentError::Configuration`] with all that are not.
    pub(crate) fn check_subagents(
        &self,
        agents: &BTreeMap<String, AgentDefinition>,
    ) -> Result<(), AgentError> {
        let mut faults = Vec::new();
        for (name, definition) in agents {
            self.check_names(name, definition.mcp_servers.as_deref().unwrap_or_default(), &mut faults);
        }
        if faults.is_empty() { Ok(()) } else { Err(AgentError::Configuration(faults)) }
    }

    fn check_names(&self, agent: &str, servers: &[SubagentServers], faults: &mut Vec<Fault>) {
        let known = self.names();
        // What this run was told to do without is no fault of who names it.
        let is_aside = |name: &String| self.aside.iter().any(|aside| aside.name == *name);
        for (at, server) in servers.iter().enumerate() {
            let SubagentServers::Named(server) = server else { continue };
            if known.contains(server) || is_aside(server) || server == CUSTOM_SERVER {
                continue;
            }
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            faults.push(Fault {
                subject: Some(agent.to_owned()),
                field: format!("agents.{agent}.mcpServers.{at}"),
                message: format!("there is no server {server:?}; there is {known}"),
            });
        }
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
