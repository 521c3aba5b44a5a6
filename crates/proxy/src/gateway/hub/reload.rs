//! Owns generations: what becomes of servers when the settings change, and the state of every entry.

use std::sync::Arc;

use super::Hub;
use super::listing::Lists;
use super::server::Server;
use crate::gateway::catalogue::Pins;
use crate::gateway::config::{Expose, GatewayConfig, ServerConfig, ServerEntry};
use crate::gateway::state::ServerState;
use crate::gateway::status::Status;
use crate::gateway::upstream::UpstreamId;

/// Entries that are remembered although the settings name them no more.
const MISSING: usize = 256;

impl Hub {
    /// Starts all servers of the settings.
    pub(in crate::gateway) fn begin(&mut self) {
        let entries = self.config.servers.clone();
        for entry in entries {
            self.add(entry);
        }
    }

    fn add(&mut self, entry: ServerEntry) {
        let number = self.servers.len();
        let ServerEntry { name, source, plan } = entry;
        let name: Arc<str> = name.into();
        let config = plan.as_ref().ok().map(Arc::clone);
        self.by_name.insert(Arc::clone(&name), number);
        self.servers.push(Server {
            name,
            source,
            plan,
            shared: None,
            private: false,
            lists: None,
            live: false,
            recalled: true,
            pins: Pins::default(),
            changed: Vec::new(),
            settled: false,
        });
        if let Some(config) = config {
            self.start_shared(number, &config);
        }
    }

    fn start_shared(&mut self, number: usize, config: &Arc<ServerConfig>) {
        let shared = self.start(number, config, None);
        if let Some(server) = self.servers.get_mut(number) {
            server.shared = Some(shared);
            (server.settled, server.private, server.live) = (false, false, false);
        }
        self.recall(number, config);
    }

    /// New settings: what is the same is left alone.
    pub(super) fn reload(&mut self, config: GatewayConfig) {
        let before = std::mem::replace(&mut self.config, config);
        self.reshape(&before);
        let entries = self.config.servers.clone();
        let mut named = vec![false; self.servers.len()];
        for entry in entries {
            match self.by_name.get(&*entry.name).copied() {
                Some(number) => {
                    if let Some(named) = named.get_mut(number) {
                        *named = true;
                    }
                    self.change(number, entry);
                }
                None => self.add(entry),
            }
        }
        for (number, named) in named.into_iter().enumerate() {
            if !named {
                self.remove(number);
            }
        }
        self.forget_missing();
        self.lists_may_go();
    }

    /// Another way to show the same lists.
    fn reshape(&mut self, before: &GatewayConfig) {
        let pinned = |config: &GatewayConfig| match &config.expose {
            Expose::All => None,
            Expose::Search { pinned } => Some(format!("{pinned:?} {:?}", super::searching::names(config))),
        };
        let same = pinned(before) == pinned(&self.config)
            && before.bare == self.config.bare
            && before.max_name_chars == self.config.max_name_chars
            && before.pin_tools == self.config.pin_tools
            && Arc::ptr_eq(&before.guard, &self.config.guard);
        if same {
            return;
        }
        let lists = Lists::new(&self.config);
        let old = std::mem::replace(&mut self.lists, lists);
        self.lists.take_waiting(old);
        for number in 0..self.servers.len() {
            let Some(server) = self.servers.get(number) else { continue };
            if let (Ok(config), Some(lists)) = (&server.plan, &server.lists) {
                let (config, lists) = (Arc::clone(config), Arc::clone(lists));
                self.put_lists(number, &config, &lists);
            }
        }
    }

    /// An entry that was there before.
    fn change(&mut self, number: usize, entry: ServerEntry) {
        let Some(server) = self.servers.get_mut(number) else { return };
        server.source = entry.source;
        let before = std::mem::replace(&mut server.plan, entry.plan.clone());
        match (before, entry.plan) {
            (Ok(before), Ok(after)) if runs_alike(&before, &after) => self.keep(number, &before, &after),
            (Ok(_), Ok(after)) => {
                // The lists stay until the new copy has its own: nothing vanishes for a moment.
                self.retire(number);
                self.start_shared(number, &after);
            }
            (Err(_), Ok(after)) => self.start_shared(number, &after),
            (Ok(_), Err(_)) => {
                self.retire(number);
                self.drop_lists(number);
            }
            (Err(_), Err(_)) => {}
        }
    }

