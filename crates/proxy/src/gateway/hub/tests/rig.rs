//! A hub with scripted surroundings.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};
use toolway_guard::{Guard, GuardConfig, ReadBack};
use toolway_transport::{ChildConfig, Payload};
use toolway_wire::era::Era;
use toolway_wire::{Scanner, Verdict};

use crate::gateway::config::{
    ChildTarget, Expose, GatewayConfig, Protocol, ServerConfig, ServerEntry, Share, Target, Timeouts,
    ToolFilter, Wait,
};
use crate::gateway::connection::{Carrier, Negotiated};
use crate::gateway::hub::{ClientEvent, Command, Effect, Event, Hub, SessionOptions};
use crate::gateway::lists::RawLists;
use crate::gateway::message::{Content, Message, SessionId};
use crate::gateway::outlet::{Outlet, outlet};
use crate::gateway::state::ServerState;
use crate::gateway::status::Status;
use crate::gateway::upstream::{UpstreamEvent, UpstreamId};

pub(super) fn message(json: &str) -> Message {
    let envelope = match Scanner::new().whole(json.as_bytes()) {
        Verdict::Message(envelope) => envelope.clone(),
        verdict => panic!("{json}: {verdict:?}"),
    };
    Message { content: Content::Bytes(Bytes::copy_from_slice(json.as_bytes())), envelope }
}

pub(super) fn server_config(name: &str) -> ServerConfig {
    ServerConfig {
        name: name.to_owned(),
        target: Target::Child(ChildTarget { command: name.to_owned(), child: ChildConfig::default() }),
        digest: format!("digest of {name}"),
        timeouts: Timeouts::default(),
        required: false,
        lazy: false,
        share: Share::Auto,
        filter: ToolFilter::default(),
        protocol: Protocol::Auto,
        max_response_chars: None,
        secrets: Vec::new(),
        roots: None,
    }
}

pub(super) fn entry(config: ServerConfig) -> ServerEntry {
    ServerEntry { name: config.name.clone(), source: "test.json:1".to_owned(), plan: Ok(Arc::new(config)) }
}

pub(super) fn refused(name: &str, state: ServerState) -> ServerEntry {
    ServerEntry { name: name.to_owned(), source: "test.json:2".to_owned(), plan: Err(state) }
}

pub(super) fn gateway(servers: Vec<ServerEntry>, dir: &std::path::Path) -> GatewayConfig {
    let mut guard = GuardConfig::new(dir.to_path_buf());
    guard.read_back = ReadBack::Session;
    GatewayConfig {
        servers,
        expose: Expose::All,
        bare: false,
        max_name_chars: 64,
        wait: Wait::None,
        pin_tools: false,
        catalogue_dir: None,
        guard: Arc::new(Guard::new(guard)),
    }
}

/// The hub, what it has started, and what it has sent.
pub(super) struct Rig {
    pub(super) hub: Hub,
    pub(super) now: Instant,
    pub(super) dir: tempfile::TempDir,
    /// The copies that run, by number.
    pub(super) copies: BTreeMap<UpstreamId, String>,
    /// All that was sent since it was last looked at: `1 < {...}` to a client, `name > {...}` to a server, and
    /// `name started`, `name woken`, `name stopped`.
    out: Vec<String>,
    outlets: Vec<Outlet>,
}

impl Rig {
    pub(super) fn new(names: &[&str]) -> Self {
        Self::with(names.iter().map(|name| entry(server_config(name))).collect(), |_| {})
    }

