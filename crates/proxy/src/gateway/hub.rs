//! Owns the state of all sessions and the routing between clients and servers: synchronous handlers, events in and
//! effects out. Knows no runtime, no transport and no front.

mod answers;
mod batches;
mod call;
mod cancel;
mod clients;
mod deadlines;
mod effect;
mod event;
mod flight;
mod hello;
mod listing;
mod logging;
mod notices;
mod observing;
mod questions;
mod reload;
mod remembered;
mod requests;
mod resources;
mod rounds;
mod searching;
mod send;
mod server;
mod servers;
mod session;
mod splice;
mod streams;
#[cfg(test)]
mod tests;
mod work;

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use tokio::time::Instant;
use toolway_wire::IdHasher;

use super::config::GatewayConfig;
use super::lists::ListKind;
use super::message::{ClientMessage, SessionId};
use super::observe::Observer;
use super::outlet::Sink;
use super::translate::Parked;
use super::upstream::{UpstreamEvent, UpstreamId};
use batches::Batch;
use call::{Flight, Question};
use flight::{FlightId, Slab};
use listing::Lists;
use server::{Instance, Server};
use session::Session;

pub(super) use effect::{Effect, Event};
pub use event::{ClientEvent, Command, SessionOptions};
pub(super) use work::Done;

type Fast<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Modern clients' calls that are held open at the same time, and for how long.
const HELD: usize = 1024;
const HELD_FOR: tokio::time::Duration = tokio::time::Duration::from_mins(10);

/// Everything that one gateway knows.
#[derive(Debug)]
pub(super) struct Hub {
    config: GatewayConfig,
    now: Instant,
    effects: Vec<Effect>,
    sessions: Fast<SessionId, Session>,
    servers: Vec<Server>,
    /// Numbers of the servers.
    by_name: BTreeMap<Arc<str>, usize>,
    instances: Fast<UpstreamId, Instance>,
    /// Copies that were started so far.
    started: u32,
    flights: Slab<Flight>,
    /// Requests so far.
    sequence: u64,
    questions: Slab<Question>,
    batches: Fast<u64, Batch>,
    batches_so_far: u64,
    held: Parked<FlightId>,
    lists: Lists,
    /// No request ends before this.
    sweep_at: Option<Instant>,
    /// All servers are being stopped.
    ending: bool,
    observer: Observer,
}

impl Hub {
    /// Knows the settings; [`Hub::begin`] starts the servers.
    pub(super) fn new(config: GatewayConfig, now: Instant) -> Self {
        let lists = Lists::new(&config);
        Self {
            config,
            now,
            effects: Vec::new(),
            sessions: HashMap::default(),
            servers: Vec::new(),
            by_name: BTreeMap::new(),
            instances: HashMap::default(),
            started: 0,
            flights: Slab::default(),
            sequence: 0,
            questions: Slab::default(),
            batches: HashMap::default(),
            batches_so_far: 0,
            held: Parked::new(HELD, HELD_FOR),
            lists,
            sweep_at: None,
            ending: false,
            observer: Observer::default(),
        }
    }

    /// Something has happened. What is to be done about it is in [`Hub::take_effects`].
    pub(super) fn handle(&mut self, event: Event, now: Instant) {
        self.now = now;
        let states = self.observer.is_on()
            && match &event {
                Event::Upstream(_, UpstreamEvent::Message(_)) => false,
                Event::Upstream(..) | Event::Command(_) => true,
                _ => false,
            };
        match event {
            Event::Client(event) => self.client(event),
            Event::Upstream(instance, event) => self.upstream(instance, event),
            Event::Done(done) => self.done(done),
            Event::Command(command) => self.command(command),
            Event::Sweep => self.sweep_sessions(),
            Event::Tick => self.tick(),
        }
        if states {
            self.tell_states();
        }
    }

    /// What is to be done, in its order. The vector that is given is used for what comes next.
    pub(super) fn take_effects(&mut self, empty: Vec<Effect>) -> Vec<Effect> {
        std::mem::replace(&mut self.effects, empty)
    }

    /// When [`Event::Tick`] is to come; `None`: nothing is timed.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        [self.sweep_at, self.lists.wake_at(), self.held.next_end()].into_iter().flatten().min()
    }

    /// Where a client's messages go.
    pub(super) fn sink(&self, session: SessionId) -> Option<&Sink> {
        self.sessions.get(&session).map(|session| &session.sink)
    }

    fn send_client(&mut self, session: SessionId, message: ClientMessage) {
        self.effects.push(Effect::ToClient(session, message));
    }

    /// News are not dropped, but told once.
    fn tell_client(&mut self, session: SessionId, message: ClientMessage) {
        self.effects.push(Effect::Tell(session, message));
    }

    /// A question is never dropped: its server waits for the answer.
    fn ask_client(&mut self, session: SessionId, message: ClientMessage) {
        self.effects.push(Effect::Ask(session, message));
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Reload(config, told) => {
                self.reload(*config);
                told.send(()).ok();
            }
            Command::Status(answer) => {
                answer.send(self.status()).ok();
            }
            Command::Tool(exposed, answer) => {
                let route = self.lists.catalogue().route(ListKind::Tools, &exposed);
                answer.send(route.map(|route| route.definition.item.clone())).ok();
            }
            Command::Tools(answer) => {
                answer.send(self.tools()).ok();
            }
            Command::Shutdown => self.shutdown(),
        }
    }
}
