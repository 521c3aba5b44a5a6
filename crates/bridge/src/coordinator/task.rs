//! Owns the one task of a session: everything that happens comes here, one at a time, and goes to the state.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

use super::driver::Told;
use super::gate::Gate;
use super::inbox::Inbox;
use super::session::Command;
use super::state::{Event, State};
use crate::host_port::HostEvent;
use crate::registry::Bridge;
use crate::replay::Sight;

/// How long agents may take to end with their session.
const AGENTS: Duration = Duration::from_secs(10);
/// How long the bridge may take.
const BRIDGE: Duration = Duration::from_secs(2);

/// What a session's task runs with.
pub(super) struct Task {
    pub(super) state: State,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) told: mpsc::Receiver<(u64, Told)>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) agents: TaskTracker,
    pub(super) bridge: Bridge,
    pub(super) gate: Arc<Gate>,
    /// Says that nothing of the session is left; also if this task breaks off.
    pub(super) over: DropGuard,
}

impl Task {
    /// Until the session is over.
    pub(super) async fn run(mut self) {
        let mut reason = "the session is over".to_owned();
        let mut done: Option<oneshot::Sender<()>> = None;
        while !self.state.is_closed() {
            match self.next().await {
                Happened::Event(event) => self.handle(event).await,
                Happened::Told(event, answer) => {
                    if matches!(event, HostEvent::AdapterReload | HostEvent::SessionShutdown) {
                        done = Some(answer);
                        reason = event.reason().to_owned();
                        self.handle(Event::Host(event)).await;
                    } else {
                        self.handle(Event::Host(event)).await;
                        answer.send(()).ok();
                    }
                }
                Happened::Shutdown(why) => {
                    reason.clone_from(&why);
                    self.handle(Event::Shutdown(why)).await;
                }
            }
        }
        // Whoever asks now is answered by the closed channel.
        self.commands.close();
        self.told.close();
        self.agents.close();
        if timeout(AGENTS, self.agents.wait()).await.is_err() {
            tracing::warn!("agents did not end with their session");
        }
        if timeout(BRIDGE, self.bridge.shutdown(&reason)).await.is_err() {
            tracing::warn!("the bridge did not end with its session");
        }
        self.gate.over();
        if let Some(done) = done {
            done.send(()).ok();
        }
        drop(self.over);
    }

    async fn handle(&mut self, event: Event) {
        // A card may show a file; the disk is waited for elsewhere.
        let wishes = self.state.wishes(&event);
        let looks = !wishes.is_empty();
        if looks {
            self.state.see(Some(Sight::of(wishes).await));
        }
        self.state.handle(event, Instant::now());
        if looks {
            self.state.see(None);
        }
        if self.state.take_yield() {
            tokio::task::yield_now().await;
        }
    }

    async fn next(&mut self) -> Happened {
        let wake = self.state.wake();
        let has_room = self.state.has_room();
        let unread = self.state.unread().map(super::turn::OpenTurn::sender);
        let served = self.state.served().map(super::turn::OpenTurn::sender);
        tokio::select! {
            biased;
            command = self.commands.recv() => match command {
                Some(Command::Turn(turn)) => Happened::Event(Event::Turn(turn)),
                Some(Command::Tell(event, answer)) => Happened::Told(event, answer),
                Some(Command::Shutdown(reason)) => Happened::Shutdown(reason),
                None => Happened::Shutdown("the session was dropped".to_owned()),
            },
            () = self.inbox.came() => Happened::Event(Event::Calls(self.inbox.take())),
            what = poll_fn(|cx| self.state.poll_given_up(cx)) => Happened::Event(Event::GivenUp(what)),
            () = gone(served) => Happened::Event(Event::GivenUp(super::state::GivenUp::Active)),
            () = room(unread) => Happened::Event(Event::Time),
            Some((agent, told)) = self.told.recv(), if has_room => Happened::Event(Event::Told(agent, told)),
            () = due(wake) => Happened::Event(Event::Time),
        }
    }
}

/// What the task wakes for.
enum Happened {
    Event(Event),
    Told(HostEvent, oneshot::Sender<()>),
    Shutdown(String),
}

/// Until the host can be told more, or reads no more.
async fn room<T>(to: Option<mpsc::Sender<T>>) {
    match to {
        // The place is given back at once: this task is the only one that takes any.
        Some(to) => drop(to.reserve().await),
        None => std::future::pending().await,
    }
}

/// Until the host reads no more.
async fn gone<T>(to: Option<mpsc::Sender<T>>) {
    match to {
        Some(to) => to.closed().await,
        None => std::future::pending().await,
    }
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
