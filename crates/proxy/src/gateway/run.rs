//! Owns the gateway's task: it waits for what happens, hands it to the hub, and does what the hub wants. Decides
//! nothing.

mod running;

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::task::TaskTracker;
use toolway_transport::{Failure, Outbound};
use toolway_wire::{Id, IdHasher, Kind, UPSTREAM_ERROR};

use super::config::GatewayConfig;
use super::connection::{Face, Shared};
use super::hub::{ClientEvent, Command, Done, Effect, Event, Hub, SessionOptions};
use super::message::{Message, SessionId};
use super::observe::Observer;
use super::outlet::{Outlet, outlet};
use super::status::{Status, ToolStatus};
use super::upstream::{Upstream, UpstreamEvent, UpstreamId};
use running::Running;

/// What servers may ask of the gateway: all that it carries to its clients. Which client can answer is seen when a
/// server asks; a server that asks for what nobody has is refused by name.
const CAPABILITIES: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true}}"#;
/// Events that may wait for the hub, from clients and from servers each.
const EVENTS: usize = 1024;
/// Events that are taken at once.
const AT_ONCE: usize = 64;

/// A running gateway, for its fronts and its owner. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GatewayHandle {
    clients: mpsc::Sender<ClientEvent>,
    commands: mpsc::Sender<Command>,
    closings: Arc<Notify>,
    sessions: Arc<AtomicU64>,
    changes: watch::Receiver<u64>,
    tasks: TaskTracker,
}

/// One client's connection to the gateway: a front owns it.
#[derive(Debug)]
pub struct ClientSession {
    id: SessionId,
    clients: mpsc::Sender<ClientEvent>,
    /// What comes for the client.
    pub outlet: Outlet,
}

impl GatewayHandle {
    /// Starts the gateway and all its servers. Returns at once. To be called within a tokio runtime with time and I/O.
    pub fn start(config: GatewayConfig, shared: Shared) -> Self {
        Self::start_observed(config, shared, Observer::default())
    }

    /// As [`GatewayHandle::start`], with somebody who hears what happens. Its tasks are the caller's to end.
    pub fn start_observed(config: GatewayConfig, shared: Shared, observer: Observer) -> Self {
        let mut shared = shared;
        let face = Face { capabilities: CAPABILITIES.to_owned(), ..Face::clone(&shared.face) };
        shared.face = Arc::new(face);
        let (clients, from_clients) = mpsc::channel(EVENTS);
        let (commands, from_owner) = mpsc::channel(16);
        let (to_hub, from_servers) = mpsc::channel(EVENTS);
        let closings = Arc::new(Notify::new());
        let (changed, changes) = watch::channel(0);
        let tasks = TaskTracker::new();
        let mut hub = Hub::new(config, Instant::now()).observed_by(observer);
        hub.begin();
        hub.tell_states();
        let task = Task {
            hub,
            shared,
            tasks: tasks.clone(),
            to_hub,
            upstreams: HashMap::default(),
            works: JoinSet::new(),
            effects: Vec::new(),
            refused: Vec::new(),
            changed,
        };
        let inbox = Inbox { from_clients, from_servers, from_owner, closings: Arc::clone(&closings) };
        tasks.spawn(task.run(inbox));
        Self { clients, commands, closings, sessions: Arc::new(AtomicU64::new(1)), changes, tasks }
    }

    /// A handle whose hub is played by a test.
    #[cfg(test)]
    pub(super) fn played(clients: mpsc::Sender<ClientEvent>, closings: Arc<Notify>) -> Self {
        let (commands, _) = mpsc::channel(1);
        let (_, changes) = watch::channel(0);
        let sessions = Arc::new(AtomicU64::new(1));
        Self { clients, commands, closings, sessions, changes, tasks: TaskTracker::new() }
    }

    /// Opens a session. It ends when it is dropped. `None`: the gateway has ended.
    pub async fn open(&self, options: SessionOptions) -> Option<ClientSession> {
        let session = SessionId(self.sessions.fetch_add(1, Ordering::Relaxed));
        let (sink, outlet) = outlet(Arc::clone(&self.closings));
        self.clients.send(ClientEvent::Opened { session, sink, options }).await.ok()?;
        Some(ClientSession { id: session, clients: self.clients.clone(), outlet })
    }

    /// New settings: unchanged servers are left alone, calls in flight end on what they began with. They hold for every
    /// message that is sent after this has returned.
    pub async fn reload(&self, config: GatewayConfig) {
        let (told, hold) = oneshot::channel();
        if self.commands.send(Command::Reload(Box::new(config), told)).await.is_ok() {
            hold.await.ok();
        }
    }

