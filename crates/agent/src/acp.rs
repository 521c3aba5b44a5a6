//! Owns the runtime of agents behind the Agent Client Protocol: another program thinks, and its process, its session and
//! what it may touch are kept here. It knows no store and no configuration files.

mod about;
mod calls;
mod choices;
mod desk;
pub(crate) mod frame;
mod front;
pub(crate) mod keys;
mod live;
mod names;
mod open_calls;
mod options;
mod peer;
mod permission;
mod preset;
mod process;
mod runner;
mod servers;
mod telling;
mod terminal;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use options::{AcpCommand, AcpSurroundings, AcpTimeouts};
pub use preset::AcpPreset;

use self::live::Live;
use self::open_calls::OpenCalls;
use self::runner::Runner;
use crate::engine::{BoxFuture, Engine, EngineTurn, RunSink, TurnEnd};
use crate::error::AgentError;
use crate::policy::Gate;

/// An agent behind the Agent Client Protocol. Its process is started by the first prompt and lives until
/// [`Engine::close`], or until it fails; it is started again then by the next prompt, which opens its session again where
/// the agent can.
///
/// Text sent while it works goes back to its sender: the protocol has no way to put it in between.
#[derive(Debug)]
pub struct AcpEngine {
    command: AcpCommand,
    surroundings: Mutex<AcpSurroundings>,
    live: Mutex<Option<Live>>,
    closing: CancellationToken,
}

impl AcpEngine {
    /// Starts nothing.
    pub fn new(command: AcpCommand, surroundings: AcpSurroundings) -> Self {
        Self {
            command,
            surroundings: Mutex::new(surroundings),
            live: Mutex::new(None),
            closing: CancellationToken::new(),
        }
    }

    /// Other rules, from the next session on: a session keeps the rules that it was opened with, and another set of
    /// servers is another session.
    pub async fn renew(&self, gate: Gate) {
        self.surroundings.lock().await.gate = gate;
    }

    async fn execute(&self, turn: EngineTurn, sink: &dyn RunSink) -> Result<TurnEnd, AgentError> {
        if self.closing.is_cancelled() {
            return Err(AgentError::Closed { agent: turn.agent });
        }
        let EngineTurn { steering, cancel, .. } = turn;
        // Whoever sends a text learns at once that it does not go in.
        drop(steering);
        let turn = EngineTurn { steering: crate::engine::Steering::none(), cancel: cancel.clone(), ..turn };
        let cancel = cancel.child_token();
        let surroundings = self.surroundings.lock().await.clone();
        let runner = Runner {
            command: &self.command,
            surroundings: &surroundings,
            turn: &turn,
            sink,
            calls: OpenCalls::new(turn.run.as_str()),
            out_of_time: turn.limits.time.map(|time| Instant::now() + time),
            cancel: cancel.clone(),
            closing: &self.closing,
        };
        let running = async {
            let mut live = self.live.lock().await;
            runner.run(&mut live).await
        };
        let closing = async {
            self.closing.cancelled().await;
            cancel.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            end = running => end,
            () = closing => Err(AgentError::Closed { agent: turn.agent.clone() }),
        }
    }
}

impl Engine for AcpEngine {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn tools(&self) -> Vec<String> {
        Vec::new()
    }

    fn grace(&self) -> Duration {
        self.command.grace()
    }

    fn run(&self, turn: EngineTurn, sink: Arc<dyn RunSink>) -> BoxFuture<'_, Result<TurnEnd, AgentError>> {
        Box::pin(async move { self.execute(turn, &*sink).await })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.closing.cancel();
            if let Some(mut live) = self.live.lock().await.take() {
                live.end().await;
            }
        })
    }
}
