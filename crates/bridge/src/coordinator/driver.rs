//! Owns the task that runs one agent: makes it with its bridge run, hands it prompts, tells its events, ends both. It
//! decides nothing.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent_port::{Agent, AgentEvent, AgentFailure, AgentOptions, AgentPort, AgentPrompt};
use crate::registry::Bridge;
use crate::run::Run;
use crate::snapshot::Snapshot;

/// How long an agent may take to stop what it does before it is let go.
const CANCEL: Duration = Duration::from_secs(2);
/// How long it may take to end.
const DISPOSE: Duration = Duration::from_secs(5);
/// Orders that wait: a prompt, a cancellation, a reload.
const ORDERS: usize = 8;

/// What an agent is told.
#[derive(Debug)]
pub(super) enum Order {
    Send(AgentPrompt),
    Cancel,
    Reload,
}

/// What an agent's task tells.
#[derive(Debug)]
pub(super) enum Told {
    /// It is there, with the run that its bridge calls come by.
    Ready(Option<Run>),
    /// It cannot be made.
    NotMade(AgentFailure),
    /// The prompt is accepted, or not.
    Sent(Result<(), AgentFailure>),
    /// What the agent tells.
    Event(AgentEvent),
    /// A reload failed.
    NotReloaded(AgentFailure),
    /// Its connection is dead.
    Dead,
}

/// How long an agent may take for what it is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// To be made.
    pub(super) create: Duration,
    /// To accept a prompt.
    pub(super) send: Duration,
}

/// The end at which the session holds an agent.
#[derive(Debug)]
pub(super) struct Reins {
    orders: mpsc::Sender<Order>,
    /// A reload waits: one is enough for all that changed before it.
    reload: Arc<AtomicBool>,
    stop: CancellationToken,
    reason: Arc<Mutex<String>>,
}

impl Reins {
    /// Tells the agent. `false`: it takes no orders.
    pub(super) fn order(&self, order: Order) -> bool {
        if matches!(order, Order::Reload) && self.reload.swap(true, Ordering::SeqCst) {
            return true;
        }
        self.orders.try_send(order).is_ok()
    }

    /// Lets the agent and its run go, for that reason.
    pub(super) fn let_go(&self, reason: &str) {
        reason.clone_into(&mut self.reason.lock().unwrap_or_else(PoisonError::into_inner));
        self.stop.cancel();
    }
}

/// What an agent's task needs.
pub(super) struct Driver<P> {
    number: u64,
    port: Arc<P>,
    bridge: Bridge,
    patience: Patience,
    told: mpsc::Sender<(u64, Told)>,
    orders: mpsc::Receiver<Order>,
    reload: Arc<AtomicBool>,
    stop: CancellationToken,
    reason: Arc<Mutex<String>>,
}

impl<P: AgentPort> Driver<P> {
    /// A driver for agent `number`, and its reins.
    pub(super) fn new(
        number: u64,
        port: Arc<P>,
        bridge: Bridge,
        patience: Patience,
        told: mpsc::Sender<(u64, Told)>,
    ) -> (Self, Reins) {
        let (sender, orders) = mpsc::channel(ORDERS);
        let (stop, reason) = (CancellationToken::new(), Arc::new(Mutex::new(String::new())));
        let reload = Arc::new(AtomicBool::new(false));
        let reins = Reins {
            orders: sender,
            reload: Arc::clone(&reload),
            stop: stop.clone(),
            reason: Arc::clone(&reason),
        };
        (Self { number, port, bridge, patience, told, orders, reload, stop, reason }, reins)
    }

    /// What an agent was ordered, for tests that play its part.
    #[cfg(test)]
    pub(super) fn orders(&mut self) -> Vec<Order> {
        std::iter::from_fn(|| self.orders.try_recv().ok()).collect()
    }