    /// The state of every configured entry. Empty after the end.
    pub async fn status(&self) -> Vec<Status> {
        let (answer, status) = oneshot::channel();
        if self.commands.send(Command::Status(answer)).await.is_err() {
            return Vec::new();
        }
        status.await.unwrap_or_default()
    }

    /// Every tool that can be called, in the order of lists, the gateway's own last. Empty after the end.
    pub async fn tools(&self) -> Vec<ToolStatus> {
        let (answer, tools) = oneshot::channel();
        if self.commands.send(Command::Tools(answer)).await.is_err() {
            return Vec::new();
        }
        tools.await.unwrap_or_default()
    }

    /// Counts what may have changed states and lists, for who would look at [`GatewayHandle::status`] and
    /// [`GatewayHandle::tools`] again. Its sender is gone when the gateway has ended.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// The definition of a tool that clients call so, as they get it.
    pub(super) async fn tool(&self, exposed: &str) -> Option<bytes::Bytes> {
        let (answer, tool) = oneshot::channel();
        self.commands.send(Command::Tool(exposed.to_owned(), answer)).await.ok()?;
        tool.await.ok().flatten()
    }

    /// Waits until the gateway has ended. Dropping the future loses nothing.
    pub async fn ended(&self) {
        self.clients.closed().await;
    }