    /// The copies go on; only what the gateway itself does with them may be different.
    fn keep(&mut self, number: usize, before: &Arc<ServerConfig>, after: &Arc<ServerConfig>) {
        for copy in self.copies(number) {
            if let Some(instance) = self.instances.get_mut(&copy) {
                instance.config = Arc::clone(after);
            }
        }
        if format!("{:?}", before.filter) == format!("{:?}", after.filter) {
            return;
        }
        let lists = self.servers.get(number).and_then(|server| server.lists.clone());
        if let Some(lists) = lists {
            self.put_lists(number, after, &lists);
        }
    }

    /// The settings do not name it any more.
    fn remove(&mut self, number: usize) {
        let Some(server) = self.servers.get_mut(number) else { return };
        if matches!(server.plan, Err(ServerState::Missing)) {
            return;
        }
        server.plan = Err(ServerState::Missing);
        self.retire(number);
        self.drop_lists(number);
    }

    fn drop_lists(&mut self, number: usize) {
        if let Some(server) = self.servers.get_mut(number) {
            (server.lists, server.live) = (None, false);
        }
        self.remove_lists(number);
    }

    /// The copies of a server end with their last calls.
    fn retire(&mut self, number: usize) {
        let copies: Vec<UpstreamId> = self.copies(number);
        if let Some(server) = self.servers.get_mut(number) {
            server.shared = None;
        }
        for session in self.sessions.values_mut() {
            session.own.remove(&number);
        }
        for copy in copies {
            if let Some(instance) = self.instances.get_mut(&copy) {
                instance.retired = true;
            }
            self.end_if_idle(copy);
        }
    }

    /// Entries that are gone for long need not be remembered.
    fn forget_missing(&mut self) {
        let missing: Vec<usize> = (0..self.servers.len())
            .filter(|number| {
                self.servers.get(*number).is_some_and(|s| matches!(s.plan, Err(ServerState::Missing)))
            })
            .collect();
        for number in missing.iter().take(missing.len().saturating_sub(MISSING)) {
            if let Some(server) = self.servers.get_mut(*number) {
                let name = std::mem::replace(&mut server.name, Arc::from(""));
                server.source = String::new();
                self.by_name.remove(&name);
            }
        }
    }

    /// The state of every entry.
    pub(super) fn status(&mut self) -> Vec<Status> {
        let refused = self.lists.catalogue().refused();
        (0..self.servers.len()).filter_map(|number| self.status_of(number, &refused)).collect()
    }

    fn status_of(&mut self, number: usize, refused: &[crate::gateway::catalogue::Refused]) -> Option<Status> {
        use crate::gateway::lists::ListKind;
        let state = self.state_of(number);
        let copies = self.copies(number);
        let negotiated = copies.iter().find_map(|copy| self.instances.get(copy)?.negotiated.as_ref());
        let protocol = negotiated.map(|negotiated| negotiated.version.clone());
        let transport = negotiated.map(|negotiated| negotiated.carrier.name());
        let server = self.servers.get(number).filter(|server| !server.name.is_empty())?;
        let (name, source) = (server.name.to_string(), server.source.clone());
        let changed_tools = server.changed.clone();
        let settled = server.plan.is_err() || (server.settled && server.recalled);
        let lazy = server.plan.as_ref().is_ok_and(|config| config.lazy);
        let catalogue = self.lists.catalogue().get(number).cloned();
        let count = |kind| catalogue.as_ref().map_or(0, |catalogue| catalogue.definitions(kind).len());
        let hidden_tools = refused
            .iter()
            .filter(|one| one.server == name && one.kind == ListKind::Tools)
            .map(|one| (one.name.clone(), one.reason.clone()))
            .collect();
        Some(Status {
            name,
            source,
            state,
            transport,
            settled,
            lazy,
            protocol,
            tools: count(ListKind::Tools),
            prompts: count(ListKind::Prompts),
            resources: count(ListKind::Resources) + count(ListKind::Templates),
            hidden_tools,
            changed_tools,
            tokens: catalogue.as_ref().map_or(0, |catalogue| catalogue.tokens()),
            instances: copies.len(),
            notes: catalogue.as_ref().map(|catalogue| catalogue.notes().to_vec()).unwrap_or_default(),
        })
    }
}

/// The same process or connection serves both.
fn runs_alike(before: &ServerConfig, after: &ServerConfig) -> bool {
    before.digest == after.digest
        && before.share == after.share
        && before.max_response_chars == after.max_response_chars
        && before.protocol == after.protocol
}
