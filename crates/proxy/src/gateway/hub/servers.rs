//! Owns the running copies of servers: which one a client uses, what they say of themselves, and what becomes of their
//! calls when they are lost.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use toolway_guard::Guard;
use toolway_wire::{Kind, UPSTREAM_ERROR};

use super::call::{Flight, Origin};
use super::flight::FlightId;
use super::server::Instance;
use super::{Effect, Hub, splice};
use crate::gateway::config::ServerConfig;
use crate::gateway::connection::Negotiated;
use crate::gateway::message::{Message, SessionId};
use crate::gateway::state::{ServerState, Stage};
use crate::gateway::upstream::{UpstreamEvent, UpstreamId};

impl Hub {
    /// The copy of a server that a client uses, or why there is none.
    pub(super) fn instance_for(&mut self, number: usize, session: SessionId) -> Result<UpstreamId, String> {
        let Some(server) = self.servers.get(number) else { return Err("the server is not known".to_owned()) };
        let config = match &server.plan {
            Ok(config) => config,
            Err(state) => return Err(format!("server {:?} is not available: {state}", server.name)),
        };
        let own = self.sessions.get(&session).and_then(|session| session.own.get(&number).copied());
        if let Some(own) = own {
            return self.usable(own);
        }
        let passing = self.sessions.get(&session).is_none_or(|session| session.options.passing);
        if server.is_private() && !passing {
            // The copy that listed the tools serves the first client.
            let config = Arc::clone(config);
            let free = server.shared.filter(|shared| {
                self.instances.get(shared).is_some_and(|one| one.owner.is_none() && one.in_flight == 0)
                    && !self.sessions.values().any(|other| other.own.get(&number) == Some(shared))
            });
            let instance = match free {
                Some(shared) => {
                    if let Some(instance) = self.instances.get_mut(&shared) {
                        instance.owner = Some(session);
                    }
                    if let Some(server) = self.servers.get_mut(number) {
                        server.shared = None;
                    }
                    shared
                }
                None => self.start(number, &config, Some(session)),
            };
            if let Some(session) = self.sessions.get_mut(&session) {
                session.own.insert(number, instance);
            }
            return self.usable(instance);
        }
        if let Some(shared) = server.shared {
            return self.usable(shared);
        }
        let config = Arc::clone(config);
        let shared = self.start(number, &config, None);
        if let Some(server) = self.servers.get_mut(number) {
            server.shared = Some(shared);
        }
        Ok(shared)
    }

    /// A copy that is up, or may come up by itself.
    fn usable(&self, id: UpstreamId) -> Result<UpstreamId, String> {
        let Some(instance) = self.instances.get(&id) else {
            return Err("the server is not known".to_owned());
        };
        match &instance.state {
            _ if instance.negotiated.is_some() => Ok(id),
            // One that was lost is tried again for the call, and a lazy one is always: it may be better since.
            ServerState::Starting
            | ServerState::Connected
            | ServerState::Failed { stage: Stage::Run, .. } => Ok(id),
            ServerState::Failed { .. } if instance.config.lazy => Ok(id),
            state => Err(format!("server {:?} is not available: {state}", instance.name)),
        }
    }

    /// Starts a copy.
    pub(super) fn start(
        &mut self,
        number: usize,
        config: &Arc<ServerConfig>,
        owner: Option<SessionId>,
    ) -> UpstreamId {
        self.started += 1;
        let id = UpstreamId(self.started);
        let guard = match config.max_response_chars {
            Some(limit) if limit != self.config.guard.config().max_response_chars => {
                let mut own = self.config.guard.config().clone();
                own.max_response_chars = limit;
                Arc::new(Guard::new(own))
            }
            _ => Arc::clone(&self.config.guard),
        };
        let settings = guard.config();
        let plain_limit = if settings.tool_rules.is_empty() { settings.max_response_chars } else { 0 };
        let name = self.servers.get(number).map_or_else(|| Arc::from(&*config.name), |s| Arc::clone(&s.name));
        let instance = Instance {
            server: number,
            name,
            config: Arc::clone(config),
            owner,
            retired: false,
            state: ServerState::Starting,
            negotiated: None,
            guard,
            plain_limit,
            in_flight: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            lacks_roots: false,
            level: None,
            subscribed: BTreeSet::new(),
            listen: None,
        };
        self.instances.insert(id, instance);
        self.effects.push(Effect::Start(id, Arc::clone(config)));
        id
    }

    /// Stops a copy at once; what it still owes gets an error.
    pub(super) fn stop_instance(&mut self, id: UpstreamId) {
        self.lose(id, "it was stopped");
        for waiting in self.take_waiting(id) {
            self.fail_flight(waiting.flight, UPSTREAM_ERROR, "the server was stopped");
        }
        if self.instances.remove(&id).is_some() {
            self.effects.push(Effect::Stop(id));
        }
    }

    /// Something from a server.
    pub(super) fn upstream(&mut self, id: UpstreamId, event: UpstreamEvent) {
        if !self.instances.contains_key(&id) {
            return;
        }
        match event {
            UpstreamEvent::Message(message) => self.server_message(id, message),
            UpstreamEvent::State(state) => self.server_state(id, &state),
            UpstreamEvent::Up(negotiated) => self.server_up(id, negotiated),
            UpstreamEvent::Lists(lists) => self.server_lists(id, &lists),
            UpstreamEvent::Failed { ids, failure } => {
                let name =
                    self.instances.get(&id).map(|instance| Arc::clone(&instance.name)).unwrap_or_default();
                for flight in ids.iter().filter_map(splice::number).map(FlightId) {
                    let owed = |flight: &Flight| flight.instance == Some(id) && flight.answered.is_none();
                    if self.flights.get(flight).is_some_and(owed) {
                        let text = format!("server {name:?}: {}", failure.message);
                        self.fail_flight_with(flight, failure.code, &text, failure.data.as_deref());
                    }
                }
                self.end_if_idle(id);
            }
            UpstreamEvent::Down { reason } => {
                self.lose(id, &reason);
                self.end_if_idle(id);
            }
            UpstreamEvent::Room | UpstreamEvent::Stopped => {}
        }
    }