    /// Ends all servers and waits until nothing is left.
    pub async fn shutdown(&self) {
        self.commands.send(Command::Shutdown).await.ok();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl ClientSession {
    /// Its id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Hands over a message of the client; false: the gateway has ended. Dropping the future before it ends loses the
    /// message.
    pub async fn send(&self, message: Message) -> bool {
        self.clients.send(ClientEvent::Message { session: self.id, message }).await.is_ok()
    }

    /// As [`ClientSession::send`], without waiting; an error gives the message back.
    pub fn try_send(&self, message: Message) -> Result<(), Message> {
        match self.clients.try_reserve() {
            Ok(permit) => {
                permit.send(ClientEvent::Message { session: self.id, message });
                Ok(())
            }
            Err(_) => Err(message),
        }
    }

    /// Waits until a message may be handed over, or the gateway has ended. Dropping the future loses nothing.
    pub async fn ready(&self) {
        drop(self.clients.reserve().await);
    }

    /// As [`ClientSession::send_batch`], without waiting; an error gives the messages back.
    pub fn try_send_batch(&self, messages: Vec<Message>) -> Result<(), Vec<Message>> {
        match self.clients.try_reserve() {
            Ok(permit) => {
                permit.send(ClientEvent::Batch { session: self.id, messages });
                Ok(())
            }
            Err(_) => Err(messages),
        }
    }

    /// Hands over a batch; its answers come as one message.
    pub async fn send_batch(&self, messages: Vec<Message>) -> bool {
        self.clients.send(ClientEvent::Batch { session: self.id, messages }).await.is_ok()
    }

    /// Gives a request up: its stream was closed.
    pub async fn drop_request(&self, request: Id) -> bool {
        self.clients.send(ClientEvent::Dropped { session: self.id, request }).await.is_ok()
    }
}

/// Where events come from.
#[derive(Debug)]
struct Inbox {
    from_clients: mpsc::Receiver<ClientEvent>,
    from_servers: mpsc::Receiver<(UpstreamId, UpstreamEvent)>,
    from_owner: mpsc::Receiver<Command>,
    closings: Arc<Notify>,
}

#[derive(Debug)]
struct Task {
    hub: Hub,
    shared: Shared,
    tasks: TaskTracker,
    to_hub: mpsc::Sender<(UpstreamId, UpstreamEvent)>,
    upstreams: HashMap<UpstreamId, Running, BuildHasherDefault<IdHasher>>,
    works: JoinSet<Done>,
    effects: Vec<Effect>,
    /// Requests that a server has no room for at all.
    refused: Vec<(UpstreamId, Vec<Id>)>,
    changed: watch::Sender<u64>,
}

impl Task {
    async fn run(mut self, mut inbox: Inbox) {
        let sleep = sleep_until(Instant::now());
        tokio::pin!(sleep);
        let mut clients = Vec::with_capacity(AT_ONCE);
        let mut servers = Vec::with_capacity(AT_ONCE);
        loop {
            if self.perform() {
                return;
            }
            while let Some((id, ids)) = self.refused.pop() {
                let message = "too many messages wait for the server".to_owned();
                let failure = Failure { code: UPSTREAM_ERROR, message, data: None };
                self.hub.handle(Event::Upstream(id, UpstreamEvent::Failed { ids, failure }), Instant::now());
                if self.perform() {
                    return;
                }
            }
            let timed = arm(sleep.as_mut(), self.hub.wake_at());
            let event = tokio::select! {
                biased;
                _ = inbox.from_servers.recv_many(&mut servers, AT_ONCE) => None,
                _ = inbox.from_clients.recv_many(&mut clients, AT_ONCE) => None,
                Some(done) = self.works.join_next(), if !self.works.is_empty() => done.ok().map(Event::Done),
                command = inbox.from_owner.recv() => Some(Event::Command(command.unwrap_or(Command::Shutdown))),
                () = inbox.closings.notified() => Some(Event::Sweep),
                () = sleep.as_mut(), if timed => Some(Event::Tick),
            };
            let now = Instant::now();
            // Whoever was not the first to be ready is not left behind.
            while clients.len() < AT_ONCE
                && let Ok(event) = inbox.from_clients.try_recv()
            {
                clients.push(event);
            }
            for (id, event) in servers.drain(..) {
                self.hear(id, event, now);
            }
            for event in clients.drain(..) {
                self.hub.handle(Event::Client(event), now);
            }
            if let Some(event) = event {
                let changes = matches!(event, Event::Done(_) | Event::Command(Command::Reload(..)));
                self.hub.handle(event, now);
                if changes {
                    self.tell_change();
                }
            }
            if timed && sleep.deadline() <= now {
                self.hub.handle(Event::Tick, now);
            }
        }
    }

    fn hear(&mut self, id: UpstreamId, event: UpstreamEvent, now: Instant) {
        if let UpstreamEvent::Room = event {
            if let Some(running) = self.upstreams.get_mut(&id) {
                running.retry();
            }
            return;
        }
        let changes = !matches!(event, UpstreamEvent::Message(_) | UpstreamEvent::Failed { .. });
        self.hub.handle(Event::Upstream(id, event), now);
        if changes {
            self.tell_change();
        }
    }

    /// States or lists may be others now.
    fn tell_change(&self) {
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Does what the hub wants; true: all is over.
    fn perform(&mut self) -> bool {
        let mut effects = self.hub.take_effects(std::mem::take(&mut self.effects));
        let mut over = false;
        for effect in effects.drain(..) {
            match effect {
                Effect::ToClient(session, message) => {
                    if let Some(sink) = self.hub.sink(session) {
                        sink.send(message);
                    }
                }
                Effect::Tell(session, message) => {
                    if let Some(sink) = self.hub.sink(session) {
                        sink.tell(message);
                    }
                }
                Effect::Ask(session, message) => {
                    if let Some(sink) = self.hub.sink(session) {
                        sink.ask(message);
                    }
                }
                Effect::ToServer(id, message) => {
                    if let Some(running) = self.upstreams.get_mut(&id)
                        && let Err(message) = running.send(message)
                    {
                        self.refused.push((id, requests(&message)));
                    }
                }
                Effect::Start(id, config) => {
                    let (shared, to_hub) = (self.shared.clone(), self.to_hub.clone());
                    let upstream = Upstream::start(id, config, shared, to_hub, &self.tasks);
                    self.upstreams.insert(id, Running::new(upstream));
                }
                Effect::Wake(id) => {
                    if let Some(running) = self.upstreams.get(&id) {
                        running.upstream.wake();
                    }
                }
                Effect::Stop(id) => {
                    if let Some(running) = self.upstreams.remove(&id) {
                        running.upstream.stop();
                    }
                }
                Effect::Work(work) => {
                    self.works.spawn_blocking(move || work.run());
                }
                Effect::Finish => over = true,
            }
        }
        self.effects = effects;
        over
    }
}

/// The ids of the requests in a message.
fn requests(message: &Outbound) -> Vec<Id> {
    let all = message.members.as_slice().iter().filter(|envelope| envelope.kind() == Kind::Request);
    all.filter_map(|envelope| envelope.id().cloned()).collect()
}

/// Sets the alarm, where it is not set already; false: nothing is timed.
fn arm(sleep: std::pin::Pin<&mut Sleep>, at: Option<Instant>) -> bool {
    let Some(at) = at else { return false };
    if sleep.deadline() != at || sleep.is_elapsed() {
        sleep.reset(at);
    }
    true
}
