//! Whatever comes in whatever order: every call has one end, every turn has one, nothing waits for ever, nothing is left.
//! The state alone, without its task and without agents' tasks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolway_wire::Id;

use super::rig::{Doll, Host, calls, request_of, result};
use crate::agent_port::{AgentEnd, AgentEvent, AgentFailure, AgentOptions, AgentPort};
use crate::call::CallId;
use crate::calls::Origin;
use crate::coordinator::driver::{Driver, Patience, Told};
use crate::coordinator::gate::Gate;
use crate::coordinator::inbox::Inbox;
use crate::coordinator::state::{Event, GivenUp, Making, State};
use crate::coordinator::turn::{self, Turn};
use crate::host_port::TurnEvent;
use crate::live::Pace;
use crate::profile::Profile;
use crate::prompt::{Digest, Message};
use crate::registry::{Bridge, BridgeConfig};
use crate::replay::Records;
use crate::run::{Began, Update, Waiter};
use crate::settings::HostMode;
use crate::snapshot::Snapshot;

mod steps;

/// Makes none: the test plays the agents.
struct Nobody;

impl AgentPort for Nobody {
    type Agent = Doll;

    async fn create(&self, _options: AgentOptions) -> Result<Doll, AgentFailure> {
        Err(AgentFailure::new("nobody"))
    }

    fn identity(&self) -> Option<Digest> {
        None
    }
}

type Started = Arc<Mutex<Vec<(u64, Arc<Snapshot>, Driver<Nobody>)>>>;

struct Asked {
    turn: Option<Turn>,
    abort: CancellationToken,
    ends: usize,
}

struct Called {
    waiter: Waiter,
    ends: usize,
    answered: bool,
}

/// A state, and all that is around it.
struct World {
    state: State,
    host: Arc<Host>,
    inbox: Arc<Inbox>,
    gate: Arc<Gate>,
    bridge: Bridge,
    started: Started,
    drivers: BTreeMap<u64, (Arc<Snapshot>, Driver<Nobody>, bool)>,
    turns: Vec<Asked>,
    called: Vec<Called>,
    messages: Vec<Message>,
    open: Vec<CallId>,
    handed: HashSet<String>,
    requests: u64,
}

fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(tokio::task::unconstrained(future)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl World {
    fn new(pace: Pace) -> Self {
        let host = Arc::new(Host::default());
        host.add("todo");
        host.add("sem");
        let bridge = Bridge::new(BridgeConfig::new(Profile::PI));
        let (gate, inbox) = (Arc::new(Gate::new(bridge.clone())), Arc::new(Inbox::default()));
        let started = Started::default();
        let making = Making {
            scope: "any".into(),
            profile: Profile::PI,
            settings: Arc::default(),
            host: Arc::clone(&host) as _,
            pace,
            host_mode: Some(HostMode::Tui),
            is_terminal: false,
            own_display_tool: false,
            idle: Duration::from_secs(3),
            gate: Arc::clone(&gate),
            inbox: Arc::clone(&inbox),
            records: Arc::new(Mutex::new(Records::new(&Profile::PI))),
        };
        let (made, of) = (Arc::clone(&started), bridge.clone());
        let start = move |number, snapshot, _options| {
            let patience = Patience { create: Duration::from_mins(1), send: Duration::from_mins(1) };
            let (driver, reins) =
                Driver::new(number, Arc::new(Nobody), of.clone(), patience, mpsc::channel(1).0);
            made.lock().unwrap().push((number, snapshot, driver));
            reins
        };
        let state = State::new(making, Box::new(start), Box::new(|| None), Box::new(Vec::new));
        Self {
            state,
            host,
            inbox,
            gate,
            bridge,
            started,
            drivers: BTreeMap::new(),
            turns: Vec::new(),
            called: Vec::new(),
            messages: Vec::new(),
            open: Vec::new(),
            handed: HashSet::new(),
            requests: 0,
        }
    }

    fn handle(&mut self, event: Event) {
        self.state.handle(event, Instant::now());
        self.rest();
    }

    /// What the task does until nothing is left to do at this time.
    fn rest(&mut self) {
        for round in 0.. {
            assert!(round < 200, "it turns in circles: {:?}", self.state);
            let calls = self.inbox.take();
            let given_up = self.state.poll_given_up(&mut Context::from_waker(Waker::noop()));
            let event = if !calls.is_empty() {
                Event::Calls(calls)
            } else if let Poll::Ready(what) = given_up {
                Event::GivenUp(what)
            } else if self.state.served().is_some_and(|turn| turn.sender().is_closed()) {
                Event::GivenUp(GivenUp::Active)
            } else if self.state.unread().is_some_and(|turn| now(turn.sender().reserve()).is_some())
                || self.state.wake().is_some_and(|at| at <= Instant::now())
            {
                Event::Time
            } else {
                break;
            };
            self.state.handle(event, Instant::now());
        }
        for (number, snapshot, driver) in self.started.lock().unwrap().drain(..) {
            self.drivers.insert(number, (snapshot, driver, false));
        }
    }

    fn ask(&mut self) {
        let abort = CancellationToken::new();
        let mut request = request_of(self.messages.clone(), abort.clone());
        request.wrappers = vec!["bash".to_owned(), "cursor".to_owned()];
        request.context_tools.clone_from(&request.wrappers);
        let (open, turn) = turn::open(request, Arc::clone(&self.gate));
        self.turns.push(Asked { turn: Some(turn), abort, ends: 0 });
        self.handle(Event::Turn(Box::new(open)));
    }

    /// The results of some of the last calls, one of them twice, and of one that nobody knows.
    fn bring(&mut self, which: u8) {
        let calls = std::mem::take(&mut self.open);
        for (place, id) in calls.iter().enumerate() {
            if which & (1 << (place % 4)) != 0 || which < 100 {
                self.messages.push(result(id, "done"));
                if which.is_multiple_of(7) {
                    self.messages.push(result(id, "twice"));
                }
            }
        }
        if which.is_multiple_of(5) {
            self.messages.push(result(&CallId::new("cursor-pi-bridge-run-0-t1"), "of nobody"));
        }
        if which.is_multiple_of(3) {
            self.messages.push(Message::user("and mind the time"));
        }
        self.ask();
    }

    async fn ready(&mut self, number: u64) {
        let Some((snapshot, driver, told)) = self.drivers.get_mut(&number) else { return };
        if driver.is_let_go() || std::mem::replace(told, true) {
            return;
        }
        let run = self.bridge.open(Arc::clone(snapshot)).await.unwrap();
        self.handle(Event::Told(number, Told::Ready(run)));
    }

    fn agent(&mut self, arg: u8) -> u64 {
        let last = self.drivers.keys().last().copied().unwrap_or(1);
        // Now and then one that was let go.
        if arg >= 240 { last.saturating_sub(1) } else { last }
    }

    fn tell(&mut self, arg: u8, event: AgentEvent) {
        let number = self.agent(arg);
        self.handle(Event::Told(number, Told::Event(event)));
    }

    fn call(&mut self, arg: u8) {
        let Some(run) = self.gate.run() else { return };
        self.requests += 1;
        let request = Id::from_json(self.requests.to_string().as_bytes()).unwrap();
        let name = if arg.is_multiple_of(2) { "pi__todo" } else { "pi__sem" };
        if let Began::Waiting(waiter) = run.begin(Origin { session: 1, request }, name, None, None) {
            self.called.push(Called { waiter, ends: 0, answered: false });
        }
        self.rest();
    }

    /// The host reads so many events of a turn.
    fn read(&mut self, which: usize, most: usize) {
        let Some(asked) = self.turns.get_mut(which) else { return };
        let Some(turn) = &mut asked.turn else { return };
        for _ in 0..most {
            match now(turn.next()) {
                Some(Some(TurnEvent::End(message))) => {
                    asked.ends += 1;
                    let calls = calls(&message);
                    self.handed.extend(calls.iter().map(|call| call.id.to_string()));
                    if !calls.is_empty() {
                        self.open = calls.into_iter().map(|call| call.id).collect();
                        self.messages.push(Message::user("(the message with the calls)"));
                    }
                }
                Some(Some(_)) => {}
                Some(None) | None => break,
            }
        }
        self.rest();
    }

    fn hear(&mut self) {
        for called in &mut self.called {
            while called.ends == 0 {
                match now(called.waiter.next()) {
                    Some(Update::Progress(_)) => {}
                    Some(end) => {
                        called.ends += 1;
                        called.answered = matches!(end, Update::Result(_));
                    }
                    None => break,
                }
            }
        }
    }

    fn check(&self) {
        assert!(self.turns.iter().all(|asked| asked.ends <= 1), "a turn ended twice");
        let mut times: HashMap<String, usize> = HashMap::new();
        for (id, _) in self.host.aborted() {
            *times.entry(id).or_default() += 1;
        }
        assert!(times.values().all(|times| *times == 1), "a call was stopped twice: {times:?}");
        assert!(self.state.wake().is_none_or(|at| at > Instant::now()), "it waits for what is past");
    }

    /// A call is stopped or answered, and nothing else can be said of one that the host was handed.
    fn check_stops(&self) {
        let stopped: HashSet<String> = self.host.aborted().into_iter().map(|(id, _)| id).collect();
        for called in &self.called {
            let id = called.waiter.id().to_string();
            let (was_handed, was_stopped) = (self.handed.contains(&id), stopped.contains(&id));
            assert!(!(called.answered && was_stopped), "{id} was answered, and stopped");
            assert!(called.answered || was_stopped || !was_handed, "{id} still runs, for nobody");
            assert!(was_handed || !was_stopped, "{id} was stopped, and the host never had it");
        }
    }

    /// Everybody does their part: then every turn ends.
    async fn go_to_the_end(&mut self) {
        for _ in 0..80 {
            let number = self.agent(0);
            self.obey();
            self.ready(number).await;
            self.handle(Event::Told(number, Told::Sent(Ok(()))));
            self.tell(0, AgentEvent::Ended(AgentEnd::Finished(None)));
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.rest();
            for which in 0..self.turns.len() {
                self.read(which, 1000);
            }
        }
        self.hear();
        self.check();
        let stuck = self.turns.iter().filter(|asked| asked.turn.is_some() && asked.ends == 0).count();
        assert_eq!(stuck, 0, "turns that never end: {:?}", self.state);
        assert!(self.called.iter().all(|called| called.ends == 1), "calls without an end");
        assert_eq!(self.gate.turns(), 0, "the session is busy with nothing");
        tokio::time::sleep(Duration::from_secs(10)).await;
        self.rest();
        assert!(self.state.wake().is_none(), "an idle session waits for nothing: {:?}", self.state);
        assert!(self.gate.run().is_none(), "an agent that nobody uses is let go: {:?}", self.state);
    }

    fn end(&mut self) {
        self.handle(Event::Shutdown("the end".to_owned()));
        self.hear();
        assert!(self.called.iter().all(|called| called.ends == 1), "calls without an end");
        assert!(self.drivers.values().all(|(_, driver, _)| driver.is_let_go()), "an agent is left");
        for which in 0..self.turns.len() {
            self.read(which, 1000);
        }
        for asked in &mut self.turns {
            if let Some(turn) = &mut asked.turn {
                assert_eq!(asked.ends, 1, "a turn without its end");
                assert!(now(turn.next()).is_some_and(|event| event.is_none()), "something after the end");
            }
        }
        assert_eq!((self.gate.turns(), self.bridge.pending()), (0, 0));
        assert!(self.state.is_closed() && self.state.wake().is_none());
        self.check();
        if self.turns.iter().all(|asked| asked.turn.is_some()) {
            self.check_stops();
        }
    }
}

proptest::proptest! {
    #[test]
    fn in_any_order_every_call_and_every_turn_has_one_end_and_nothing_is_left(
        steps in proptest::collection::vec((0_u8..80, proptest::prelude::any::<u8>()), 1..120),
        to_the_end in proptest::prelude::any::<bool>(),
        batches in proptest::prelude::any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut world = World::new(if batches { Pace::Batches } else { Pace::AsTheyCome });
            for step in steps {
                world.step(step).await;
            }
            if to_the_end {
                world.go_to_the_end().await;
            }
            world.end();
            world.bridge.shutdown("the end").await;
        });
    }
}
