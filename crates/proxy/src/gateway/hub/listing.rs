//! Owns what clients see of all servers: the merged lists, the ways back from exposed names, who waits for the first
//! lists, and changes that are told once for many.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::{Duration, Instant};
use toolway_guard::{OutputSchema, ReadBack, read_back_definition};
use toolway_transport::Payload;
use toolway_wire::find::Step;
use toolway_wire::{INVALID_PARAMS, Id, IdHasher};

use super::session::Asker;
use super::work::Work;
use super::{Hub, splice};
use crate::gateway::catalogue::{Catalogue, Changes, ServerCatalogue, Shaping};
use crate::gateway::config::{Expose, GatewayConfig, ServerConfig, Wait};
use crate::gateway::lists::{ListKind, RawLists};
use crate::gateway::message::{ClientMessage, Message, SessionId};
use crate::gateway::naming::Naming;
use crate::gateway::status::ToolStatus;
use crate::gateway::translate;
use crate::gateway::upstream::UpstreamId;

/// How long changes are gathered before clients hear of them.
const GATHER: Duration = Duration::from_millis(20);

/// A tool or prompt by its exposed name.
#[derive(Debug, Clone)]
pub(super) struct Known {
    /// Number of the server.
    pub(super) server: usize,
    /// The server's own name.
    pub(super) own: Arc<str>,
    /// The same as a JSON string.
    pub(super) json: Bytes,
}

type Memory = HashMap<Box<str>, Known, BuildHasherDefault<IdHasher>>;

/// What waits for the first lists.
#[derive(Debug)]
enum Awaited {
    List(ListKind),
    /// A request for something that no server is known to have yet.
    Request(Box<Message>),
}

/// The most requests that wait so, and the most bytes of one.
const HELD: usize = 256;
const HELD_BYTES: usize = 64 << 10;

/// The lists of all servers.
#[derive(Debug)]
pub(super) struct Lists {
    catalogue: Catalogue,
    naming: Naming,
    relax: bool,
    /// Tools that were called.
    tools: Memory,
    /// Some result was saved: there may be resources of ours.
    pub(super) saved: bool,
    changes: Changes,
    /// When clients hear of the changes.
    tell_at: Option<Instant>,
    /// Who waits for the first lists.
    waiting: Vec<(Asker, Awaited)>,
    /// When they wait no more.
    wait_until: Option<Instant>,
}

impl Lists {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        let guard = config.guard.config();
        let mut own_tools: Vec<Bytes> = Vec::new();
        let pinned = match &config.expose {
            Expose::All => None,
            Expose::Search { pinned } => {
                own_tools.extend(super::searching::definitions(config));
                Some(pinned.clone())
            }
        };
        if guard.read_back != ReadBack::Off {
            own_tools.push(read_back_definition().into());
        }
        Self {
            catalogue: Catalogue::new(own_tools, pinned),
            naming: Naming::new(config.max_name_chars, config.bare),
            relax: guard.output_schema == OutputSchema::Relax,
            tools: HashMap::default(),
            saved: guard.read_back == ReadBack::User,
            changes: Changes::default(),
            tell_at: None,
            waiting: Vec::new(),
            wait_until: None,
        }
    }

    /// The tool of that exposed name.
    pub(super) fn tool(&mut self, exposed: &str) -> Option<Known> {
        if let Some(known) = self.tools.get(exposed) {
            return Some(known.clone());
        }
        let known = self.find(ListKind::Tools, exposed)?;
        self.tools.insert(exposed.into(), known.clone());
        Some(known)
    }

    /// There is a tool of that exposed name.
    fn has_tool(&mut self, exposed: &str) -> bool {
        self.tools.contains_key(exposed) || self.tool(exposed).is_some()
    }

    /// The prompt of that exposed name.
    pub(super) fn prompt(&mut self, exposed: &str) -> Option<Known> {
        self.find(ListKind::Prompts, exposed)
    }

    fn find(&mut self, kind: ListKind, exposed: &str) -> Option<Known> {
        let route = self.catalogue.route(kind, exposed)?;
        let (own, json) = (route.definition.own.as_str().into(), route.definition.own_json.clone());
        Some(Known { server: route.server, own, json })
    }

    /// Whose resource that is, and the address that the server knows.
    pub(super) fn resource(&mut self, uri: &str) -> Option<(usize, String)> {
        self.catalogue.resource(uri).map(|route| (route.server, route.own.into_owned()))
    }

    /// The address under which clients know a server's resource.
    pub(super) fn exposed_uri(&mut self, server: usize, own: &str) -> String {
        self.catalogue.exposed_uri(server, own).into_owned()
    }

    /// What the plain names of a server's tools begin with.
    pub(super) fn prefix(&self, server: &str) -> String {
        self.naming.exposed(server, "x").strip_suffix("x").unwrap_or_default().to_owned()
    }

    pub(super) fn catalogue(&mut self) -> &mut Catalogue {
        &mut self.catalogue
    }

    /// When the hub is to look again.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        [self.tell_at, self.wait_until.filter(|_| !self.waiting.is_empty())].into_iter().flatten().min()
    }

    fn note(&mut self, changes: Changes, now: Instant) {
        if changes.tools {
            self.tools.clear();
        }
        if !changes.any() {
            return;
        }
        self.changes.tools |= changes.tools;
        self.changes.prompts |= changes.prompts;
        self.changes.resources |= changes.resources;
        self.tell_at = self.tell_at.or(Some(now + GATHER));
    }

    /// Who waited before the settings changed still does, and clients hear that the lists are others.
    pub(super) fn take_waiting(&mut self, old: Self) {
        (self.waiting, self.wait_until, self.saved) = (old.waiting, old.wait_until, old.saved || self.saved);
        (self.changes, self.tell_at) = (old.changes, old.tell_at);
    }

    /// All that this server listed is shown.
    pub(super) fn is_whole(&self, server: usize) -> bool {
        self.catalogue.get(server).is_some_and(|catalogue| catalogue.is_whole())
    }

    /// A client waits no more.
    pub(super) fn forget(&mut self, session: SessionId) {
        self.waiting.retain(|(asker, _)| asker.session != session);
    }
}