    fn server_message(&mut self, id: UpstreamId, message: Message) {
        match message.envelope.kind() {
            Kind::Response | Kind::ErrorResponse | Kind::Fault => self.server_answer(id, message),
            Kind::Request => self.server_request(id, &message),
            Kind::Notification => self.server_notice(id, &message),
            Kind::Stranger => {}
        }
    }

    fn server_state(&mut self, id: UpstreamId, state: &ServerState) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.state = state.clone();
        let (number, retired) = (instance.server, instance.retired);
        if let ServerState::Failed { .. } | ServerState::NeedsAuth { .. } | ServerState::NeedsInput { .. } =
            state
        {
            let name = Arc::clone(&instance.name);
            for waiting in self.take_waiting(id) {
                let text = format!("server {name:?} is not available: {state}");
                self.fail_flight(waiting.flight, UPSTREAM_ERROR, &text);
            }
        }
        // Prompts and resources may still be on their way.
        let is_listing = *state == ServerState::Connected
            && self
                .servers
                .get(number)
                .and_then(|server| server.lists.as_ref())
                .is_some_and(|lists| lists.pending);
        if !retired && *state != ServerState::Starting && !is_listing {
            self.settle(number);
        }
        if !retired {
            self.hide_failed(number, state);
        }
        self.end_if_idle(id);
    }

    /// What cannot be called is not shown: a server that does not come up has no tools, whatever is remembered of it.
    /// One that was lost is tried again, and a lazy one at its next call: their tools stay.
    fn hide_failed(&mut self, number: usize, state: &ServerState) {
        let hidden = match state {
            ServerState::Failed { stage, .. } => *stage != Stage::Run,
            ServerState::NeedsAuth { .. } | ServerState::NeedsInput { .. } => true,
            _ => false,
        };
        let Some(server) = self.servers.get_mut(number) else { return };
        if !hidden || server.plan.as_ref().is_ok_and(|config| config.lazy) || server.lists.is_none() {
            return;
        }
        (server.lists, server.live) = (None, false);
        self.remove_lists(number);
    }

    /// The first start of a server has come to an end.
    pub(super) fn settle(&mut self, number: usize) {
        if let Some(server) = self.servers.get_mut(number)
            && !server.settled
        {
            server.settled = true;
            self.lists_may_go();
        }
    }

    fn server_up(&mut self, id: UpstreamId, negotiated: Arc<Negotiated>) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.negotiated = Some(negotiated);
        instance.level = None;
        instance.subscribed.clear();
        instance.listen = None;
        self.tell_level(id);
        self.subscribe_again(id);
        self.send_waiting(id);
    }

    /// The connection is lost: what was sent is answered with an error.
    fn lose(&mut self, id: UpstreamId, reason: &str) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        instance.negotiated = None;
        instance.listen = None;
        let name = Arc::clone(&instance.name);
        let waiting: BTreeSet<FlightId> = instance.waiting.iter().map(|waiting| waiting.flight).collect();
        let lost = self.flights.iter().filter(|(at, flight)| {
            flight.instance == Some(id) && flight.answered.is_none() && !waiting.contains(at)
        });
        let mut lost: Vec<(u64, FlightId)> = lost.map(|(at, flight)| (flight.sequence, at)).collect();
        lost.sort_unstable();
        let text = format!("server {name:?} did not answer: {reason}");
        for (_, flight) in lost {
            self.fail_flight(flight, UPSTREAM_ERROR, &text);
        }
        self.withdraw_server_questions(id);
    }

    /// A copy that was replaced or removed ends with its last call.
    pub(super) fn end_if_idle(&mut self, id: UpstreamId) {
        let idle = self.instances.get(&id).is_some_and(|instance| {
            instance.retired
                && instance.waiting.is_empty()
                && !self
                    .flights
                    .iter()
                    .any(|(_, flight)| flight.instance == Some(id) && !matches!(flight.origin, Origin::Hub))
        });
        if idle {
            self.stop_instance(id);
        }
    }

    /// Copies of a server that are used, not those that only end their calls.
    pub(super) fn copies(&self, number: usize) -> Vec<UpstreamId> {
        let of = self.instances.iter().filter(|(_, one)| one.server == number && !one.retired);
        let mut copies: Vec<UpstreamId> = of.map(|(id, _)| *id).collect();
        copies.sort_unstable();
        copies
    }

    /// What a server is now.
    pub(super) fn state_of(&self, number: usize) -> ServerState {
        let Some(server) = self.servers.get(number) else { return ServerState::Missing };
        if let Err(state) = &server.plan {
            return state.clone();
        }
        let copies: Vec<&Instance> =
            self.copies(number).iter().filter_map(|copy| self.instances.get(copy)).collect();
        let connected = copies.iter().find(|copy| copy.state == ServerState::Connected);
        connected.or_else(|| copies.first()).map_or(ServerState::Starting, |copy| copy.state.clone())
    }

    /// All servers end, and then the gateway.
    pub(super) fn shutdown(&mut self) {
        self.ending = true;
        let mut all: Vec<UpstreamId> = self.instances.keys().copied().collect();
        all.sort_unstable();
        for id in all {
            self.stop_instance(id);
        }
        self.end_streams();
        self.effects.push(Effect::Finish);
    }
}