    pub(super) fn with(servers: Vec<ServerEntry>, change: impl FnOnce(&mut GatewayConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = gateway(servers, dir.path());
        change(&mut config);
        let now = Instant::now();
        let mut hub = Hub::new(config, now);
        hub.begin();
        let (copies, out, outlets) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut rig = Self { hub, now, dir, copies, out, outlets };
        rig.settle();
        rig
    }

    /// Servers that are up, each with a tool `t`, and one legacy client that has shaken hands.
    pub(super) fn ready(names: &[&str]) -> Self {
        let mut rig = Self::new(names);
        for name in names {
            rig.up(name);
        }
        rig.open(1);
        rig.hello(1);
        rig.after(Duration::from_millis(20));
        rig.out.clear();
        rig
    }

    pub(super) fn event(&mut self, event: Event) {
        self.hub.handle(event, self.now);
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            let effects = self.hub.take_effects(Vec::new());
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.effect(effect);
            }
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::ToClient(SessionId(session), message)
            | Effect::Ask(SessionId(session), message)
            | Effect::Tell(SessionId(session), message) => {
                let about = message.about.map(|id| format!(" [{id}]")).unwrap_or_default();
                let end = if message.is_answer { "." } else { "" };
                self.out.push(format!("{session}{about}{end} < {}", text(message.payload)));
            }
            Effect::ToServer(id, message) => {
                let sent = text(message.payload);
                let scanned = super::rig::message(&sent).envelope;
                let envelope = &message.members.as_slice()[0];
                assert_eq!(envelope.id(), scanned.id(), "{sent}");
                assert_eq!(envelope.name(), scanned.name(), "{sent}");
                assert_eq!(envelope.params_span(), scanned.params_span(), "{sent}");
                self.out.push(format!("{} > {sent}", self.copies[&id]));
            }
            Effect::Start(id, config) => {
                let count =
                    self.copies.values().filter(|name| name.split('#').next() == Some(&config.name)).count();
                let name =
                    if count == 0 { config.name.clone() } else { format!("{}#{}", config.name, count + 1) };
                self.out.push(format!("{name} started"));
                self.copies.insert(id, name);
            }
            Effect::Wake(id) => self.out.push(format!("{} woken", self.copies[&id])),
            Effect::Stop(id) => {
                let name = self.copies.remove(&id).unwrap();
                self.out.push(format!("{name} stopped"));
            }
            Effect::Work(work) => {
                self.hub.handle(Event::Done(work.run()), self.now);
            }
            Effect::Finish => self.out.push("finished".to_owned()),
        }
    }

    /// What was sent since the last time.
    pub(super) fn sent(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out)
    }

    /// The one message that was sent since the last time.
    pub(super) fn one(&mut self) -> String {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:#?}");
        sent.into_iter().next().unwrap()
    }

    pub(super) fn nothing(&mut self) {
        assert_eq!(self.sent(), Vec::<String>::new());
    }

    pub(super) fn id(&self, copy: &str) -> UpstreamId {
        *self.copies.iter().find(|(_, name)| *name == copy).unwrap_or_else(|| panic!("{copy} does not run")).0
    }

    pub(super) fn upstream(&mut self, copy: &str, event: UpstreamEvent) {
        let id = self.id(copy);
        self.event(Event::Upstream(id, event));
    }

    /// A server is up, legacy, with one tool `t`.
    pub(super) fn up(&mut self, copy: &str) {
        self.up_as(copy, Era::Legacy, &[r#"{"name":"t","inputSchema":{"type":"object"}}"#]);
    }

    pub(super) fn up_as(&mut self, copy: &str, era: Era, tools: &[&str]) {
        let result = r#"{"capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}"#;
        let version = if era == Era::Modern { "2026-07-28" } else { "2025-11-25" };
        let negotiated =
            Negotiated { era, version: version.to_owned(), carrier: Carrier::Memory, result: result.into() };
        self.upstream(copy, UpstreamEvent::Up(Arc::new(negotiated)));
        self.lists(copy, tools, &[]);
        self.upstream(copy, UpstreamEvent::State(ServerState::Connected));
    }

    pub(super) fn lists(&mut self, copy: &str, tools: &[&str], resources: &[&str]) {
        let raw = |items: &[&str]| items.iter().map(|item| Bytes::copy_from_slice(item.as_bytes())).collect();
        let lists = RawLists { tools: raw(tools), resources: raw(resources), ..RawLists::default() };
        self.upstream(copy, UpstreamEvent::Lists(Arc::new(lists)));
    }

    pub(super) fn open(&mut self, session: u64) {
        self.open_as(session, false);
    }

    pub(super) fn open_as(&mut self, session: u64, passing: bool) {
        let (sink, outlet) = outlet(Arc::new(Notify::new()));
        self.outlets.push(outlet);
        let options = SessionOptions { saved_as: format!("client-{session}"), passing };
        self.event(Event::Client(ClientEvent::Opened { session: SessionId(session), sink, options }));
    }

    /// A legacy client that can do everything shakes hands.
    pub(super) fn hello(&mut self, session: u64) {
        self.client(session, r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#);
        self.client(session, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    }

    pub(super) fn client(&mut self, session: u64, json: &str) {
        let message = message(json);
        self.event(Event::Client(ClientEvent::Message { session: SessionId(session), message }));
    }

    pub(super) fn server(&mut self, copy: &str, json: &str) {
        self.upstream(copy, UpstreamEvent::Message(message(json)));
    }

    /// A client calls a tool; gives the id that the server sees.
    pub(super) fn call(&mut self, session: u64, id: &str, tool: &str) -> u64 {
        self.client(
            session,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}}}}}}"#),
        );
        sent_id(&self.one())
    }

    pub(super) fn after(&mut self, time: Duration) {
        self.now += time;
        if self.hub.wake_at().is_some_and(|at| at <= self.now) {
            self.event(Event::Tick);
        }
    }

    pub(super) fn status(&mut self) -> Vec<Status> {
        let (answer, mut status) = tokio::sync::oneshot::channel();
        self.event(Event::Command(Command::Status(answer)));
        status.try_recv().unwrap()
    }

    pub(super) fn reload(&mut self, servers: Vec<ServerEntry>) {
        let mut config = gateway(servers, self.dir.path());
        config.guard = Arc::clone(&self.hub.config.guard);
        self.event(Event::Command(Command::Reload(Box::new(config), tokio::sync::oneshot::channel().0)));
    }
}

/// The id in a message for a server.
pub(super) fn sent_id(sent: &str) -> u64 {
    let (_, json) = sent.split_once(" > ").unwrap_or_else(|| panic!("not for a server: {sent}"));
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    value["id"].as_u64().unwrap_or_else(|| panic!("{sent}"))
}

/// The JSON of what was sent.
pub(super) fn json(sent: &str) -> serde_json::Value {
    let (_, json) = sent.split_once('{').unwrap();
    serde_json::from_str(&format!("{{{json}")).unwrap()
}

fn text(payload: Payload) -> String {
    match payload {
        Payload::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        Payload::File { .. } => panic!("a file"),
    }
}