impl Hub {
    /// What a server offers, as it came.
    pub(super) fn server_lists(&mut self, id: UpstreamId, lists: &Arc<RawLists>) {
        let Some(instance) = self.instances.get(&id) else { return };
        if instance.retired {
            return;
        }
        let (number, config) = (instance.server, Arc::clone(&instance.config));
        let Some(server) = self.servers.get_mut(number) else { return };
        (server.lists, server.live) = (Some(Arc::clone(lists)), true);
        if server.recalled {
            self.put_live_lists(number, &config, lists);
            self.subscribe_again(id);
        }
        if !lists.pending {
            self.settle(number);
        }
    }

    /// Shows what a server offers.
    pub(super) fn put_lists(&mut self, number: usize, config: &ServerConfig, lists: &RawLists) {
        let Some(server) = self.servers.get(number) else { return };
        let shaping = Shaping {
            naming: self.lists.naming,
            filter: &config.filter,
            relax_output: self.lists.relax,
            pins: self.config.pin_tools.then_some(&server.pins),
        };
        let catalogue = ServerCatalogue::new(&config.name, lists, shaping);
        let changes = self.lists.catalogue.set(number, Arc::new(catalogue));
        // Names that cannot be called any more, or mean something else now.
        self.lists.tools.clear();
        self.lists.note(changes, self.now);
    }

    /// A server is gone from the lists.
    pub(super) fn remove_lists(&mut self, number: usize) {
        let changes = self.lists.catalogue.remove(number);
        self.lists.tools.clear();
        self.lists.note(changes, self.now);
    }

    /// A list request: answered from the catalogue, or held until the servers that it waits for are there.
    pub(super) fn list(&mut self, asker: Asker, kind: ListKind, message: &Message) {
        let cursor = [Step::Key("params"), Step::Key("cursor")];
        let cursor = message.content.bytes().and_then(|bytes| splice::value(bytes, &cursor));
        if cursor.is_some_and(|cursor| cursor != b"null") {
            self.fail(&asker, INVALID_PARAMS, "invalid params: no page of this list has that cursor");
            return;
        }
        if self.must_wait() {
            self.await_lists(asker, Awaited::List(kind));
            return;
        }
        self.send_list(asker, kind);
    }

    /// Every tool that can be called.
    pub(super) fn tools(&mut self) -> Vec<ToolStatus> {
        let lost = self.lists.catalogue.unreachable();
        let catalogue = &self.lists.catalogue;
        let mut tools = Vec::new();
        for (server, own) in catalogue.servers() {
            let name = self.servers.get(server).map(|server| &*server.name).unwrap_or_default();
            for (at, definition) in own.definitions(ListKind::Tools).iter().enumerate() {
                if !lost.contains(&(server, at)) {
                    tools.push(ToolStatus {
                        exposed: definition.exposed.clone(),
                        server: name.to_owned(),
                        own: definition.own.clone(),
                        definition: definition.item.clone(),
                        listed: catalogue.is_listed(&definition.exposed),
                    });
                }
            }
        }
        for definition in catalogue.own_tools() {
            let name = splice::text(definition, &[Step::Key("name")]).unwrap_or_default();
            let (exposed, own, definition) = (name.clone(), name, definition.clone());
            tools.push(ToolStatus { exposed, server: String::new(), own, definition, listed: true });
        }
        tools
    }