    /// It was let go, for tests that play its part.
    #[cfg(test)]
    pub(super) fn is_let_go(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Makes the agent, serves it, ends it.
    pub(super) async fn run(mut self, snapshot: Arc<Snapshot>, options: AgentOptions) {
        let run = match self.bridge.open(snapshot).await {
            Ok(run) => run,
            Err(error) => return self.tell(Told::NotMade(AgentFailure::new(error.to_string()))).await,
        };
        if unbroken(self.life(run.as_ref(), options)).await.is_none() {
            tracing::error!(agent = self.number, "an agent broke off");
            self.tell(Told::Dead).await;
            self.stop.cancelled().await;
        }
        if let Some(run) = run {
            run.dispose(&self.why()).await;
        }
    }

    /// From its making to its end.
    async fn life(&mut self, run: Option<&Run>, options: AgentOptions) {
        let stop = self.stop.clone();
        let made = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            made = self.make(run, options) => made,
        };
        match made {
            Err(failure) => self.tell(Told::NotMade(failure)).await,
            Ok(agent) => {
                self.tell(Told::Ready(run.cloned())).await;
                self.serve(&agent).await;
                // Neither a slow nor a stuck agent holds the session.
                if timeout(CANCEL, agent.cancel()).await.is_err() {
                    tracing::debug!(agent = self.number, "an agent did not stop in time");
                }
                if timeout(DISPOSE, agent.dispose()).await.is_err() {
                    tracing::warn!(agent = self.number, "an agent did not end in time");
                }
            }
        }
    }

    async fn make(&self, run: Option<&Run>, mut options: AgentOptions) -> Result<P::Agent, AgentFailure> {
        options.mcp_servers = run.map(Run::server).into_iter().collect();
        timeout(self.patience.create, self.port.create(options)).await.unwrap_or_else(|_| {
            Err(AgentFailure::new(format!("no agent within {} s", self.patience.create.as_secs())))
        })
    }

    /// Until it is let go or dead.
    async fn serve(&mut self, agent: &P::Agent) {
        let stop = self.stop.clone();
        loop {
            let told = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                order = self.orders.recv() => match order {
                    None => return,
                    Some(order) => match self.obey(agent, order).await {
                        Some(told) => told,
                        None => continue,
                    },
                },
                event = agent.next() => event.map_or(Told::Dead, Told::Event),
            };
            let dead = matches!(told, Told::Dead);
            self.tell(told).await;
            if dead {
                // Its run is kept until the session lets go, so that calls are rejected for the right reason.
                stop.cancelled().await;
                return;
            }
        }
    }

    async fn obey(&self, agent: &P::Agent, order: Order) -> Option<Told> {
        match order {
            Order::Send(prompt) => {
                let sent = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return None,
                    sent = timeout(self.patience.send, agent.send(prompt)) => sent,
                };
                let seconds = self.patience.send.as_secs();
                Some(Told::Sent(sent.unwrap_or_else(|_| {
                    Err(AgentFailure::new(format!("the agent did not accept the prompt within {seconds} s")))
                })))
            }
            Order::Cancel => {
                tokio::select! {
                    biased;
                    () = self.stop.cancelled() => {}
                    stopped = timeout(CANCEL, agent.cancel()) => if stopped.is_err() {
                        tracing::debug!(agent = self.number, "an agent did not stop in time");
                    },
                }
                None
            }
            Order::Reload => {
                // What changes from now on needs another one.
                self.reload.store(false, Ordering::SeqCst);
                let reloaded = tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return None,
                    reloaded = timeout(self.patience.send, agent.reload()) => reloaded,
                };
                reloaded
                    .unwrap_or_else(|_| Err(AgentFailure::new("the agent did not reload in time")))
                    .err()
                    .map(Told::NotReloaded)
            }
        }
    }

    /// Tells the session, which may be slow on purpose: what it does not take, the agent does not go on with.
    async fn tell(&self, told: Told) {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            sent = self.told.send((self.number, told)) => if sent.is_err() {
                self.stop.cancel();
            },
        }
    }

    fn why(&self) -> String {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if reason.is_empty() { "the agent is gone".to_owned() } else { reason }
    }
}

/// Runs it to its end. `None`: it panicked, and is to be dropped.
async fn unbroken<T>(run: impl Future<Output = T>) -> Option<T> {
    let mut run = pin!(run);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| run.as_mut().poll(cx))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}