    fn await_lists(&mut self, asker: Asker, what: Awaited) {
        if self.lists.wait_until.is_none() {
            let waited = self.servers.iter().filter_map(|server| server.plan.as_ref().ok());
            let longest = waited.map(|config| config.timeouts.startup + config.timeouts.list).max();
            self.lists.wait_until = Some(self.now + longest.unwrap_or_default());
        }
        self.lists.waiting.push((asker, what));
    }

    /// A request for what nobody is known to have waits as the first list does: a client may know the name from before.
    /// Gives it back when it need not wait.
    pub(super) fn awaited(&mut self, asker: Asker, message: Message) -> Option<(Asker, Message)> {
        let small = message.content.bytes().is_some_and(|bytes| bytes.len() <= HELD_BYTES);
        if !small || self.lists.waiting.len() >= HELD || !self.is_unknown(&message) || !self.must_wait() {
            return Some((asker, message));
        }
        self.await_lists(asker, Awaited::Request(Box::new(message)));
        None
    }

    fn is_unknown(&mut self, message: &Message) -> bool {
        let name = message.envelope.name().unwrap_or_default();
        match message.envelope.method() {
            Some("tools/call") => !self.lists.has_tool(name) && !name.starts_with("toolway_"),
            Some("prompts/get") => self.lists.prompt(name).is_none(),
            Some("resources/read" | "resources/subscribe") => {
                self.lists.resource(message.envelope.uri().unwrap_or_default()).is_none()
            }
            Some("completion/complete") => true,
            _ => false,
        }
    }

    /// Some server that the first list waits for is not there yet.
    fn must_wait(&self) -> bool {
        if self.lists.wait_until.is_some_and(|until| until <= self.now) {
            return false;
        }
        let waits = |config: &ServerConfig| match self.config.wait {
            Wait::None => false,
            Wait::Required => config.required,
            Wait::All => !config.lazy,
        };
        // What is kept on disk is there within milliseconds.
        let recalling = |server: &super::Server| !server.recalled && server.lists.is_none();
        self.servers.iter().any(|server| {
            let plan = server.plan.as_ref();
            plan.is_ok_and(|config| recalling(server) || (!server.settled && waits(config)))
        })
    }

    /// Another server has settled.
    pub(super) fn lists_may_go(&mut self) {
        if self.must_wait() {
            return;
        }
        for (asker, what) in std::mem::take(&mut self.lists.waiting) {
            match what {
                Awaited::List(kind) => self.send_list(asker, kind),
                Awaited::Request(message) => self.request(asker, *message),
            }
        }
    }

    /// A client gives up a list that it waits for.
    pub(super) fn lists_cancel(&mut self, session: SessionId, request: &Id) {
        let is_it = |asker: &Asker| asker.session == session && asker.id == *request;
        if let Some(at) = self.lists.waiting.iter().position(|(asker, _)| is_it(asker)) {
            let (asker, _) = self.lists.waiting.remove(at);
            self.forget(&asker);
        }
    }

    fn send_list(&mut self, asker: Asker, kind: ListKind) {
        let result = self.lists.catalogue.list(kind);
        if kind == ListKind::Resources && self.lists.saved && self.reads_back() {
            let answer = splice::result(asker.id.raw(), &result);
            self.work_for(asker, "resources/list", |flight, guard, _, session| Work::ListSaved {
                flight,
                guard,
                answer,
                session,
            });
            return;
        }
        let bytes = splice::result(asker.id.raw(), &result);
        let bytes =
            if asker.modern.is_some() { translate::result_to_modern(&bytes, kind.method()) } else { bytes };
        self.answer(&asker, bytes);
    }

    /// The time has come to tell of changes, or to wait no more.
    pub(super) fn lists_tick(&mut self) {
        self.lists_may_go();
        if self.lists.tell_at.is_none_or(|at| at > self.now) {
            return;
        }
        self.lists.tell_at = None;
        let Changes { tools, prompts, resources } = std::mem::take(&mut self.lists.changes);
        for (changed, method) in [
            (tools, "notifications/tools/list_changed"),
            (prompts, "notifications/prompts/list_changed"),
            (resources, "notifications/resources/list_changed"),
        ] {
            if changed {
                self.tell_all(method);
            }
        }
    }

    fn tell_all(&mut self, method: &str) {
        let bytes = Bytes::from(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{method}\"}}"));
        let mut ready: Vec<SessionId> =
            self.sessions.iter().filter(|(_, state)| state.ready).map(|(session, _)| *session).collect();
        ready.sort_unstable();
        for session in ready {
            let payload = Payload::Bytes(bytes.clone());
            self.tell_client(session, ClientMessage { about: None, is_answer: false, payload });
        }
        self.tell_streams(method, &bytes);
    }
}
